/** The answer to a fetch, down to the bytes of each partition; and what a consumer of an isolation level sees in them. */
import type { ConsumerRecord } from "@eventbus/core"
import type { Apis, FetchedPartition } from "./apis.ts"
import { isAbortMarker, isControl, isTransactional, readRecords, splitBatches } from "./recordBatch.ts"

/** Decodes Fetch v4 to v11. */
export const decodeFetch = (bytes: Buffer, version: number): Apis["Fetch"]["response"] => {
  let at = 0
  const int16 = () => bytes.readInt16BE((at += 2) - 2)
  const int32 = () => bytes.readInt32BE((at += 4) - 4)
  const int64 = () => bytes.readBigInt64BE((at += 8) - 8)
  const throttle = int32()
  const errorCode = version >= 7 ? int16() : 0
  if (version >= 7) int32()
  const partitions: Array<FetchedPartition> = []
  for (let topics = int32(); topics > 0; topics--) {
    const topicLength = int16()
    const topic = bytes.toString("utf8", at, (at += topicLength))
    for (let count = int32(); count > 0; count--) {
      const partition = int32()
      const partitionError = int16()
      const highWatermark = int64()
      const lastStableOffset = int64()
      if (version >= 5) int64()
      const abortedTransactions: Array<FetchedPartition["abortedTransactions"][number]> = []
      for (let aborted = int32(); aborted > 0; aborted--) {
        abortedTransactions.push({ producerId: int64(), firstOffset: int64() })
      }
      if (version >= 11) int32()
      const length = Math.max(0, int32())
      partitions.push({
        topic,
        partition,
        errorCode: partitionError,
        highWatermark,
        lastStableOffset,
        abortedTransactions,
        bytes: bytes.subarray(at, at + length)
      })
      at += length
    }
  }
  // before version 8 the broker has waited itself
  return { clientSideThrottleTime: version >= 8 ? throttle : 0, errorCode, partitions }
}

/** What was fetched from one partition, from a position on. */
export interface Visible {
  readonly records: ReadonlyArray<ConsumerRecord.ConsumerRecord>
  readonly nextOffset: bigint
  readonly bytes: number
}

/**
 * The records to deliver: no control records, and under `read_committed` none of aborted transactions (the broker names those
 * that touch the fetched range, and sends nothing at or behind the first open one).
 */
export const visibleRecords = async (
  fetched: FetchedPartition,
  position: bigint,
  isolation: "read_committed" | "read_uncommitted"
): Promise<Visible> => {
  const records: Array<ConsumerRecord.ConsumerRecord> = []
  const upcoming =
    isolation === "read_committed"
      ? [...fetched.abortedTransactions].sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1))
      : []
  const aborted = new Set<bigint>()
  let nextOffset = position
  let bytes = 0
  for (const batch of splitBatches(fetched.bytes)) {
    while (upcoming.length > 0 && upcoming[0]!.firstOffset <= batch.lastOffset)
      aborted.add(upcoming.shift()!.producerId)
    if (isControl(batch)) {
      if (aborted.size > 0 && batch.count > 0 && isAbortMarker(batch)) aborted.delete(batch.producerId)
    } else if (!(isTransactional(batch) && aborted.has(batch.producerId))) {
      bytes += await readRecords(batch, fetched, position, records)
    }
    if (batch.lastOffset >= nextOffset) nextOffset = batch.lastOffset + 1n
  }
  return { records, nextOffset, bytes }
}
