/** Messages per second through `MessageProducer` on Kafka, against records of the same values through the connector's producer, without and with what a message adds. */
import { Serde } from "@eventbus/core"
import { KafkaMessaging, Message, MessageBrokerFactory, Topic } from "@eventbus/messaging"
import { Context, Effect, Layer } from "effect"
import { make, ratioAtLeast } from "./harness/Benchmark.ts"
import { numbered } from "./harness/kafka.ts"
import { participant } from "./harness/publishing.ts"
import * as Transport from "./harness/transport.ts"
import { ours } from "./publish.ts"

const messages = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, name: string, bytes: number) {
  const broker = KafkaMessaging.layer({ producer: { compression: "none", linger: 0, maxBatchBytes: 524_288 } })
  const factory = yield* Layer.build(
    MessageBrokerFactory.layer({ brokers: [broker] }).pipe(Layer.provide(Transport.layer({ brokers })))
  )
  const { getDefaultProducer } = Context.get(factory, MessageBrokerFactory.MessageBrokerFactory)
  const { send } = yield* getDefaultProducer
  const topic = Topic.make(name, Serde.bytes)
  return ([number]: ReadonlyArray<number>): Effect.Effect<unknown, unknown> =>
    Effect.flatMap(send(numbered(number!, bytes), topic), ({ success, cause }) =>
      success ? Effect.void : Effect.fail(cause)
    )
})

/** The connector's producer, with the id and the time that a message gives to its record. */
const sameRecords = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string, bytes: number) {
  const { send } = yield* Transport.make({ brokers }).producer()
  return ([number]: ReadonlyArray<number>): Effect.Effect<unknown, unknown> => {
    const id = Buffer.from(globalThis.crypto.randomUUID())
    const headers = [{ key: Message.idHeader, value: id }]
    return send({ topic, key: null, value: numbered(number!, bytes), headers, timestamp: Date.now() })
  }
})

export const messaging = make({
  name: "messaging",
  header: [
    "records of 200 bytes without keys into 6 partitions, acks all; each round in a fresh process on a fresh topic, after 20,000 records of warm-up",
    "messages: MessageProducer.send of one payload, 50 at a time, with its id as header, its metrics and its result",
    "single: Producer.send of one record, 50 at a time, as in `bench publish` (all idempotent, linger 0)",
    "same records: as single, with an id as header and a time, which is the record that a message becomes"
  ],
  parameters: { singles: 60_000, batched: 0, warmup: 20_000, concurrency: 50, batch: 1, bytes: 200 },
  smoke: { singles: 20, warmup: 10, concurrency: 5 },
  // A round takes seconds, and the broker's own pauses move its figure by a third.
  rounds: 9,
  participants: {
    messages: participant("single", messages),
    single: participant("single", ours),
    "same records": participant("single", sameRecords)
  },
  measures: [
    { participant: "messages", against: "single", series: "rate", unit: "messages/s", target: ratioAtLeast(0.9) },
    { participant: "same records", against: "single", series: "rate", unit: "records/s" },
    { participant: "messages", against: "single", series: "cpu", label: "CPU", unit: "µs/message" }
  ]
})
