/** xxHash with 32 bits and seed 0: the checksum of LZ4 frames. Takes bytes in any number of parts. */

const [prime1, prime2, prime3, prime4, prime5] = [0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1]
const stripe = 16

const rotate = (value: number, bits: number): number => (value << bits) | (value >>> (32 - bits))

const word = (bytes: Uint8Array, at: number): number =>
  bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)

const round = (lane: number, input: number): number =>
  Math.imul(rotate((lane + Math.imul(input, prime2)) | 0, 13), prime1)

export class XxHash32 {
  readonly #lanes = Int32Array.of(prime1 + prime2, prime2, 0, -prime1)
  /** Bytes that do not fill a stripe yet. */
  readonly #rest = new Uint8Array(stripe)
  #restLength = 0
  #total = 0

  update(bytes: Uint8Array): void {
    this.#total += bytes.length
    let at = 0
    if (this.#restLength > 0) {
      at = Math.min(stripe - this.#restLength, bytes.length)
      this.#rest.set(bytes.subarray(0, at), this.#restLength)
      this.#restLength += at
      if (this.#restLength < stripe) return
      this.#stripes(this.#rest, 0, stripe)
    }
    const end = at + ((bytes.length - at) & -stripe)
    this.#stripes(bytes, at, end)
    this.#rest.set(bytes.subarray(end))
    this.#restLength = bytes.length - end
  }

  #stripes(bytes: Uint8Array, from: number, to: number): void {
    const lanes = this.#lanes
    let [a, b, c, d] = [lanes[0]!, lanes[1]!, lanes[2]!, lanes[3]!]
    for (let at = from; at < to; at += stripe) {
      a = round(a, word(bytes, at))
      b = round(b, word(bytes, at + 4))
      c = round(c, word(bytes, at + 8))
      d = round(d, word(bytes, at + 12))
    }
    lanes.set([a, b, c, d])
  }

  /** The checksum of all bytes so far, as an unsigned number. */
  digest(): number {
    const [a, b, c, d] = this.#lanes
    let hash = this.#total >= stripe ? rotate(a!, 1) + rotate(b!, 7) + rotate(c!, 12) + rotate(d!, 18) : prime5
    hash = (hash + this.#total) | 0
    const rest = this.#rest
    let at = 0
    for (; at + 4 <= this.#restLength; at += 4) {
      hash = Math.imul(rotate((hash + Math.imul(word(rest, at), prime3)) | 0, 17), prime4)
    }
    for (; at < this.#restLength; at++) {
      hash = Math.imul(rotate((hash + Math.imul(rest[at]!, prime5)) | 0, 11), prime1)
    }
    hash = Math.imul(hash ^ (hash >>> 15), prime2)
    hash = Math.imul(hash ^ (hash >>> 13), prime3)
    return (hash ^ (hash >>> 16)) >>> 0
  }
}

export const xxHash32 = (bytes: Uint8Array): number => {
  const hash = new XxHash32()
  hash.update(bytes)
  return hash.digest()
}
