/** Records per second that all replicas acknowledge: sent concurrently one by one, and in batches. */
import type { ConsumerRecord } from "@eventbus/core"
import { Effect } from "effect"
import { make, ratioAtLeast } from "./harness/Benchmark.ts"
import { client, numbered } from "./harness/kafka.ts"
import { participant } from "./harness/publishing.ts"
import * as Transport from "./harness/transport.ts"

/** The connector's producer. */
export const ours = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string, bytes: number) {
  const producer = yield* Transport.make({ brokers }).producer()
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
