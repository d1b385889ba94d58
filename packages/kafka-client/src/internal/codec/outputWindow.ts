/**
 * The output of an LZ decoder: copies of input (literals) and of earlier output (matches), taken piece by piece. It keeps as much of what was taken as a
 * match may reach back to, and nothing more.
 */
import { broken, CodecError } from "./CodecError.ts"

/** LZ4 reaches back 64 KiB, and so does snappy where it works on blocks of 64 KiB, as most writers do. */
export const defaultHistoryBytes = 64 * 1024

/** Up to this many bytes a loop is faster than a call. */
const loopBytes = 24

export class OutputWindow {
  readonly #bytes: Uint8Array
  readonly #pieceBytes: number
  readonly #historyBytes: number
  #at = 0
  /** Up to here the bytes were taken. */
  #takenTo = 0
  /** Up to here bytes of the next piece may be written. */
  #limit: number
  /** A match may not reach back behind this position. */
  #streamFrom = 0
  /** Whether the beginning of the stream was dropped already. */
  #isCut = false

  /** `pieceBytes`: the most bytes of one piece. */
  constructor(pieceBytes: number, historyBytes = defaultHistoryBytes) {
    this.#bytes = Buffer.allocUnsafeSlow(pieceBytes + historyBytes)
    this.#pieceBytes = pieceBytes
    this.#historyBytes = historyBytes
    this.#limit = pieceBytes
  }

  /** Bytes that fit until the piece must be taken. */
  get room(): number {
    return this.#limit - this.#at
  }

  /** A stream begins whose matches do not reach back into what was written before. */
  beginStream(): void {
    this.#streamFrom = this.#at
    this.#isCut = false
  }

  /** Appends `length` bytes of `source` from position `from` on. Source and room must have them. */
  literal(source: Uint8Array, from: number, length: number): void {
    const bytes = this.#bytes
    const at = this.#at
    this.#at = at + length
    if (length > loopBytes) bytes.set(source.subarray(from, from + length), at)
    else for (let i = 0; i < length; i++) bytes[at + i] = source[from + i]!
  }

  /**
   * For literals that do not fit (a generator for each element would cost more than its bytes): appends them piece by piece, with a yield for each full one, until the
   * rest fits. Returns how many bytes of `source` it has appended.
   */
  *literalParts(source: Uint8Array, from: number, length: number): Generator<void, number> {
    let written = 0
    while (length - written > this.room) {
      const part = this.room
      this.literal(source, from + written, part)
      written += part
      yield
    }
    return written
  }

  /** The same for a match that does not fit: appends it piece by piece, with a yield for each full one, until the rest fits. Returns how many bytes it has appended. */
  *matchParts(distance: number, length: number): Generator<void, number> {
    let written = 0
    while (length - written > this.room) {
      const part = this.room
      if (part > 0) this.match(distance, part)
      written += part
      yield
    }
    return written
  }

  /** Appends `length` bytes from `distance` bytes back. A distance shorter than the length repeats bytes. The room must have them. */
  match(distance: number, length: number): void {
    const bytes = this.#bytes
    let at = this.#at
    let from = at - distance
    if (distance === 0 || from < this.#streamFrom) throw this.#unreachable(distance)
    const end = at + length
    this.#at = end
    if (length <= loopBytes) {
      while (at < end) bytes[at++] = bytes[from++]!
      return
    }
    // Each copy doubles what the next one can copy.
    while (at < end) {
      const part = Math.min(end - at, at - from)
      bytes.copyWithin(at, from, from + part)
      at += part
    }
  }

  #unreachable(distance: number): CodecError {
    return this.#isCut && distance > this.#historyBytes
      ? new CodecError("tooFar", `matches reach back further than ${this.#historyBytes} bytes`)
      : broken("a match reaches back behind the beginning of the data")
  }

  /** A copy of what was written since the last piece; undefined when that is nothing. */
  take(): Uint8Array | undefined {
    if (this.#at === this.#takenTo) return undefined
    const piece = Buffer.from(this.#bytes.subarray(this.#takenTo, this.#at))
    const keep = Math.min(this.#historyBytes, this.#at - this.#streamFrom)
    const dropped = this.#at - keep
    this.#bytes.copyWithin(0, dropped, this.#at)
    this.#isCut ||= dropped > this.#streamFrom
    this.#streamFrom = 0
    this.#at = this.#takenTo = keep
    this.#limit = keep + this.#pieceBytes
    return piece
  }

  /** Forgets everything. */
  reset(): void {
    this.#at = this.#takenTo = this.#streamFrom = 0
    this.#limit = this.#pieceBytes
    this.#isCut = false
  }
}
