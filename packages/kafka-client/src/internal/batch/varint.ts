/** Kafka's zig-zag variable-length integers, up to the 53 bits that a JavaScript number holds exactly (timestamps need 42). */

/** Reads numbers from bytes, one after the other, from position `at` on. */
export class VarintReader {
  readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

  /** Reads the number at `at` and moves behind it. */
  number(): number {
    const bytes = this.bytes
    let byte = bytes[this.at++]!
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1)
    let raw = byte & 0x7f
    let factor = 0x80
    do {
      byte = bytes[this.at++]!
      raw += (byte & 0x7f) * factor
      factor *= 0x80
    } while (byte >= 0x80)
    return raw % 2 === 0 ? raw / 2 : -(raw + 1) / 2
  }
}

const zigzag = (value: number): number => (value >= 0 ? value * 2 : -value * 2 - 1)

/** Bytes that a number of 0 or more takes without zig-zag, as Kafka's flexible versions write lengths (KIP-482). */
export const unsignedVarintSize = (value: number): number => {
  let raw = value
  let size = 1
  while (raw >= 0x80) {
    raw = Math.floor(raw / 0x80)
    size++
  }
  return size
}

/** Writes a number of 0 or more without zig-zag, and returns the position after it. */
export const writeUnsignedVarint = (bytes: Uint8Array, at: number, value: number): number => {
  let raw = value
  while (raw >= 0x80) {
    bytes[at++] = (raw % 0x80) | 0x80
    raw = Math.floor(raw / 0x80)
  }
  bytes[at++] = raw
  return at
}

/** Bytes that a number takes. */
export const varintSize = (value: number): number => unsignedVarintSize(zigzag(value))

/** Writes a number and returns the position after it. */
export const writeVarint = (bytes: Uint8Array, at: number, value: number): number =>
  writeUnsignedVarint(bytes, at, zigzag(value))
