/**
 * The types of Kafka's flexible API versions (KIP-482), which kafkajs does not encode: compact strings and arrays, and tagged fields. No tagged field is written, and all
 * that are read are passed over.
 */
import type { Encoded } from "./kafkajsInternals.ts"

/** Builds the body of a request. It begins with the tagged fields of the request's header, which kafkajs does not write. */
export class FlexibleWriter {
  readonly #parts: Array<Buffer> = [Buffer.of(0)]

  bytes(bytes: Buffer): this {
    this.#parts.push(bytes)
    return this
  }

  boolean(value: boolean): this {
    return this.bytes(Buffer.of(value ? 1 : 0))
  }

  /** The length of a compact string or array, plus 1. */
  size(length: number): this {
    const bytes: Array<number> = []
    let rest = length + 1
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
    bytes.push(rest)
    return this.bytes(Buffer.from(bytes))
  }

  string(text: string): this {
    const bytes = Buffer.from(text)
    return this.size(bytes.length).bytes(bytes)
  }

  noTags(): this {
    return this.bytes(Buffer.of(0))
  }

  get encoded(): Encoded {
    const body = Buffer.concat(this.#parts)
    return { buf: body, buffer: body }
  }
}

/** Reads an answer from its first byte on. Throws a RangeError when the answer ends too early. */
export class FlexibleReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.tags()
  }

  /** Moves behind `length` bytes, and returns where they begin. */
  skip(length: number): number {
    const from = this.#at
    if (from + length > this.#bytes.length) throw new RangeError(`the answer ends after ${this.#bytes.length} bytes`)
    this.#at += length
    return from
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.skip(2))
  }

  take(length: number): Buffer {
    const from = this.skip(length)
    return this.#bytes.subarray(from, from + length)
  }

  unsigned(): number {
    let value = 0
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.#bytes.readUInt8(this.skip(1))
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }

  /** Null reads as the empty text. */
  string(): string {
    return this.take(Math.max(0, this.unsigned() - 1)).toString()
  }

  array<A>(element: () => A): Array<A> {
    const elements: Array<A> = []
    for (let left = this.unsigned() - 1; left > 0; left--) elements.push(element())
    return elements
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.skip(4))
  }

  int32s(): void {
    this.skip(4 * Math.max(0, this.unsigned() - 1))
  }

  tags(): void {
    for (let left = this.unsigned(); left > 0; left--) {
      this.unsigned()
      this.skip(this.unsigned())
    }
  }
}
