/**
 * Reads the origin of a record from the connector's headers. They are untrusted input (ruling 14).
 */
import type { ConsumerRecord, Header, RecordPosition } from "../../ConsumerRecord.ts"
import * as TopicName from "../../TopicName.ts"
import type { Origin } from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

/** The connector's headers of a record, by name. The last value of a repeated header counts. */
export interface OwnHeaders {
  readonly get: (name: string) => HeaderValues.HeaderValue
}

/** For a reader of many headers. */
export const lastValues = (headers: ReadonlyArray<Header>): ReadonlyMap<string, Uint8Array | null> => {
  const values = new Map<string, Uint8Array | null>()
  for (const { key, value } of headers) if (key.startsWith(Names.prefix)) values.set(key, value)
  return values
}

/** For a reader of a few headers: it looks for each one, and reads no other. */
export const inHeadersOf = ({ headers }: ConsumerRecord): OwnHeaders => ({
  get: (name) => HeaderValues.last(headers, name)
})

/** Answers the whole origin or nothing: an incomplete origin would point to another record. */
export const readOrigin = (record: ConsumerRecord, headers: OwnHeaders): Origin | undefined => {
  const position = readPosition(headers)
  if (position === undefined) return undefined
  const timestamp = HeaderValues.recordTimestamp(headers.get(Names.originalTimestamp)) ?? record.timestamp
  return { ...position, timestamp }
}

/** The origin without its time. */
export const readPosition = (headers: OwnHeaders): RecordPosition | undefined => {
  const topic = topicOf(headers.get(Names.originalTopic))
  const partition = HeaderValues.wholeNumber(headers.get(Names.originalPartition), 0, HeaderValues.maxInt32)
  const offset = HeaderValues.offset(headers.get(Names.originalOffset))
  return topic === undefined || partition === undefined || offset === undefined
    ? undefined
    : { topic, partition, offset }
}

/** The last topic that was read. The copies in a retry topic mostly have it in common. */
let last: { readonly value: HeaderValues.HeaderValue; readonly topic: string } | undefined

const topicOf = (value: HeaderValues.HeaderValue): string | undefined => {
  if (last !== undefined && HeaderValues.isSame(last.value, value)) return last.topic
  const topic = HeaderValues.text(value) ?? ""
  if (TopicName.illegal(topic) !== undefined) return undefined
  // Headers may be views of a whole fetched chunk, which would stay in memory with the view.
  last = { value: value?.slice(), topic }
  return topic
}
