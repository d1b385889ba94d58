/**
 * Reads the records of one batch. A small batch is read at once; a large compressed one is decompressed piece by piece, as far as is asked for. A batch
 * yields as many records as it counts and uses up its bytes, or it is unreadable.
 */
import { Adapter, type ConsumerRecord } from "@eventbus/core"
import { broken, CodecError } from "../codec/CodecError.ts"
import { type CodecName, codecOf } from "../codec/codecNames.ts"
import { decompressPieces, decompressSmall, type Pieces, smallBytes } from "../codec/decompress.ts"
import type { FetchedBatch } from "./fetchedBatch.ts"
import { type BatchContext, FetchedRecord, skipHeaders } from "./fetchedRecord.ts"
import { attribute } from "./recordBatch.ts"
import { type Problem, UnreadableBatch } from "./UnreadableBatch.ts"
import { VarintReader } from "./varint.ts"

/** The longest encoding of a record's length. */
const maxLengthBytes = 5

/** Where records go. */
export interface RecordTarget {
  readonly records: Array<ConsumerRecord.ConsumerRecord>
  /** Records before this offset are left out. */
  readonly from: bigint
  /** Decompressed bytes of the records. */
  bytes: number
}

const problemOf: Readonly<Record<CodecError["failure"], Problem>> = {
  broken: "broken",
  tooLarge: "tooLarge",
  tooFar: "tooLarge",
  unknown: "codec"
}

export class RecordReader {
  readonly #batch: FetchedBatch
  readonly #codec: CodecName | undefined
  readonly #maxRecordBytes: number
  readonly #context: Omit<BatchContext, "bytes">
  #left: number
  /** Offset of the last record that was read, counted from the offset of the batch. */
  #delta = -1
  #nextOffset: bigint
  #pieces: Pieces | undefined
  /** Decompressed bytes of a record that is not complete yet, in parts. */
  #parts: Array<Uint8Array> = []
  #partBytes = 0
  #neededBytes = 0

  /**
   * `maxRecordBytes`: the largest record of a compressed batch that is decompressed, without the headers of a copy. One that fits into what is decompressed at once
   * is always read.
   */
  constructor(batch: FetchedBatch, { topic, partition }: ConsumerRecord.TopicPartition, maxRecordBytes: number) {
    const isAppendTime = (batch.attributes & attribute.logAppendTime) !== 0
    this.#batch = batch
    this.#codec = codecOf(batch.attributes & attribute.compression)
    this.#maxRecordBytes = this.#codec === "none" ? Number.MAX_SAFE_INTEGER : Math.max(maxRecordBytes, smallBytes)
    this.#left = batch.count
    this.#nextOffset = batch.baseOffset
    this.#context = {
      topic,
      partition,
      baseOffset: batch.baseOffset,
      baseTimestamp: isAppendTime ? batch.maxTimestamp : batch.baseTimestamp,
      timestampType: isAppendTime ? "LogAppendTime" : "CreateTime",
      transactional: (batch.attributes & attribute.transactional) !== 0,
      compression: this.#codec === "none" ? undefined : this.#codec
    }
  }

  /** The offset behind the last record that was read; behind the batch once all were. */
  get nextOffset(): bigint {
    return this.#nextOffset
  }

  get isCompressed(): boolean {
    return this.#codec !== "none"
  }

  /** Whether everything was read. */
  get isDone(): boolean {
    return this.#nextOffset > this.#batch.lastOffset
  }

  /** Reads all records at once: true. False, and nothing was read, when the batch is too large for that. Throws `UnreadableBatch`. */
  readSmall(target: RecordTarget): boolean {
    const before = target.records.length
    const bytesBefore = target.bytes
    try {
      const bytes = this.#decompressed()
      if (bytes === undefined) return false
      if (this.#batch.count < 0) throw broken(`it counts ${this.#batch.count} records`)
      this.#neededBytes = this.#readWhole(new VarintReader(bytes, 0), target)
      this.#finish()
      return true
    } catch (error) {
      target.records.length = before
      target.bytes = bytesBefore
      this.#nextOffset = this.#batch.baseOffset
      throw this.#unreadable(error)
    }
  }

  #decompressed(): Buffer | undefined {
    const { attributes, body, count } = this.#batch
    // Compaction leaves empty batches behind.
    if (this.#codec === "none" || (count === 0 && body.length === 0)) return body
    if (this.#codec === undefined)
      throw new CodecError("unknown", `codec ${attributes & attribute.compression} is not known`)
    return decompressSmall(this.#codec, body)
  }

  /** Reads on until `maxBytes` were decompressed, or to the end of the batch. Throws `UnreadableBatch`; the records before it are in the target then. */
  async readOn(target: RecordTarget, maxBytes: number): Promise<void> {
    const codec = this.#codec as Exclude<CodecName, "none">
    try {
      this.#pieces ??= decompressPieces(codec, this.#batch.body, this.#maxRecordBytes)
      const end = target.bytes + maxBytes
      // Only a whole record makes a chunk that the position can move behind.
      for (let count = target.records.length; target.bytes < end || target.records.length === count; ) {
        const piece = await this.#pieces.next()
        if (piece === undefined) return this.#finish()
        this.#readPiece(piece, target)
      }
    } catch (error) {
      this.close()
      throw this.#unreadable(error)
    }
  }

  #readPiece(piece: Uint8Array, target: RecordTarget): void {
    let bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length)
    // Only the record that two pieces share is copied, with a further round where its length was cut off.
    while (this.#partBytes > 0) {
      const missing = this.#neededBytes - this.#partBytes
      this.#keep(bytes.subarray(0, missing))
      if (missing > bytes.length) return
      bytes = bytes.subarray(missing)
      const whole = Buffer.concat(this.#parts, this.#partBytes)
      this.#parts = []
      this.#partBytes = 0
      const reader = new VarintReader(whole, 0)
      this.#neededBytes = this.#readWhole(reader, target)
      this.#keep(whole.subarray(reader.at))
    }
    if (bytes.length === 0) return
    const reader = new VarintReader(bytes, 0)
    this.#neededBytes = this.#readWhole(reader, target)
    // A copy, which does not keep the whole piece.
    if (this.#neededBytes > 0) this.#keep(Buffer.from(bytes.subarray(reader.at)))
  }

  #keep(part: Uint8Array): void {
    this.#parts.push(part)
    this.#partBytes += part.length
  }

  /** Reads the records that the reader's bytes hold completely. Returns how many bytes the next record needs to be complete; 0 when there is none. */
  #readWhole(reader: VarintReader, target: RecordTarget): number {
    const before = target.records.length
    try {
      return this.#readFrom(reader, target)
    } finally {
      // Also where a record is refused: the records before it are in the target.
      this.#nextOffset = this.#batch.baseOffset + BigInt(this.#delta) + 1n
      if (target.records.length > before) target.bytes += reader.at
    }
  }

  #readFrom(reader: VarintReader, target: RecordTarget): number {
    const { bytes } = reader
    const { records } = target
    const context: BatchContext = { ...this.#context, bytes }
    const firstDelta = Number(target.from - context.baseOffset)
    const lastDelta = Number(this.#batch.lastOffset - context.baseOffset)
    while (this.#left > 0) {
      const start = reader.at
      const length = reader.number()
      const end = reader.at + length
      if (!(end <= bytes.length)) {
        const needed = this.#bytesNeeded(bytes.length - start, reader.at - start, length)
        reader.at = start
        return needed
      }
      if (!(length > 0)) throw broken("it holds fewer records than it counts")
      reader.at += 1
      const record = new FetchedRecord(context, reader)
      // Most records have no headers: a 0, and the end.
      const isWhole = bytes[reader.at] === 0 ? ++reader.at === end : skipHeaders(reader, end)
      if (!isWhole) throw broken("a record is not as long as it says")
      if (length > this.#maxRecordBytes) this.#checkSize(record)
      const delta = record.offsetDelta
      if (!(delta > this.#delta && delta <= lastDelta)) throw broken("the offset of a record is not one of its batch")
      this.#delta = delta
      if (delta >= firstDelta) records.push(record)
      this.#left -= 1
    }
    if (reader.at < bytes.length) throw broken("it holds more than the records that it counts")
    return 0
  }

  /** The record is cut off: `available` of its bytes are there, of which `lengthBytes` are its length. */
  #bytesNeeded(available: number, lengthBytes: number, length: number): number {
    if (lengthBytes > available) {
      if (available >= maxLengthBytes) throw broken("the length of a record is not a number")
      return available + 1
    }
    // Its headers decide once they are here.
    if (length > this.#maxRecordBytes + Adapter.maxCopyHeaderBytes) throw this.#tooLarge(length)
    return lengthBytes + length
  }

  /** A large record is here, headers included. Those of a copy do not count, so that it can be read wherever its source was. */
  #checkSize(record: FetchedRecord): void {
    const bytes = record.encodedBytes(Adapter.isCopyHeader)
    if (bytes > this.#maxRecordBytes) throw this.#tooLarge(bytes)
  }

  #tooLarge(bytes: number): CodecError {
    return new CodecError("tooLarge", `a record of ${bytes} bytes is larger than the ${this.#maxRecordBytes} allowed`)
  }

  #finish(): void {
    if (this.#left > 0 || this.#neededBytes > 0) throw broken("it holds fewer records than it counts")
    this.close()
    this.#nextOffset = this.#batch.lastOffset + 1n
  }

  /** Frees what a batch holds that is not read to its end. */
  close(): void {
    this.#pieces?.close()
    this.#pieces = undefined
    this.#parts = []
  }

  #unreadable(error: unknown): unknown {
    if (!(error instanceof CodecError)) return error
    const { count, lastOffset } = this.#batch
    return new UnreadableBatch(problemOf[error.failure], error.message, { codec: this.#codec, lastOffset, count })
  }
}
