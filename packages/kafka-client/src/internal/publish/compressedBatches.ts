/** Compresses the records of batches, for one Produce request. */
import { headerBytes, type MeasuredBatch, measureBatch, writeRecords } from "../batch/recordBatch.ts"
import type { CodecName } from "../codec/codecNames.ts"
import { compress } from "../codec/compress.ts"
import type { Batch } from "./partitionLog.ts"

/** A batch with its size. */
export interface SizedBatch {
  readonly measured: MeasuredBatch
  /** All records of a batch have one codec. */
  readonly codec: CodecName
  /** The compressed records; undefined where they stay as they are. */
  readonly body: Buffer | undefined
  /** Bytes of the whole batch. */
  readonly total: number
}

export const plainBatch = ({ records }: Batch): SizedBatch => {
  const measured = measureBatch(records.map(({ record }) => record))
  return { measured, codec: "none", body: undefined, total: measured.total }
}

const codecOfBatch = ({ records }: Batch): CodecName => records[0]!.record.codec

const compressBatch = async (batch: Batch): Promise<SizedBatch> => {
  const codec = codecOfBatch(batch)
  const plain = plainBatch(batch)
  if (codec === "none") return plain
  const records = Buffer.allocUnsafe(plain.total - headerBytes)
  writeRecords(records, 0, plain.measured)
  const body = await compress(codec, records)
  return { ...plain, codec, body, total: headerBytes + body.length }
}

/** The batches, compressed as their records say. Undefined when none is to be compressed, which needs no other thread. */
export const compressBatches = (batches: ReadonlyArray<Batch>): Promise<ReadonlyArray<SizedBatch>> | undefined =>
  batches.every((batch) => codecOfBatch(batch) === "none") ? undefined : Promise.all(batches.map(compressBatch))
