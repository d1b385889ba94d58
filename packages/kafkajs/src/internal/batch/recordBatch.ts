/** Kafka's record batch (magic 2): written for producing, read lazily when fetched. Headers keep order, repeats and null values. */
import { promisify } from "node:util"
import * as zlib from "node:zlib"
import type { ConsumerRecord } from "@eventbus/core"
import { crc32c } from "@node-rs/crc32"
import { compression } from "../wire/kafkajsInternals.ts"
import { type Outgoing, recordSize, writeRecord } from "./outgoing.ts"
import { type BatchContext, KafkaJsRecord } from "./record.ts"
import { VarintReader, varintSize } from "./varint.ts"

const headerBytes = 61
const attribute = { compression: 0x07, logAppendTime: 0x08, transactional: 0x10, control: 0x20 } as const

/** Who writes a batch; a producer that is not idempotent has id -1. */
export interface BatchIdentity {
  readonly producerId: bigint
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly transactional: boolean
}

/** One or more records of a batch, with the sizes that they are written in. */
export interface Measured {
  readonly records: ReadonlyArray<Outgoing>
  readonly sizes: ReadonlyArray<number>
  readonly maxTimestamp: number
  /** Bytes of the batch. */
  readonly total: number
}

export const measureBatch = (records: ReadonlyArray<Outgoing>): Measured => {
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

/** Writes a batch, without compression, over the whole of `batch`. */
export const writeBatch = (batch: Buffer, measured: Measured, identity: BatchIdentity): void => {
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

/** A record batch that was found in fetched bytes; its records are read by `readRecords`. */
export interface FetchedBatch {
  readonly baseOffset: bigint
  /** Also when compaction has taken the last records away. */
  readonly lastOffset: bigint
  readonly attributes: number
  readonly baseTimestamp: number
  readonly maxTimestamp: number
  readonly producerId: bigint
  readonly count: number
  readonly body: Buffer
}

export const isControl = (batch: FetchedBatch): boolean => (batch.attributes & attribute.control) !== 0
export const isTransactional = (batch: FetchedBatch): boolean => (batch.attributes & attribute.transactional) !== 0

/** True for the marker that ends an aborted transaction; a committed one has type 1 where this has 0. */
export const isAbortMarker = (batch: FetchedBatch): boolean => {
  const reader = new VarintReader(batch.body, 0)
  reader.number()
  reader.at += 1
  reader.number()
  reader.number()
  const keyLength = reader.number()
  return keyLength >= 4 && batch.body.readInt16BE(reader.at + 2) === 0
}

/** Splits fetched bytes into batches. The last one may be cut off by the fetch limits, and is then left out. */
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

/** The records' bytes: gzip and zstd by Node.js, others by a codec that is registered with kafkajs (`CompressionCodecs`). */
const decompress = async (batch: FetchedBatch): Promise<Buffer> => {
  const type = batch.attributes & attribute.compression
  if (type === 0) return batch.body
  if (type === zstd) return zstdDecompress(batch.body)
  const codec = compression.Codecs[type]
  if (codec === undefined) throw new Error(`compression type ${type} is not known`)
  return codec().decompress(batch.body)
}

/** Appends the records from `from` on to `target`; returns how many bytes they take when decompressed. */
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
    baseTimestamp: appendTime ? batch.maxTimestamp : batch.baseTimestamp
  }
  const reader = new VarintReader(bytes, 0)
  for (let i = 0; i < batch.count; i++) {
    const length = reader.number()
    const end = reader.at + length
    reader.at += 1
    const record = new KafkaJsRecord(context, reader, appendTime ? "append" : "create")
    reader.at = end
    if (batch.baseOffset >= from || record.offset >= from) target.push(record)
  }
  return bytes.length
}
