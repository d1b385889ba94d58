/** The memory of a consumer while records wait, and whether it grows. */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import {
  make,
  medianAtMost,
  type Participant,
  type Role,
  type Round,
  ratioAtMost,
  type TopicPlan
} from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"
import { createTopic, fill, fillTier } from "./harness/kafka.ts"
import { quantile } from "./harness/rounds.ts"

type Parameters = Readonly<
  Record<
    "waiting" | "waitingBytes" | "handlerMillis" | "firstSeconds" | "lastSeconds" | "flowing" | "flowingBytes",
    number
  >
>

/** Resident memory in MiB, once a second, as long as the scope lives. */
const watchResident = Effect.gen(function* () {
  const resident: Array<number> = []
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep("1 second"),
        Effect.sync(() => resident.push(process.memoryUsage().rss / 1024 / 1024))
      )
    )
  )
  return resident
})

const middle = (values: ReadonlyArray<number>) => quantile(values, 0.5)

const binding = ({ topic, groupId }: Round<Parameters>, handle: (value: Uint8Array | null) => Effect.Effect<void>) =>
  Binding.make("memory", {
    ...{ topic, groupId, value: Serde.bytes, ackMode: "MANUAL" },
    retry: RetryPolicy.blocking(),
    handler: ({ value }) => handle(value)
  })

/** More records wait than the handler can process in the time. */
const waiting = (partitions: number): Participant<Parameters> => ({
  topic: {
    lifetime: "run",
    partitions,
    content: ({ waiting, waitingBytes }) => ({ records: waiting, bytes: waitingBytes })
  },
  role: Effect.fnUntraced(function* (round) {
    const { handlerMillis, firstSeconds, lastSeconds } = round.parameters
    yield* runBindings(round, [binding(round, () => Effect.sleep(handlerMillis))])
    const resident = yield* watchResident
    yield* Effect.sleep(lastSeconds * 1_000)
    const first = middle(resident.slice(0, firstSeconds).slice(-5))
    const last = middle(resident.slice(-5))
    return { first: [first], last: [last], growth: [last / first] }
  }, Effect.scoped)
})

/** Records wait in a retry topic for minutes. */
const inTier = (records: number): Participant<Parameters> => ({
  topic: { lifetime: "round", partitions: flowPartitions },
  role: Effect.fnUntraced(function* (round) {
    const { firstSeconds } = round.parameters
    // A separate process writes the records, so that its memory is not measured.
    const filling = yield* round.start(`fill ${records}`)
    yield* filling.samples
    const tiered = Binding.make("memory", {
      ...{ topic: round.topic, groupId: round.groupId, value: Serde.bytes, ackMode: "MANUAL" },
      retry: RetryPolicy.tiered({ tiers: ["10 minutes"] }),
      handler: () => Effect.void
    })
    yield* runBindings(round, [tiered])
    const resident = yield* watchResident
    yield* Effect.sleep(firstSeconds * 1_000)
    return { resident: [middle(resident.slice(-5))] }
  }, Effect.scoped)
})

const fillingTier =
  (records: number): Role<Parameters> =>
  ({ brokers, topic, parameters: { waitingBytes: bytes } }) => {
    const retryTopic = `${topic}.retry-1`
    return createTopic(brokers, retryTopic, flowPartitions).pipe(
      Effect.andThen(fillTier(brokers, retryTopic, flowPartitions, { records, bytes })),
      Effect.as({})
    )
  }

const publisher: Role<Parameters> = ({ brokers, topic, parameters }) =>
  Effect.as(fill(brokers, topic, flowPartitions, { records: parameters.flowing, bytes: parameters.flowingBytes }), {})

const flowPartitions = 6
const flowTopic: TopicPlan<Parameters> = { lifetime: "round", partitions: flowPartitions }

/** Records are consumed as fast as they are published. */
const flow: Participant<Parameters> = {
  topic: flowTopic,
  role: Effect.fnUntraced(function* (round) {
    const arrivals = new Arrivals(round.parameters.flowing)
    yield* runBindings(round, [binding(round, (value) => Effect.sync(() => arrivals.add(value)))])
    const { samples } = yield* round.start("publisher")
    const resident = yield* watchResident
    yield* samples
    yield* arrivals.all()
    // A tiny load ends within the first second.
    while (resident.length < 3) yield* Effect.sleep("1 second")
    const third = Math.floor(resident.length / 3)
    const first = middle(resident.slice(third, 2 * third))
    const last = middle(resident.slice(2 * third))
    return { first: [first], last: [last], growth: [last / first] }
  }, Effect.scoped)
}

const figures = (participant: string, target: number | undefined) => [
  {
    ...{ participant, series: "first", label: "first", unit: "MiB" },
    ...(target !== undefined && { target: medianAtMost(target) })
  },
  {
    ...{ participant, series: "last", label: "last", unit: "MiB" },
    ...(target !== undefined && { target: medianAtMost(target) })
  },
  { participant, series: "growth", label: "growth", unit: "last/first", target: medianAtMost(1.1) }
]

export const memory = make({
  name: "memory",
  header: [
    "resident memory of the whole process; waiting: 1 million records of 1 KB and a handler of 10 ms, after 20 s and after 60 s (--firstSeconds, --lastSeconds)",
    "waiting: 6 partitions; wide: 200 partitions, all with full queues; flow: 5 million records of 200 bytes straight through, second third against last third",
    "tier: records of 1 KB that wait in a retry topic of 10 minutes, after 20 s (--firstSeconds)"
  ],
  parameters: {
    waiting: 1_000_000,
    waitingBytes: 1_000,
    handlerMillis: 10,
    firstSeconds: 20,
    lastSeconds: 60,
    flowing: 5_000_000,
    flowingBytes: 200
  },
  smoke: { waiting: 600, waitingBytes: 10, handlerMillis: 1, firstSeconds: 2, lastSeconds: 3, flowing: 600 },
  rounds: 1,
  helpers: { publisher, "fill 1000": fillingTier(1_000), "fill 100000": fillingTier(100_000) },
  participants: {
    waiting: waiting(6),
    wide: waiting(200),
    flow,
    "tier of 1,000": inTier(1_000),
    "tier of 100,000": inTier(100_000)
  },
  measures: [
    ...figures("waiting", 250),
    ...figures("wide", 400),
    ...figures("flow", undefined),
    {
      ...{ participant: "tier of 100,000", against: "tier of 1,000", series: "resident", unit: "MiB" },
      target: ratioAtMost(1.1)
    }
  ]
})
