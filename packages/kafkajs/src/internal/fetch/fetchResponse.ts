/** Decodes the answer to a fetch. The records of a partition stay bytes; `fetchedRange.ts` reads them. */
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
