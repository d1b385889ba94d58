/** Records per second that all replicas acknowledge: sent concurrently one by one, and in batches. */
import type { ConsumerRecord } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, type Scope } from "effect"
import { make, type Participant, ratioAtLeast, type TopicPlan } from "./harness/Benchmark.ts"
import { client, countRecords, numbered } from "./harness/kafka.ts"
import { now, pace, since } from "./harness/stopwatch.ts"

type Parameters = Readonly<Record<"singles" | "batched" | "warmup" | "concurrency" | "batch" | "bytes", number>>

const topic: TopicPlan<Parameters> = { lifetime: "round", partitions: 6 }

interface Work {
  readonly topic: string
  readonly bytes: number
  /** Publishes the records with these numbers in one call of the client. */
  readonly call: (numbers: ReadonlyArray<number>) => Effect.Effect<unknown, unknown>
}

/** Publishes numbers `from` to `to` in calls of `size`, `concurrency` of them at once. */
const publishAll = (work: Work, from: number, to: number, size: number, concurrency: number) => {
  let next = from
  const worker = Effect.whileLoop({
    while: () => next < to,
    body: () => {
      const numbers = Array.from({ length: Math.min(size, to - next) }, (_, index) => next + index)
      next += numbers.length
      return work.call(numbers)
    },
    step: () => {}
  })
  return Effect.all(
    Array.from({ length: concurrency }, () => worker),
    { concurrency: "unbounded", discard: true }
  )
}

const participant = (
  calls: "single" | "batch",
  connect: (
    brokers: ReadonlyArray<string>,
    topic: string,
    bytes: number
  ) => Effect.Effect<Work["call"], unknown, Scope.Scope>
): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* ({ brokers, topic, parameters }) {
    const { bytes, warmup } = parameters
    const records = calls === "single" ? parameters.singles : parameters.batched
    const size = calls === "single" ? 1 : parameters.batch
    const concurrency = calls === "single" ? parameters.concurrency : 1
    const work = { topic, bytes, call: yield* connect(brokers, topic, bytes) }
    yield* publishAll(work, 0, warmup, size, concurrency)
    const start = now()
    yield* publishAll(work, warmup, warmup + records, size, concurrency)
    const spent = since(start)
    const written = yield* countRecords(brokers, topic)
    if (written !== warmup + records) return yield* Effect.fail(`${written} of ${warmup + records} records written`)
    return pace(spent, records)
  }, Effect.scoped)
})

const ours = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string, bytes: number) {
  const producer = yield* KafkaJs.make({ brokers }).producer()
  const record = (number: number): ConsumerRecord.ProducerRecord => ({
    topic,
    key: null,
    value: numbered(number, bytes)
  })
  return (numbers: ReadonlyArray<number>): Effect.Effect<unknown, unknown> =>
    numbers.length === 1 ? producer.send(record(numbers[0]!)) : producer.sendAll(numbers.map(record))
})

const bare = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string, bytes: number) {
  const producer = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const producer = client(brokers).producer()
      await producer.connect()
      return producer
    }),
    (producer) => Effect.promise(() => producer.disconnect())
  )
  return (numbers: ReadonlyArray<number>) =>
    Effect.promise(() =>
      producer.send({ topic, acks: -1, messages: numbers.map((number) => ({ value: numbered(number, bytes) })) })
    )
})

export const publish = make({
  name: "publish",
  header: [
    "records of 200 bytes without keys into 6 partitions, acks all; each round on a fresh topic, after 2,000 records of warm-up",
    "single: Producer.send of one record, 50 at a time (idempotent, linger 0: our defaults); kafkajs send: the same calls",
    "batch: Producer.sendAll of 500, one after the other; kafkajs batches: send of 500"
  ],
  parameters: { singles: 30_000, batched: 300_000, warmup: 2_000, concurrency: 50, batch: 500, bytes: 200 },
  smoke: { singles: 20, batched: 200, warmup: 10, concurrency: 5, batch: 50 },
  participants: {
    single: participant("single", ours),
    "kafkajs send": participant("single", bare),
    batch: participant("batch", ours),
    "kafkajs batches": participant("batch", bare)
  },
  measures: [
    { participant: "single", against: "kafkajs send", series: "rate", unit: "records/s", target: ratioAtLeast(4) },
    { participant: "batch", against: "kafkajs batches", series: "rate", unit: "records/s" },
    { participant: "single", against: "kafkajs send", series: "cpu", label: "CPU", unit: "µs/record" },
    { participant: "batch", against: "kafkajs batches", series: "cpu", label: "CPU", unit: "µs/record" }
  ]
})
