/** Kafka's record batch (magic 2), as it is written. Headers keep order, repeats and null values. */
import { crc32c } from "@node-rs/crc32"
import { type CodecName, codecId } from "../codec/codecNames.ts"
import { type EncodedRecord, recordSize, writeRecord } from "./encodedRecord.ts"
import { varintSize } from "./varint.ts"

export const headerBytes = 61
export const attribute = { compression: 0x07, logAppendTime: 0x08, transactional: 0x10, control: 0x20 } as const

/** The producer of a batch. A producer that is not idempotent has id -1. */
export interface BatchIdentity {
  readonly producerId: bigint
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly transactional: boolean
}

/** The records of a batch (one or more), with their encoded sizes. */
export interface MeasuredBatch {
  readonly records: ReadonlyArray<EncodedRecord>
  readonly sizes: ReadonlyArray<number>
  readonly maxTimestamp: number
  /** Bytes of the whole batch, uncompressed. */
  readonly total: number
}

export const measureBatch = (records: ReadonlyArray<EncodedRecord>): MeasuredBatch => {
  const base = records[0]!.timestamp
  let maxTimestamp = base
  let total = headerBytes
  const sizes = new Array<number>(records.length)
  for (let i = 0; i < records.length; i++) {
    const record = records[i]!
    if (record.timestamp > maxTimestamp) maxTimestamp = record.timestamp
    const size = recordSize(record, record.timestamp - base, i)
    total += varintSize(size) + size
    sizes[i] = size
  }
  return { records, sizes, maxTimestamp, total }
}

/** Writes the records of a batch, uncompressed, from position `at` on. */
export const writeRecords = (target: Buffer, at: number, { records, sizes }: MeasuredBatch): void => {
  const base = records[0]!.timestamp
  let next = at
  for (let i = 0; i < records.length; i++) {
    next = writeRecord(target, next, records[i]!, sizes[i]!, [records[i]!.timestamp - base, i])
  }
}

/** Writes the header of a batch whose records are in `batch` already. `codec`: what they were compressed with. */
export const writeHeader = (
  batch: Buffer,
  measured: MeasuredBatch,
  identity: BatchIdentity,
  codec: CodecName
): void => {
  const { records, maxTimestamp } = measured
  batch.writeBigInt64BE(0n, 0)
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeInt32BE(-1, 12)
  batch.writeInt8(2, 16)
  batch.writeInt16BE((identity.transactional ? attribute.transactional : 0) | codecId(codec), 21)
  batch.writeInt32BE(records.length - 1, 23)
  batch.writeBigInt64BE(BigInt(records[0]!.timestamp), 27)
  batch.writeBigInt64BE(BigInt(maxTimestamp), 35)
  batch.writeBigInt64BE(identity.producerId, 43)
  batch.writeInt16BE(identity.producerEpoch, 51)
  batch.writeInt32BE(identity.baseSequence, 53)
  batch.writeInt32BE(records.length, 57)
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
}

/** Fills `batch` (of `measured.total` bytes) with the encoded batch, uncompressed. */
export const writeBatch = (batch: Buffer, measured: MeasuredBatch, identity: BatchIdentity): void => {
  writeRecords(batch, headerBytes, measured)
  writeHeader(batch, measured, identity, "none")
}
