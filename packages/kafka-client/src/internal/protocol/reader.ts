/**
 * Reads the types of Kafka's protocol, one after the other. Throws a RangeError where the bytes end too early or name an impossible length. The names
 * of methods are those of Kafka's protocol guide.
 */

const idBytes = 16

/** The length of null. */
const nullLength = -1

export class Reader {
  readonly #bytes: Buffer
  #at = 0
  /** The throttle time that `throttle` has read, in milliseconds. */
  throttleMillis = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int8(): number {
    return this.#bytes.readInt8(this.skip(1))
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.skip(2))
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.skip(4))
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.skip(8))
  }

  /** A 64-bit number as decimal text. */
  decimal(): string {
    return String(this.int64())
  }

  /** Null reads as the empty text. */
  string(): string {
    return this.nullableString() ?? ""
  }

  nullableString(): string | null {
    const length = this.int16()
    return length === nullLength ? null : this.take(length).toString()
  }

  /** Null reads as no bytes. */
  bytes(): Buffer {
    const length = this.int32()
    return this.take(length === nullLength ? 0 : length)
  }

  /** Null reads as an empty array. */
  array<A>(element: () => A): Array<A> {
    return this.#elements(this.int32(), element)
  }

  unsignedVarint(): number {
    let value = 0
    for (let shift = 0; shift < 5; shift++) {
      const byte = this.#bytes.readUInt8(this.skip(1))
      value += (byte & 0x7f) * 2 ** (7 * shift)
      if (byte < 0x80) return value
    }
    throw new RangeError("a length of more than five bytes")
  }

  /** Null reads as the empty text. */
  compactString(): string {
    return this.take(Math.max(0, this.unsignedVarint() - 1)).toString()
  }

  /** Null reads as no bytes. */
  compactBytes(): Buffer {
    return this.take(Math.max(0, this.unsignedVarint() - 1))
  }

  /** Null reads as an empty array. */
  compactArray<A>(element: () => A): Array<A> {
    return this.#elements(this.unsignedVarint() - 1, element)
  }

  /** The id of a topic, as Kafka's own tools print it; undefined for the id of zeros, which means none. */
  uuid(): string | undefined {
    const id = this.take(idBytes)
    return id.every((byte) => byte === 0) ? undefined : id.toString("base64url")
  }

  /** A structure that may be left out; undefined where it is. */
  optional<A>(read: () => A): A | undefined {
    return this.int8() < 0 ? undefined : read()
  }

  /** Tagged fields (KIP-482) by their tag. */
  taggedFields(): ReadonlyMap<number, Reader> {
    const fields = new Map<number, Reader>()
    for (let left = this.unsignedVarint(); left > 0; left--) {
      fields.set(this.unsignedVarint(), new Reader(this.take(this.unsignedVarint())))
    }
    return fields
  }

  /** Passes over tagged fields. */
  tags(): void {
    for (let left = this.unsignedVarint(); left > 0; left--) {
      this.unsignedVarint()
      this.skip(this.unsignedVarint())
    }
  }

  /** The time that the broker asks the client to wait (KIP-124), which answers begin with. */
  throttle(): void {
    this.throttleMillis = this.int32()
  }

  /** The next bytes, not copied. */
  take(length: number): Buffer {
    const from = this.skip(length)
    return this.#bytes.subarray(from, from + length)
  }

  /** All that is left, not copied. */
  rest(): Buffer {
    return this.take(this.#bytes.length - this.#at)
  }

  /** Moves behind `length` bytes, and returns where they begin. */
  skip(length: number): number {
    const from = this.#at
    if (length < 0 || from + length > this.#bytes.length) {
      throw new RangeError(`${length} bytes from ${from} are not there: ${this.#bytes.length} were sent`)
    }
    this.#at = from + length
    return from
  }

  /** Each element has a byte at least, so a longer array than the bytes that are left is impossible. */
  #elements<A>(length: number, element: () => A): Array<A> {
    if (length < nullLength || length > this.#bytes.length - this.#at) throw new RangeError(`an array of ${length}`)
    const elements: Array<A> = []
    for (let left = length; left > 0; left--) elements.push(element())
    return elements
  }
}

/** Error codes by topic and partition, as OffsetCommit and TxnOffsetCommit answer them. */
export const readPartitionErrors = (reader: Reader) =>
  reader.array(() => ({
    topic: reader.string(),
    partitions: reader.array(() => ({ partition: reader.int32(), errorCode: reader.int16() }))
  }))

/** The same in flexible versions, where nothing follows them (KIP-482). */
export const readFlexiblePartitionErrors = (reader: Reader) => {
  const topics = reader.compactArray(() => {
    const topic = reader.compactString()
    const partitions = reader.compactArray(() => {
      const answer = { partition: reader.int32(), errorCode: reader.int16() }
      reader.tags()
      return answer
    })
    reader.tags()
    return { topic, partitions }
  })
  reader.tags()
  return topics
}
