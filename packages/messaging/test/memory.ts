/** Messaging on the Kafka in memory, and its dead letters. */
import { Broker } from "@eventbus/core"
import { KafkaMessaging, type KafkaSettings, type Message } from "@eventbus/messaging"
import * as MessagingContract from "@eventbus/messaging/MessagingContract"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"

/** The dead letters of Kafka, from the newest of each dead letter topic. */
export const deadLetters: Layer.Layer<MessagingContract.DeadLetters, never, Broker.Broker> = Layer.effect(
  MessagingContract.DeadLetters,
  Effect.map(Broker.Broker, ({ admin }) => ({
    of: (topic) =>
      Effect.scoped(Effect.flatMap(admin, ({ tail }) => tail?.(`${topic}-dlq`, 1_000) ?? Effect.succeed([]))).pipe(
        Effect.map((records) => records.map(({ headers, value }) => ({ headers: texts(headers), body: value }))),
        Effect.catch(() => Effect.succeed([]))
      )
  }))
)

const texts = (headers: ReadonlyArray<{ readonly key: string; readonly value: Uint8Array | null }>): Message.Headers =>
  Object.fromEntries(headers.map(({ key, value }) => [key, new TextDecoder().decode(value ?? undefined)]))

/** Messaging on any `Broker`, with its dead letters. */
export const onBroker = (settings?: KafkaSettings.KafkaSettings) =>
  Layer.merge(Layer.orDie(KafkaMessaging.layer(settings)), deadLetters)

/** Messaging in memory. */
export const layer = (settings?: KafkaSettings.KafkaSettings) =>
  onBroker(settings).pipe(Layer.provideMerge(MemoryBroker.layer()))

/** A record of partition 0 as texts. */
export const record = (topic: string, offset: bigint) =>
  Effect.gen(function* () {
    const { log } = yield* MemoryBroker.MemoryBroker
    const found = (yield* log(topic, 0)).find((each) => each.offset === offset)
    if (found === undefined) throw new Error(`no record ${topic}-0@${offset}`)
    const text = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes))
    return { key: text(found.key), value: text(found.value), headers: texts(found.headers) }
  })
