/** Decodes the answer to a fetch, and selects the records that a consumer of an isolation level sees. */
import type { ConsumerRecord } from "@eventbus/core"
import { isAbortMarker, isControl, isTransactional, readRecords, splitBatches } from "../batch/recordBatch.ts"
import type { Apis, FetchedPartition } from "../wire/apis.ts"

/** Reads big-endian numbers one after the other. */
class Cursor {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  int16(): number {
    this.at += 2
    return this.bytes.readInt16BE(this.at - 2)
  }

  int32(): number {
    this.at += 4
    return this.bytes.readInt32BE(this.at - 4)
  }

  int64(): bigint {
    this.at += 8
    return this.bytes.readBigInt64BE(this.at - 8)
  }

  slice(length: number): Buffer {
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }
}

const decodePartition = (cursor: Cursor, version: number, topic: string): FetchedPartition => {
  const partition = cursor.int32()
  const errorCode = cursor.int16()
  const highWatermark = cursor.int64()
  const lastStableOffset = cursor.int64()
  if (version >= 5) cursor.int64()
  const abortedTransactions: Array<FetchedPartition["abortedTransactions"][number]> = []
  for (let left = cursor.int32(); left > 0; left--) {
    abortedTransactions.push({ producerId: cursor.int64(), firstOffset: cursor.int64() })
  }
  if (version >= 11) cursor.int32()
  const bytes = cursor.slice(Math.max(0, cursor.int32()))
  return { topic, partition, errorCode, highWatermark, lastStableOffset, abortedTransactions, bytes }
}

/** Decodes Fetch v4 to v11. */
export const decodeFetch = (bytes: Buffer, version: number): Apis["Fetch"]["response"] => {
  const cursor = new Cursor(bytes)
  const throttle = cursor.int32()
  const errorCode = version >= 7 ? cursor.int16() : 0
  if (version >= 7) cursor.int32()
  const partitions: Array<FetchedPartition> = []
  for (let topics = cursor.int32(); topics > 0; topics--) {
    const topic = cursor.slice(cursor.int16()).toString()
    for (let left = cursor.int32(); left > 0; left--) partitions.push(decodePartition(cursor, version, topic))
  }
  // Before version 8 the broker throttles by answering late.
  return { clientSideThrottleTime: version >= 8 ? throttle : 0, errorCode, partitions }
}

/** The visible records of one partition from a position on. */
export interface Visible {
  readonly records: ReadonlyArray<ConsumerRecord.ConsumerRecord>
  /** The position after the fetched range. */
  readonly nextOffset: bigint
  /** Decompressed bytes of the records; 0 when there are none. */
  readonly bytes: number
}

/**
 * The records to deliver: no control records, and under `read_committed` no records of aborted transactions. The broker names the aborted
 * transactions that touch the fetched range, and sends nothing from the first open transaction on.
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
  // Bytes are given back when their records are handled; a chunk without records would never give them back.
  return { records, nextOffset, bytes: records.length === 0 ? 0 : bytes }
}
