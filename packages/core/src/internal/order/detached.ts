/**
 * A record that shares no memory with what it was fetched with. A fetched record is a view of its batch: one that stays in memory for long would keep the whole batch there.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"

export const of = (record: ConsumerRecord): ConsumerRecord => {
  const { topic, partition, offset, timestamp, timestampType, transactional, compression } = record
  return {
    ...{ topic, partition, offset, timestamp, timestampType, transactional, compression },
    key: bytes(record.key),
    value: bytes(record.value),
    headers: record.headers.map(({ key, value }) => ({ key, value: bytes(value) }))
  }
}

/** `slice` of a `Buffer` would be a view again. */
export const bytes = <A extends Uint8Array | null>(value: A): Uint8Array | Extract<A, null> =>
  value === null ? (null as Extract<A, null>) : new Uint8Array(value)
