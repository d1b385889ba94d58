/** Makes the record of a message: its bytes and its headers. */
import type { ConsumerRecord, Serde } from "@eventbus/core"
import { Result } from "effect"
import { defineTopic, type Message, type Topic } from "../Topic.ts"

/** The bytes of a message, or why there are none. */
export const encode = <K, V>(
  target: string | Topic<K, V>,
  message: Message<K, V>
): Result.Result<ConsumerRecord.ProducerRecord, Serde.EncodeFailure> => {
  const { topic, key, value } = typeof target === "string" ? (defineTopic(target) as unknown as Topic<K, V>) : target
  const { headers = {}, partition, timestamp } = message
  // A key may be absent only where its type has null.
  const givenKey = (message.key ?? null) as K
  return Result.flatMap(key.encode(givenKey), (keyBytes) =>
    Result.map(value.encode(message.value), (valueBytes) => ({
      topic,
      key: keyBytes,
      value: valueBytes,
      headers: [
        ...(key.headers?.(givenKey) ?? []),
        ...(value.headers?.(message.value) ?? []),
        ...Object.entries(headers).map(([name, content]) => ({ key: name, value: bytesOf(content) }))
      ],
      ...(partition === undefined ? {} : { partition }),
      ...(timestamp === undefined ? {} : { timestamp })
    }))
  )
}

const encoder = new TextEncoder()

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? encoder.encode(content) : content
