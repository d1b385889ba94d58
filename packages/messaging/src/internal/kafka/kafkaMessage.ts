/** Records of Kafka as messages. */
import type { ConsumerRecord, Header } from "@eventbus/core/ConsumerRecord"
import type { Delivery } from "@eventbus/core/Delivery"
import type * as Serde from "@eventbus/core/Serde"
import { type Headers, idHeader, type ReceivedMessage } from "../../Message.ts"
import type { Topic } from "../../Topic.ts"
import { sourceOf } from "./kafkaRetry.ts"

/** The topics of a consumer by name. */
export interface Topics<T> {
  /** The topic that records of this topic, retry topic or dead letter topic are of. */
  readonly of: (name: string) => Topic<T>
  /** Reads a payload as its topic does. */
  readonly payload: Serde.Serde<T>
}

export const topicsOf = <T>(topics: readonly [Topic<T>, ...ReadonlyArray<Topic<T>>], groupId: string): Topics<T> => {
  const [first] = topics
  const byName = new Map(topics.map((topic) => [topic.name, topic]))
  const names = new Set(byName.keys())
  const of = (name: string): Topic<T> => byName.get(name) ?? byName.get(sourceOf(name, names, groupId)) ?? first
  const serdeOf = (source: Serde.Source | undefined) => (source?.topic === undefined ? first : of(source.topic)).payload
  const isPrepared = topics.some(({ payload }) => payload.prepare !== undefined)
  return {
    of,
    payload:
      topics.length === 1
        ? first.payload
        : {
            name: first.payload.name,
            encode: first.payload.encode,
            decode: (bytes, source) => serdeOf(source).decode(bytes, source),
            ...(isPrepared && { prepare: (bytes, source) => serdeOf(source).prepare?.(bytes, source) })
          }
  }
}

/** Makes the messages of one consumer. `attemptOf` counts the tries of a record, from 1. */
export const reader =
  <T>(groupId: string, topics: Topics<T>, attemptOf: (delivery: Delivery<string | null, T>) => number) =>
  (delivery: Delivery<string | null, T>): ReceivedMessage<T> => {
    const { record, key, value } = delivery
    const headers = textHeaders(record.headers)
    const { partition, offset } = delivery.tier === 0 ? record : originOf(delivery)
    return {
      id: headers[idHeader] ?? delivery.deduplicationKey,
      payload: value,
      topic: topics.of(record.topic),
      key: key ?? undefined,
      headers,
      timestamp: record.timestamp,
      groupId,
      attempt: attemptOf(delivery),
      partition,
      offset
    }
  }

/** Headers as text, the last of a name; those of the connector are no part of the message. */
const textHeaders = (headers: ReadonlyArray<Header>): Headers => {
  const texts: Record<string, string> = {}
  for (const { key, value } of headers) {
    if (value === null || key.startsWith("x-eventbus-")) continue
    if (key === "__proto__") define(texts, key, decoder.decode(value))
    else texts[key] = decoder.decode(value)
  }
  return texts
}

/** An assignment would set the prototype, and lose the text. */
const define = (texts: object, key: string, value: string) =>
  Object.defineProperty(texts, key, { value, enumerable: true, configurable: true, writable: true })

const decoder = new TextDecoder()

/** A copy in a retry topic names the record that it was made of. */
const originOf = ({
  deduplicationKey,
  record
}: Delivery<unknown, unknown>): Pick<ConsumerRecord, "partition" | "offset"> => {
  const found = /-(\d+)-(\d+)$/.exec(deduplicationKey)
  return found === null ? record : { partition: Number(found[1]), offset: BigInt(found[2]!) }
}
