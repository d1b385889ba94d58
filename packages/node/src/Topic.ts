/** Topics to publish to, with the types of their keys and values. */
import { type Publisher, Serde } from "@eventbus/core"
import * as Result from "effect/Result"

/** Text, or bytes as they are. null is no key, or a tombstone. */
export type TextOrBytes = string | Uint8Array | null

/** A topic with its serdes. A consumer of the same topic takes it too: `consumer({ ...orders, groupId, handler })`. */
export interface Topic<K, V> {
  /** The name of the Kafka topic. */
  readonly topic: string
  /** How to write keys. */
  readonly key: Serde.Serde<K>
  /** How to write values. */
  readonly value: Serde.Serde<V>
}

/** A record to publish: value, key, headers, partition and timestamp. `K` and `V` are the types of the topic's serdes; a key may be left out where its type has null. */
export type Message<K, V> = Publisher.Message<K, V>

/**
 * Describes a topic. Keys and values without a serde are text or bytes.
 *
 * ```ts
 * import { defineTopic, Serde, standardSchema } from "@eventbus/node"
 * import { z } from "zod"
 *
 * export const orders = defineTopic("orders", { key: Serde.string, value: standardSchema(z.object({ id: z.string() })) })
 * ```
 */
export const defineTopic = <V = TextOrBytes, K = TextOrBytes>(
  topic: string,
  serdes: {
    /** How to write keys. Default: text or bytes. */
    readonly key?: Serde.Serde<K>
    /** How to write values. Default: text or bytes. */
    readonly value?: Serde.Serde<V>
  } = {}
): Topic<K, V> => ({
  topic,
  // Without a serde the type is that of text or bytes.
  key: serdes.key ?? (textOrBytes as Serde.Serde<unknown> as Serde.Serde<K>),
  value: serdes.value ?? (textOrBytes as Serde.Serde<unknown> as Serde.Serde<V>)
})

/** Reads bytes as they are. */
const textOrBytes: Serde.Serde<TextOrBytes> = {
  name: "text or bytes",
  decode: Result.succeed,
  encode: (value) => (typeof value === "string" ? Serde.string.encode(value) : Serde.bytes.encode(value))
}
