/** The effect of a third member that joins and leaves a group twice. */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Duration, Effect, Schedule, type Scope } from "effect"
import {
  make,
  medianAtMost,
  type Participant,
  type Role,
  type Round,
  ratioAtMost,
  type Samples,
  type TopicPlan
} from "./harness/Benchmark.ts"
import { runBindings, runKafkaJs } from "./harness/consumers.ts"
import { countCommitted, numberOf } from "./harness/kafka.ts"
import { wallMillis } from "./harness/stopwatch.ts"

type Parameters = Readonly<
  Record<
    "records" | "bytes" | "handlerMillis" | "awayMillis" | "presentMillis" | "sessionMillis" | "heartbeatMillis",
    number
  >
>

const topic: TopicPlan<Parameters> = {
  lifetime: "round",
  partitions: 6,
  content: ({ records, bytes }) => ({ records, bytes })
}

type Handled = (partition: number, value: Uint8Array | null) => void

/** A member that records the time of each handled record until it is asked to stop. */
const member =
  (run: (round: Round<Parameters>, handled: Handled) => Effect.Effect<void, unknown, Scope.Scope>): Role<Parameters> =>
  (round) =>
    Effect.gen(function* () {
      const number: Array<number> = []
      const partition: Array<number> = []
      const at: Array<number> = []
      const handled: Handled = (from, value) => {
        if (number.length === 0) round.begin()
        number.push(numberOf(value!))
        partition.push(from)
        at.push(wallMillis())
      }
      yield* Effect.scoped(Effect.andThen(run(round, handled), round.stopped))
      return { number, partition, at }
    })

const bindingMember = member((round, handled) => {
  const { topic, groupId, parameters } = round
  const rebalance = Binding.make("rebalance", {
    ...{ topic, groupId, value: Serde.bytes, ackMode: "MANUAL" },
    sessionTimeout: parameters.sessionMillis,
    heartbeatInterval: parameters.heartbeatMillis,
    retry: RetryPolicy.blocking(),
    handler: ({ value, record }) =>
      Effect.andThen(
        Effect.sleep(parameters.handlerMillis),
        Effect.sync(() => handled(record.partition, value))
      )
  })
  return runBindings(round, [rebalance])
})

const kafkaJsMember = member((round, handled) => {
  const { parameters } = round
  return runKafkaJs(
    round,
    {
      partitionsConsumedConcurrently: 6,
      autoCommitInterval: 200,
      eachMessage: async ({ partition, message }) => {
        await new Promise((resolve) => setTimeout(resolve, parameters.handlerMillis))
        handled(partition, message.value)
      }
    },
    { sessionTimeout: parameters.sessionMillis, heartbeatInterval: parameters.heartbeatMillis }
  )
})

/** Two members stay; a third one joins and leaves twice. Ends when everything is committed. */
const group = (helper: string): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* ({ brokers, topic, groupId, parameters, start }) {
    const residents = [yield* start(helper), yield* start(helper)]
    yield* Effect.forEach(residents, ({ begun }) => Effect.timeout(begun, "1 minute"))
    const visits: Array<Samples> = []
    for (let visit = 0; visit < 2; visit++) {
      yield* Effect.sleep(parameters.awayMillis)
      const visitor = yield* start(helper)
      yield* Effect.timeout(visitor.begun, "20 seconds")
      yield* Effect.sleep(parameters.presentMillis)
      yield* visitor.stop
      visits.push(yield* visitor.samples)
    }
    yield* countCommitted(brokers, groupId, topic).pipe(
      Effect.repeat({
        schedule: Schedule.spaced("200 millis"),
        until: (committed) => committed >= parameters.records
      }),
      Effect.timeout(Duration.minutes(2))
    )
    const logs = [...visits]
    for (const { stop, samples } of residents) logs.push(yield* Effect.andThen(stop, samples))
    return account(logs, parameters.records)
  })
})

/** Merges the members' records into one series for the group. */
const account = (logs: ReadonlyArray<Samples>, records: number): Samples => {
  const times = new Uint8Array(records)
  const byPartition = new Map<number, Array<{ readonly member: number; readonly at: number }>>()
  for (const [member, { number = [], partition = [], at = [] }] of logs.entries()) {
    for (const [index, one] of number.entries()) {
      times[one]!++
      const entries = byPartition.get(partition[index]!) ?? []
      entries.push({ member, at: at[index]! })
      byPartition.set(partition[index]!, entries)
    }
  }
  let gap = 0
  for (const entries of byPartition.values()) {
    entries.sort((a, b) => a.at - b.at)
    for (const [index, { member, at }] of entries.entries()) {
      const before = entries[index - 1]
      if (before?.member === member) gap = Math.max(gap, at - before.at)
    }
  }
  return {
    twice: [times.filter((count) => count > 1).length],
    lost: [times.filter((count) => count === 0).length],
    gap: [gap]
  }
}

const common = { participant: "binding", against: "kafkajs" }

export const rebalance = make({
  name: "rebalance",
  header: [
    "60,000 records in 6 partitions, a handler of 1 ms, two members; a third joins and leaves twice meanwhile; each member is a process",
    "gap: the longest time between two records of a partition that its member kept; session 6 s, heartbeat 500 ms on both sides",
    "binding: ackMode MANUAL; kafkajs: eachMessage, 6 partitions concurrently, autoCommitInterval 200 ms"
  ],
  parameters: {
    records: 60_000,
    bytes: 200,
    handlerMillis: 1,
    awayMillis: 1_000,
    presentMillis: 1_500,
    sessionMillis: 6_000,
    heartbeatMillis: 500
  },
  // The load must outlast both visits.
  smoke: { records: 6_000, handlerMillis: 20, awayMillis: 100, presentMillis: 200 },
  helpers: { bindingMember, kafkaJsMember },
  participants: { binding: group("bindingMember"), kafkajs: group("kafkaJsMember") },
  measures: [
    { ...common, series: "twice", label: "handled twice", unit: "records", target: medianAtMost(0) },
    { ...common, series: "lost", label: "lost", unit: "records", target: medianAtMost(0) },
    { ...common, series: "gap", label: "longest gap", unit: "ms", target: ratioAtMost(1 / 3) }
  ]
})
