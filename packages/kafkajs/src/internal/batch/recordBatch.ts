/** Kafka's record batch (magic 2): encoding for producing, lazy reading of fetched batches. Headers keep order, repeats and null values. */
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import type { ConsumerRecord } from "@eventbus/core"
import { crc32c } from "@node-rs/crc32"
import { compression } from "../wire/kafkajsInternals.ts"
import { type EncodedRecord, recordSize, writeRecord } from "./encodedRecord.ts"
import { type BatchContext, FetchedRecord } from "./fetchedRecord.ts"
import { VarintReader, varintSize } from "./varint.ts"

const headerBytes = 61
const attribute = { compression: 0x07, logAppendTime: 0x08, transactional: 0x10, control: 0x20 } as const

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
  /** Bytes of the whole batch. */
  readonly total: number
}

export const measureBatch = (records: ReadonlyArray<EncodedRecord>): MeasuredBatch => {
  const base = records[0]!.timestamp
  let maxTimestamp = base
  let total = headerBytes
  const sizes = records.map((record, i) => {
    if (record.timestamp > maxTimestamp) maxTimestamp = record.timestamp
    const size = recordSize(record, record.timestamp - base, i)
    total += varintSize(size) + size
    return size
  })
  return { records, sizes, maxTimestamp, total }
}

/** Fills `batch` (of `measured.total` bytes) with the encoded batch, uncompressed. */
export const writeBatch = (batch: Buffer, measured: MeasuredBatch, identity: BatchIdentity): void => {
  const { records, sizes, maxTimestamp, total } = measured
  const base = records[0]!.timestamp
  batch.writeBigInt64BE(0n, 0)
  batch.writeInt32BE(total - 12, 8)
  batch.writeInt32BE(-1, 12)
  batch.writeInt8(2, 16)
  batch.writeInt16BE(identity.transactional ? attribute.transactional : 0, 21)
  batch.writeInt32BE(records.length - 1, 23)
  batch.writeBigInt64BE(BigInt(base), 27)
  batch.writeBigInt64BE(BigInt(maxTimestamp), 35)
  batch.writeBigInt64BE(identity.producerId, 43)
  batch.writeInt16BE(identity.producerEpoch, 51)
  batch.writeInt32BE(identity.baseSequence, 53)
  batch.writeInt32BE(records.length, 57)
  let at = headerBytes
  for (let i = 0; i < records.length; i++) {
    at = writeRecord(batch, at, records[i]!, sizes[i]!, [records[i]!.timestamp - base, i])
  }
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
}

/** A batch in fetched bytes. `readRecords` reads its records. */
export interface FetchedBatch {
  readonly baseOffset: bigint
  /** Offset of the last record, also when compaction has removed that record. */
  readonly lastOffset: bigint
  readonly attributes: number
  readonly baseTimestamp: number
  readonly maxTimestamp: number
  readonly producerId: bigint
  readonly count: number
  readonly body: Buffer
}

/** True for a batch that holds a transaction marker instead of records. */
export const isControl = (batch: FetchedBatch): boolean => (batch.attributes & attribute.control) !== 0
export const isTransactional = (batch: FetchedBatch): boolean => (batch.attributes & attribute.transactional) !== 0

/** True for the marker of an aborted transaction (type 0); the marker of a committed one has type 1. */
export const isAbortMarker = (batch: FetchedBatch): boolean => {
  const reader = new VarintReader(batch.body, 0)
  reader.number()
  reader.at += 1
  reader.number()
  reader.number()
  const keyLength = reader.number()
  return keyLength >= 4 && batch.body.readInt16BE(reader.at + 2) === 0
}

/** Splits fetched bytes into batches. A last batch that the fetch limits cut off is left out. Throws on formats older than Kafka 0.11. */
export const splitBatches = (bytes: Buffer): ReadonlyArray<FetchedBatch> => {
  const batches: Array<FetchedBatch> = []
  let at = 0
  while (at + headerBytes <= bytes.length) {
    const end = at + 12 + bytes.readInt32BE(at + 8)
    if (end > bytes.length) break
    if (bytes[at + 16] !== 2) throw new Error("records in a format older than Kafka 0.11 are not supported")
    const baseOffset = bytes.readBigInt64BE(at)
    batches.push({
      baseOffset,
      lastOffset: baseOffset + BigInt(bytes.readInt32BE(at + 23)),
      attributes: bytes.readInt16BE(at + 21),
      baseTimestamp: Number(bytes.readBigInt64BE(at + 27)),
      maxTimestamp: Number(bytes.readBigInt64BE(at + 35)),
      producerId: bytes.readBigInt64BE(at + 43),
      count: bytes.readInt32BE(at + 57),
      body: bytes.subarray(at + headerBytes, end)
    })
    at = end
  }
  return batches
}

const zstd = 4
const zstdDecompress = promisify(zlib.zstdDecompress)

/** Decompresses the records. gzip comes with kafkajs and zstd with Node.js; other codecs must be registered in kafkajs's `CompressionCodecs`. */
const decompress = async (batch: FetchedBatch): Promise<Buffer> => {
  const type = batch.attributes & attribute.compression
  if (type === 0) return batch.body
  if (type === zstd) return zstdDecompress(batch.body)
  const codec = compression.Codecs[type]
  if (codec === undefined) throw new Error(`compression type ${type} is not known`)
  return codec().decompress(batch.body)
}

/** Appends the records from offset `from` on to `target`, and returns the decompressed size of the batch in bytes. */
export const readRecords = async (
  batch: FetchedBatch,
  { topic, partition }: ConsumerRecord.TopicPartition,
  from: bigint,
  target: Array<ConsumerRecord.ConsumerRecord>
): Promise<number> => {
  const bytes = (batch.attributes & attribute.compression) === 0 ? batch.body : await decompress(batch)
  const appendTime = (batch.attributes & attribute.logAppendTime) !== 0
  const context: BatchContext = {
    topic,
    partition,
    bytes,
    baseOffset: batch.baseOffset,
    baseTimestamp: appendTime ? batch.maxTimestamp : batch.baseTimestamp,
    timestampType: appendTime ? "LogAppendTime" : "CreateTime"
  }
  const reader = new VarintReader(bytes, 0)
  for (let i = 0; i < batch.count; i++) {
    const length = reader.number()
    const end = reader.at + length
    reader.at += 1
    const record = new FetchedRecord(context, reader)
    reader.at = end
    if (batch.baseOffset >= from || record.offset >= from) target.push(record)
  }
  return bytes.length
}
