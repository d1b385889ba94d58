/**
 * A record that shares no memory with what it was fetched with. A fetched record is a view of its batch: one that stays in memory for long would keep the whole batch there.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"

export const of = (record: ConsumerRecord): ConsumerRecord => withValue(record, orNull(record.value))

/** The same without its value. */
export const withoutValue = (record: ConsumerRecord): ConsumerRecord => withValue(record, null)

/** Field by field: those of a fetched record are getters of its class, which a spread leaves out. */
const withValue = (record: ConsumerRecord, value: Uint8Array | null): ConsumerRecord => {
  const { topic, partition, offset, timestamp, timestampType, transactional, compression } = record
  return {
    ...{ topic, partition, offset, timestamp, timestampType, transactional, compression, value },
    key: orNull(record.key),
    headers: record.headers.map(({ key, value }) => ({ key, value: orNull(value) }))
  }
}

/** `slice` of a `Buffer` would be a view again. */
export const bytes = (value: Uint8Array): Uint8Array => new Uint8Array(value)

const orNull = (value: Uint8Array | null): Uint8Array | null => (value === null ? null : bytes(value))
