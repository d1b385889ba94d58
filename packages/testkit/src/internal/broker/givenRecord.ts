/** The records that a program gives a producer, read once: a getter may throw, and a buffer may be used again. */
import { Adapter, type ConsumerRecord } from "@eventbus/core"
import type { NewRecord } from "./partitionLog.ts"

/** The record as it is now, or the error of one that no broker can take. */
export const readRecord = (
  record: ConsumerRecord.ProducerRecord
): ConsumerRecord.ProducerRecord | NonNullable<ReturnType<typeof Adapter.refusedRecord>> => {
  const refused = Adapter.refusedRecord(record)
  if (refused !== undefined) return refused
  try {
    const { topic, key, value, headers, partition, timestamp, replaceTimestamp, compression } = record
    return {
      ...{ topic, key, value },
      ...(headers !== undefined && { headers: headers.map(({ key, value }) => ({ key, value })) }),
      ...(partition !== undefined && { partition }),
      ...(timestamp !== undefined && { timestamp }),
      ...(replaceTimestamp !== undefined && { replaceTimestamp }),
      ...(compression !== undefined && { compression })
    }
  } catch {
    return Adapter.unreadableRecord()
  }
}

/** A copy of the bytes, since the caller may reuse its buffers, as with a client that serialises. */
export const snapshot = (
  record: ConsumerRecord.ProducerRecord,
  nowMillis: number,
  compression: ConsumerRecord.Compression
): NewRecord => ({
  key: record.key?.slice() ?? null,
  value: record.value?.slice() ?? null,
  headers: record.headers?.map(({ key, value }) => ({ key, value: value?.slice() ?? null })) ?? [],
  compression: record.compression ?? compression,
  timestamp: record.timestamp ?? nowMillis
})
