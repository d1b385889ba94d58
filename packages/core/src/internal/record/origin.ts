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
  const topic = HeaderValues.text(headers.get(Names.originalTopic)) ?? ""
  const partition = HeaderValues.wholeNumber(headers.get(Names.originalPartition), 0, HeaderValues.maxInt32)
  const offset = HeaderValues.offset(headers.get(Names.originalOffset))
  if (TopicName.illegal(topic) !== undefined || partition === undefined || offset === undefined) return undefined
  const timestamp = HeaderValues.timestamp(headers.get(Names.originalTimestamp)) ?? record.timestamp
  return { topic, partition, offset, timestamp }
}
