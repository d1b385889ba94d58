/** Kafka's zig-zag variable-length integers, within what a JavaScript number holds exactly (53 bits; timestamps need 42). */

/** A position in bytes from which numbers are read. */
export class VarintReader {
  readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

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

export const varintSize = (value: number): number => {
  let raw = zigzag(value)
  let size = 1
  while (raw >= 0x80) {
    raw = Math.floor(raw / 0x80)
    size++
  }
  return size
}

/** Writes a number and returns the position behind it. */
export const writeVarint = (bytes: Uint8Array, at: number, value: number): number => {
  let raw = zigzag(value)
  while (raw >= 0x80) {
    bytes[at++] = (raw % 0x80) | 0x80
    raw = Math.floor(raw / 0x80)
  }
  bytes[at++] = raw
  return at
}
