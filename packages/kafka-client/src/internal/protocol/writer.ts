/** Writes the types of Kafka's protocol, one after the other, into a buffer that grows. The names of methods are those of Kafka's protocol guide. */
import { type Body, headerRoom } from "../../Transport.ts"

export class Writer {
  #bytes = Buffer.allocUnsafe(headerRoom + 512)
  #at = headerRoom

  int8(value: number): this {
    this.#room(1)
    this.#at = this.#bytes.writeInt8(value, this.#at)
    return this
  }

  int16(value: number): this {
    this.#room(2)
    this.#at = this.#bytes.writeInt16BE(value, this.#at)
    return this
  }

  int32(value: number): this {
    this.#room(4)
    this.#at = this.#bytes.writeInt32BE(value, this.#at)
    return this
  }

  int64(value: bigint): this {
    this.#room(8)
    this.#at = this.#bytes.writeBigInt64BE(value, this.#at)
    return this
  }

  boolean(value: boolean): this {
    return this.int8(value ? 1 : 0)
  }

  string(text: string): this {
    const length = Buffer.byteLength(text)
    return this.int16(length).#text(text, length)
  }

  nullableString(text: string | null | undefined): this {
    return text === null || text === undefined ? this.int16(-1) : this.string(text)
  }

  bytes(bytes: Buffer): this {
    return this.int32(bytes.length).raw(bytes)
  }

  array<A>(values: ReadonlyArray<A>, write: (value: A) => void): this {
    this.int32(values.length)
    for (const value of values) write(value)
    return this
  }

  strings(texts: ReadonlyArray<string>): this {
    return this.array(texts, (text) => this.string(text))
  }

  int32s(values: ReadonlyArray<number>): this {
    return this.array(values, (value) => this.int32(value))
  }

  /** Bytes as they are, without their length. */
  raw(bytes: Buffer): this {
    this.#room(bytes.length)
    this.#at += bytes.copy(this.#bytes, this.#at)
    return this
  }

  unsignedVarint(value: number): this {
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#uint8((rest % 0x80) | 0x80)
    return this.#uint8(rest)
  }

  compactString(text: string): this {
    const length = Buffer.byteLength(text)
    return this.unsignedVarint(length + 1).#text(text, length)
  }

  compactNullableString(text: string | null): this {
    return text === null ? this.unsignedVarint(0) : this.compactString(text)
  }

  /** The id of a topic, as `Reader.uuid` reads it. */
  uuid(id: string): this {
    return this.raw(Buffer.from(id, "base64url"))
  }

  compactArray<A>(values: ReadonlyArray<A>, write: (value: A) => void): this {
    this.unsignedVarint(values.length + 1)
    for (const value of values) write(value)
    return this
  }

  nullableCompactArray<A>(values: ReadonlyArray<A> | null, write: (value: A) => void): this {
    return values === null ? this.unsignedVarint(0) : this.compactArray(values, write)
  }

  /** An empty list of tagged fields, which ends every structure of a flexible version (KIP-482). */
  noTags(): this {
    return this.#uint8(0)
  }

  /** The bytes so far, with room for the header of a request. */
  get body(): Body {
    const whole = this.#bytes.subarray(0, this.#at)
    return { bytes: whole.subarray(headerRoom), whole }
  }

  #uint8(value: number): this {
    this.#room(1)
    this.#at = this.#bytes.writeUInt8(value, this.#at)
    return this
  }

  #text(text: string, length: number): this {
    this.#room(length)
    this.#at += this.#bytes.write(text, this.#at, length)
    return this
  }

  #room(length: number): void {
    const needed = this.#at + length
    if (needed <= this.#bytes.length) return
    const longer = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(longer, 0, 0, this.#at)
    this.#bytes = longer
  }
}

/** The leader epoch of an offset that names none. */
export const unknownLeaderEpoch = -1

interface OffsetsOfTopic {
  readonly topic: string
  readonly partitions: ReadonlyArray<{
    readonly partition: number
    readonly offset: string
    readonly metadata: string | null
  }>
}

/** Offsets to commit, as flexible versions of OffsetCommit and TxnOffsetCommit list them. */
export const writeOffsets = (writer: Writer, topics: ReadonlyArray<OffsetsOfTopic>): Writer =>
  writer.compactArray(topics, ({ topic, partitions }) =>
    writer
      .compactString(topic)
      .compactArray(partitions, ({ partition, offset, metadata }) =>
        writer.int32(partition).int64(BigInt(offset)).int32(unknownLeaderEpoch).compactNullableString(metadata).noTags()
      )
      .noTags()
  )
