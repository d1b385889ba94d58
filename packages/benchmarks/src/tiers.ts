/** The cost of retries: the rate of the main topic while records go to a tier, their delay beyond the due time, and dead letters at full speed. */
import { Binding, type Delivery, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect } from "effect"
import type { Message } from "kafkajs"
import { Arrivals } from "./harness/Arrivals.ts"
import {
  type Measure,
  make,
  medianAtLeast,
  medianAtMost,
  type Participant,
  type Round,
  ratioAtLeast,
  type Samples,
  type TopicPlan
} from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"
import { client, countingRecords, createTopic, fillTier, numbered, numberOf } from "./harness/kafka.ts"
import { now, pace, since } from "./harness/stopwatch.ts"

type Parameters = Readonly<
  Record<"records" | "immediate" | "burst" | "failing" | "letters" | "every" | "bytes", number>
>
type Incoming = Delivery.Delivery<Uint8Array | null, Uint8Array | null>

class Unavailable extends Data.TaggedError("Unavailable") {}

/** One error for all records, since the engine's cost of making an error is not measured. */
const unavailable = Effect.fail(new Unavailable())

const partitions = 6
const delayMillis = 5_000
const filled = (records: (parameters: Parameters) => number): TopicPlan<Parameters> => ({
  lifetime: "round",
  partitions,
  content: (parameters) => ({ records: records(parameters), bytes: parameters.bytes })
})

/** The due time of a tier's record, by its own header. */
const lateness = ({ record }: Incoming): number => {
  const header = record.headers.findLast(({ key }) => key === "x-eventbus-retry-timestamp")
  return Date.now() - (Number(Buffer.from(header!.value!).toString()) + delayMillis)
}

type AckMode = "MANUAL" | "MANUAL_IMMEDIATE"

/** Everything that a careful user would switch on. */
const careful = (
  round: Round<Parameters>,
  handler: (delivery: Incoming) => Effect.Effect<void, Unavailable>,
  ackMode: AckMode = "MANUAL"
) =>
  Binding.make("tiers", {
    ...{ topic: round.topic, groupId: round.groupId, value: Serde.bytes, ackMode },
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [{ delay: delayMillis }],
      nonRetryableExceptions: ["IllegalArgument"]
    }),
    // The breaker counts every call, but never opens.
    circuitBreaker: { slidingWindowSize: 100_000, minimumNumberOfCalls: 100_000 },
    onError: { Unavailable: Route.retry },
    handler
  })

/** A binding whose first delivery fails for the records in `fails`; the tier handles them. */
const retrying = (
  total: (parameters: Parameters) => number,
  fails: (number: number, parameters: Parameters) => boolean,
  ackMode: AckMode = "MANUAL"
): Participant<Parameters> => ({
  topic: filled(total),
  role: Effect.fnUntraced(function* (round) {
    const { parameters } = round
    const onMain = new Arrivals(total(parameters))
    const handled = new Arrivals(total(parameters))
    const late: Array<number> = []
    const handler = (delivery: Incoming) =>
      Effect.suspend(() => {
        const { value, tier } = delivery
        if (tier === 0) {
          onMain.add(value)
          if (fails(numberOf(value!), parameters)) return unavailable
        } else late.push(lateness(delivery))
        handled.add(value)
        return Effect.void
      })
    const binding = careful(round, handler, ackMode)
    const copies = Array.from({ length: total(parameters) }, (_, number) => fails(number, parameters)).filter(Boolean)
    const cpu = yield* Effect.scoped(
      Effect.gen(function* () {
        const stored = yield* storing(round, copies.length)
        yield* runBindings(round, [binding])
        yield* onMain.all()
        yield* stored
        const { cpuMicros } = onMain.sinceFirst
        yield* handled.all()
        return [cpuMicros / total(parameters)]
      })
    )
    yield* handled.pace
    return yield* withLateness({ ...(yield* onMain.pace), cpu }, late)
  })
})

/**
 * Waits until all copies are stored in the tier: those of the last records are still on their way when the last record arrives, and their number depends on how many a
 * version lets wait.
 */
const storing = ({ brokers, topic }: Round<Parameters>, copies: number) =>
  Effect.map(countingRecords(brokers, `${topic}.retry-1`), (count) =>
    Effect.repeat(Effect.delay(count, "20 millis"), { while: (stored) => stored < copies })
  )

const withLateness = (samples: Samples, late: ReadonlyArray<number>) =>
  late.some((millis) => millis < 0)
    ? Effect.fail(`a record was handled ${-Math.min(...late)} ms early`)
    : Effect.succeed(late.length === 0 ? samples : { ...samples, late })

/** Records that were published to the tier at one moment, so that they are due together. */
const dueTogether: Participant<Parameters> = {
  topic: { lifetime: "round", partitions },
  role: Effect.fnUntraced(function* (round) {
    const { burst, bytes } = round.parameters
    const tierTopic = `${round.topic}.retry-1`
    yield* createTopic(round.brokers, tierTopic, partitions)
    const arrivals = new Arrivals(burst)
    const late: Array<number> = []
    const binding = careful(round, (delivery) =>
      Effect.sync(() => {
        late.push(lateness(delivery))
        arrivals.add(delivery.value)
      })
    )
    const body = Effect.gen(function* () {
      yield* runBindings(round, [binding])
      yield* fillTier(round.brokers, tierTopic, partitions, { records: burst, bytes })
      yield* arrivals.all()
    })
    yield* Effect.scoped(body)
    return yield* withLateness(yield* arrivals.pace, late)
  })
}

/** Every record goes to the dead letter topic, until all copies are acknowledged. */
const deadLetters: Participant<Parameters> = {
  topic: filled(({ letters }) => letters),
  role: Effect.fnUntraced(function* (round) {
    const { letters } = round.parameters
    const binding = Binding.make("letters", {
      ...{ topic: round.topic, groupId: round.groupId, value: Serde.bytes, ackMode: "MANUAL" },
      retry: RetryPolicy.none,
      onError: { Unavailable: Route.deadLetter("always") },
      handler: ({ value }) =>
        Effect.suspend(() => {
          if (began === undefined && value !== null) began = now()
          return unavailable
        })
    })
    let began: ReturnType<typeof now> | undefined
    return yield* Effect.scoped(
      Effect.gen(function* () {
        const written = yield* countingRecords(round.brokers, `${round.topic}.DLT`)
        yield* runBindings(round, [binding])
        yield* Effect.repeat(Effect.delay(written, "20 millis"), { while: (count) => count < letters })
        return pace(since(began!), letters)
      })
    )
  })
}

/** Bare records of the same number and size, as in `bench publish`. */
const bareRecord: (topic: string, index: number, bytes: number) => Message = (_, index, bytes) => ({
  value: numbered(index, bytes)
})

const { stack = "" } = new Unavailable()

/** A record with as many headers as a dead letter, of the same names and sizes. */
const accountedRecord: typeof bareRecord = (topic, index, bytes) => {
  const now = String(Date.now())
  return {
    value: numbered(index, bytes),
    headers: {
      "x-eventbus-original-topic": topic,
      "x-eventbus-original-partition": "0",
      "x-eventbus-original-offset": String(index),
      "x-eventbus-original-timestamp": now,
      "x-eventbus-dlt-reason": "NON_RETRYABLE",
      "x-eventbus-dlt-timestamp": now,
      "x-eventbus-dlt-detail": "always",
      "x-eventbus-total-attempts": "1",
      "x-eventbus-first-failure-timestamp": now,
      "x-eventbus-last-exception-class": "Unavailable",
      "x-eventbus-last-exception-message": "",
      "x-eventbus-last-exception-stacktrace": stack.slice(0, 2_048),
      "x-eventbus-retry-tier": "0",
      "x-eventbus-tier0-exception": "Unavailable",
      "x-eventbus-tier0-exhausted-at": now,
      "x-eventbus-tier0-attempts": "1"
    }
  }
}

/** The bare client with records in batches of 500. */
const batchesOf = (record: typeof bareRecord): Participant<Parameters> => ({
  topic: { lifetime: "round", partitions },
  role: ({ brokers, topic, parameters: { letters, bytes } }) =>
    Effect.promise(async () => {
      const producer = client(brokers).producer()
      await producer.connect()
      const send = (from: number, count: number) =>
        producer.send({
          topic,
          acks: -1,
          messages: Array.from({ length: count }, (_, index) => record(topic, from + index, bytes))
        })
      await send(0, 500)
      const start = now()
      for (let from = 0; from < letters; from += 500) await send(from, Math.min(500, letters - from))
      const spent = since(start)
      await producer.disconnect()
      return pace(spent, letters)
    })
})

export const tiers = make({
  name: "tiers",
  header: [
    "6 partitions, 200 bytes, ackMode MANUAL, one attempt in place, one tier of 5 s, classifier lists and circuit breaker on; failures share one error",
    "clean: 200,000 records, none fails; one in twenty: 5 % fail once and pass in the tier; rates are of the main topic; CPU counts until all copies are stored",
    "immediate: the same with ackMode MANUAL_IMMEDIATE and 20,000 records, where each record waits for its commit, or for its copy and the commit of that",
    "due together: 10,000 records in the tier with one due time; all fail: 60,000 records fail once, all in the tier; the first 10,000 take a third of a second, in which code is mostly compiled",
    "dead letters: 300,000 records, each dead-lettered at its first failure, read and all; kafkajs batches: send of 500 bare records, acks all",
    "kafkajs, same headers: send of 500 records that are as large as the dead letters, with as many headers: nothing is read, and nothing fails"
  ],
  parameters: {
    records: 200_000,
    immediate: 20_000,
    burst: 10_000,
    failing: 60_000,
    letters: 300_000,
    every: 20,
    bytes: 200
  },
  smoke: { records: 600, immediate: 600, burst: 60, failing: 60, letters: 60 },
  participants: {
    clean: retrying(
      ({ records }) => records,
      () => false
    ),
    "one in twenty": retrying(
      ({ records }) => records,
      (number, { every }) => number % every === 0
    ),
    "immediate, clean": retrying(
      ({ immediate }) => immediate,
      () => false,
      "MANUAL_IMMEDIATE"
    ),
    "immediate, one in twenty": retrying(
      ({ immediate }) => immediate,
      (number, { every }) => number % every === 0,
      "MANUAL_IMMEDIATE"
    ),
    "due together": dueTogether,
    "all fail": retrying(
      ({ failing }) => failing,
      () => true
    ),
    "dead letters": deadLetters,
    "kafkajs batches": batchesOf(bareRecord),
    "kafkajs, same headers": batchesOf(accountedRecord)
  },
  measures: [
    ...rates([
      { participant: "one in twenty", against: "clean", target: ratioAtLeast(0.6) },
      { participant: "immediate, one in twenty", against: "immediate, clean" },
      { participant: "all fail", target: medianAtLeast(15_000) },
      { participant: "dead letters", against: "kafkajs batches", target: ratioAtLeast(0.5) },
      { participant: "dead letters", against: "kafkajs, same headers" }
    ]),
    ...[
      { participant: "one in twenty", target: medianAtMost(100) },
      { participant: "due together", target: medianAtMost(150) },
      { participant: "all fail", target: medianAtMost(300) }
    ].map((late) => ({ ...late, series: "late", quantile: 0.99, label: "lateness p99", unit: "ms" }))
  ]
})

function rates(measures: ReadonlyArray<Omit<Measure, "series" | "unit">>): ReadonlyArray<Measure> {
  return measures.map((measure) => ({ ...measure, series: "rate", unit: "records/s" }))
}
