/**
 * Reads the origin of a record from the connector's headers. They are untrusted input (ruling 14).
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as TopicName from "../../TopicName.ts"
import type { Origin } from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

/** The connector's headers of a record, by name. The last value of a repeated header counts. */
export type OwnHeaders = ReadonlyMap<string, Uint8Array | null>

export const lastValues = (headers: ReadonlyArray<Header>): OwnHeaders =>
  new Map(headers.filter(({ key }) => key.startsWith(Names.prefix)).map(({ key, value }) => [key, value]))

/** The origin, where nothing else of a record's headers is needed: the other ones stay unread. */
export const readOriginOf = (record: ConsumerRecord): Origin | undefined =>
  readOrigin(record, { get: (name) => HeaderValues.last(record.headers, name) })

/** Answers the whole origin or nothing: an incomplete origin would point to another record. */
export const readOrigin = (
  record: ConsumerRecord,
  headers: { readonly get: (name: string) => HeaderValues.HeaderValue }
): Origin | undefined => {
  const topic = topicOf(headers.get(Names.originalTopic))
  const partition = HeaderValues.wholeNumber(headers.get(Names.originalPartition), 0, HeaderValues.maxInt32)
  const offset = HeaderValues.offset(headers.get(Names.originalOffset))
  if (topic === undefined || partition === undefined || offset === undefined) return undefined
  const timestamp = HeaderValues.timestamp(headers.get(Names.originalTimestamp)) ?? record.timestamp
  return { topic, partition, offset, timestamp }
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
