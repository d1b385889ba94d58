/** Finds the batches in fetched bytes. A batch that cannot be trusted ends the search with a typed failure, and what is before it can be read. */
import { crc32c } from "@node-rs/crc32"
import { codecOf } from "../codec/codecNames.ts"
import { attribute, headerBytes } from "./recordBatch.ts"
import { UnreadableBatch } from "./UnreadableBatch.ts"
import { VarintReader } from "./varint.ts"

/** A batch whose checksum is right. `recordReader.ts` reads its records. */
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
  const { at } = reader
  return keyLength >= 4 && at + 4 <= batch.body.length && batch.body.readInt16BE(at + 2) === 0
}

const readHeader = (whole: Buffer): FetchedBatch => {
  const baseOffset = whole.readBigInt64BE(0)
  return {
    baseOffset,
    lastOffset: baseOffset + BigInt(whole.readInt32BE(23)),
    attributes: whole.readInt16BE(21),
    baseTimestamp: Number(whole.readBigInt64BE(27)),
    maxTimestamp: Number(whole.readBigInt64BE(35)),
    producerId: whole.readBigInt64BE(43),
    count: whole.readInt32BE(57),
    body: whole.subarray(headerBytes)
  }
}

/** A header whose checksum is wrong still says where the batch ends, unless that contradicts the log. */
const brokenBatch = (whole: Buffer, endOffset: bigint): UnreadableBatch => {
  const { baseOffset, lastOffset, attributes } = readHeader(whole)
  const isPlausible = lastOffset >= baseOffset && lastOffset < endOffset
  return new UnreadableBatch("broken", "its checksum is wrong", {
    codec: codecOf(attributes & attribute.compression),
    lastOffset: isPlausible ? lastOffset : undefined,
    count: undefined
  })
}

const unknown = { codec: undefined, lastOffset: undefined, count: undefined }

/**
 * The batches in `bytes`, which end before `endOffset`. A last batch that the fetch limits cut off is left out. Throws `UnreadableBatch` at the first
 * one that cannot be read: formats older than Kafka 0.11, a wrong checksum, a length that cannot be.
 */
export function* batchesOf(bytes: Buffer, endOffset: bigint): Generator<FetchedBatch, void> {
  let at = 0
  while (at + headerBytes <= bytes.length) {
    const length = bytes.readInt32BE(at + 8)
    const end = at + 12 + length
    const magic = bytes[at + 16]!
    if (magic < 2) {
      throw new UnreadableBatch("format", "it is in a format older than Kafka 0.11", unknown)
    }
    if (end < at + headerBytes) throw new UnreadableBatch("broken", `its header declares ${length} bytes`, unknown)
    if (end > bytes.length) {
      // A broker that answers with a batch at all answers with the whole first one.
      if (at > 0) return
      throw new UnreadableBatch("broken", `its header declares ${length} bytes, and ${bytes.length - 12} came`, unknown)
    }
    if (magic !== 2) throw new UnreadableBatch("format", `its format ${magic} is not known`, unknown)
    const whole = bytes.subarray(at, end)
    if (whole.readUInt32BE(17) !== crc32c(whole.subarray(21))) throw brokenBatch(whole, endOffset)
    yield readHeader(whole)
    at = end
  }
  if (at === 0 && bytes.length > 0) throw new UnreadableBatch("broken", "it is shorter than a header", unknown)
}
