/**
 * A fetched record. It stores where its fields are in the fetched bytes and reads them on access: one small object per record keeps the fetch
 * path about as cheap as the network.
 */
import type { ConsumerRecord } from "@eventbus/core"
import { headerName } from "./headerName.ts"
import { VarintReader } from "./varint.ts"

/** The part that all records of one record batch share. */
export interface BatchContext {
  readonly topic: string
  readonly partition: number
  readonly bytes: Buffer
  readonly baseOffset: bigint
  /** Epoch milliseconds to which each record's delta is added. */
  readonly baseTimestamp: number
  /** Whether the broker stamped the batch with its own time. */
  readonly timestampType: "CreateTime" | "LogAppendTime"
  /** Whether the batch belongs to a transaction. */
  readonly transactional: boolean
  /** The codec that the batch was compressed with; undefined without one. */
  readonly compression: ConsumerRecord.Compression | undefined
}

const noHeaders: ReadonlyArray<ConsumerRecord.Header> = []

/** Fields are offsets into `batch.bytes`; a length of -1 is null. */
export class FetchedRecord implements ConsumerRecord.ConsumerRecord {
  readonly #batch: BatchContext
  /** Its offset, counted from the offset of the batch. */
  readonly offsetDelta: number
  readonly #timestampDelta: number
  readonly #keyAt: number
  readonly #keyLength: number
  readonly #valueAt: number
  readonly #valueLength: number
  #offset: bigint | undefined
  #key: Uint8Array | null | undefined
  #headers: ReadonlyArray<ConsumerRecord.Header> | undefined

  /** `reader` stands after the record's length and attributes. The headers stay unread, unless there are none. */
  constructor(batch: BatchContext, reader: VarintReader) {
    this.#batch = batch
    const delta = reader.number()
    this.#timestampDelta = batch.timestampType === "LogAppendTime" ? 0 : delta
    this.offsetDelta = reader.number()
    this.#keyLength = reader.number()
    this.#keyAt = reader.at
    if (this.#keyLength > 0) reader.at += this.#keyLength
    this.#valueLength = reader.number()
    this.#valueAt = reader.at
    if (this.#valueLength > 0) reader.at += this.#valueLength
    // The number of headers. Most records have none, and something asks every record for its headers: by now the byte is in the processor's cache, later it is not.
    if (batch.bytes[reader.at] === 0) this.#headers = noHeaders
  }

  get topic(): string {
    return this.#batch.topic
  }

  get partition(): number {
    return this.#batch.partition
  }

  get offset(): bigint {
    this.#offset ??= this.#batch.baseOffset + BigInt(this.offsetDelta)
    return this.#offset
  }

  get timestamp(): number {
    return this.#batch.baseTimestamp + this.#timestampDelta
  }

  get timestampType(): "CreateTime" | "LogAppendTime" {
    return this.#batch.timestampType
  }

  get transactional(): boolean {
    return this.#batch.transactional
  }

  get compression(): ConsumerRecord.Compression | undefined {
    return this.#batch.compression
  }

  get key(): Uint8Array | null {
    // Asked for more than once: order per key looks the record's key up before it is decoded.
    if (this.#key === undefined) this.#key = this.#slice(this.#keyAt, this.#keyLength)
    return this.#key
  }

  get value(): Uint8Array | null {
    return this.#slice(this.#valueAt, this.#valueLength)
  }

  get headers(): ReadonlyArray<ConsumerRecord.Header> {
    this.#headers ??= this.#readHeaders()
    return this.#headers
  }

  /** Bytes of key, value and headers as they are encoded, without the headers whose names `isLeftOut` takes. */
  encodedBytes(isLeftOut: (key: string) => boolean): number {
    const { bytes } = this.#batch
    const end = this.#valueAt + Math.max(0, this.#valueLength)
    const reader = new VarintReader(bytes, end)
    let total = end - this.#keyAt
    const count = reader.number()
    for (let i = 0; i < count; i++) {
      const from = reader.at
      const keyLength = reader.number()
      const key = headerName(bytes, reader.at, keyLength, i)
      reader.at += keyLength
      const valueLength = reader.number()
      if (valueLength > 0) reader.at += valueLength
      if (!isLeftOut(key)) total += reader.at - from
    }
    return total
  }

  #slice(at: number, length: number): Uint8Array | null {
    return length < 0 ? null : this.#batch.bytes.subarray(at, at + length)
  }

  #readHeaders(): ReadonlyArray<ConsumerRecord.Header> {
    const { bytes } = this.#batch
    const at = this.#valueAt + Math.max(0, this.#valueLength)
    const reader = new VarintReader(bytes, at)
    const count = reader.number()
    if (count <= 0) return noHeaders
    const headers: Array<ConsumerRecord.Header> = []
    for (let i = 0; i < count; i++) {
      const keyLength = reader.number()
      const key = headerName(bytes, reader.at, keyLength, i)
      reader.at += keyLength
      const valueLength = reader.number()
      headers.push({ key, value: this.#slice(reader.at, valueLength) })
      if (valueLength > 0) reader.at += valueLength
    }
    return headers
  }
}

/** Moves the reader, which stands at the headers of a record, behind them. False when the record does not end there, at `end`. */
export const skipHeaders = (reader: VarintReader, end: number): boolean => {
  if (reader.at >= end) return false
  let count = reader.number()
  if (!(count >= 0)) return false
  for (; count > 0; count--) {
    const keyLength = reader.number()
    if (!(keyLength >= 0)) return false
    reader.at += keyLength
    const valueLength = reader.number()
    if (valueLength > 0) reader.at += valueLength
    if (!(reader.at <= end)) return false
  }
  return reader.at === end
}
