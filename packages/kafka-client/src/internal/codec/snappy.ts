/** Snappy: the raw format, and the framing of xerial's snappy-java around it, which Kafka's own clients write. */
import { broken, CodecError, cut } from "./CodecError.ts"
import { findMatches, type MatchSink } from "./matchFinder.ts"
import type { OutputWindow } from "./outputWindow.ts"

const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
/** The magic bytes, a version and the oldest version that can read it. */
const xerialHeaderBytes = 16
/** The most bytes that three bytes of input can stand for: a copy of 64 bytes. */
const maxCopy = 64
const maxRatio = maxCopy / 3

const isXerial = (body: Buffer): boolean => body.length >= 8 && body.subarray(0, 8).equals(xerialMagic)

/** The length that raw data declares, and where its elements begin. The length is one that the input can yield. */
const readLength = (body: Buffer, from: number, to: number): { readonly length: number; readonly at: number } => {
  let length = 0
  let at = from
  for (let shift = 0; ; shift += 7) {
    if (at >= to) throw cut()
    if (shift > 28) throw broken("the declared length is too long")
    const byte = body[at++]!
    length += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) break
  }
  if (length > Math.ceil((to - at) * maxRatio)) throw broken(`${to - from} bytes cannot hold the declared ${length}`)
  return { length, at }
}

const numberOf = (body: Buffer, at: number, bytes: number): number => {
  let number = 0
  for (let i = bytes - 1; i >= 0; i--) number = number * 256 + body[at + i]!
  return number
}

/** Decodes the elements from `from` to `to`, with a yield for each full window. */
function* decodeRaw(body: Buffer, from: number, to: number, window: OutputWindow): Generator<void, void> {
  const declared = readLength(body, from, to)
  let { at, length: left } = declared
  window.beginStream()
  while (at < to) {
    const tag = body[at++]!
    const kind = tag & 3
    if (kind === 0) {
      let length = tag >>> 2
      if (length >= 60) {
        const extra = length - 59
        if (extra > to - at) throw cut()
        length = numberOf(body, at, extra)
        at += extra
      }
      length += 1
      if (length > to - at) throw cut()
      left -= length
      if (left < 0) throw tooMuch()
      if (length > window.room) {
        const part = yield* window.literalParts(body, at, length)
        at += part
        length -= part
      }
      window.literal(body, at, length)
      at += length
      continue
    }
    const extra = kind === 3 ? 4 : kind
    if (extra > to - at) throw cut()
    let length = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1
    const distance =
      kind === 1
        ? ((tag >>> 5) << 8) | body[at]!
        : kind === 2
          ? body[at]! | (body[at + 1]! << 8)
          : numberOf(body, at, 4)
    at += extra
    left -= length
    if (left < 0) throw tooMuch()
    if (length > window.room) length -= yield* window.matchParts(distance, length)
    window.match(distance, length)
  }
  if (left !== 0) throw broken("the data holds less than it declares")
}

const tooMuch = () => broken("the data holds more than it declares")

/** Decodes raw or framed snappy, piece by piece. */
export function* decodeSnappy(body: Buffer, window: OutputWindow): Generator<Uint8Array, void> {
  for (const [from, to] of isXerial(body) ? xerialChunks(body) : [[0, body.length] as const]) {
    for (const _ of decodeRaw(body, from, to, window)) {
      const piece = window.take()
      if (piece !== undefined) yield piece
    }
  }
  const last = window.take()
  if (last !== undefined) yield last
}

function* xerialChunks(body: Buffer): Generator<readonly [from: number, to: number]> {
  if (body.length < xerialHeaderBytes) throw cut()
  const needed = body.readInt32BE(12)
  if (needed !== 1) throw new CodecError("unknown", `framing that needs version ${needed} of snappy-java is not known`)
  let at = xerialHeaderBytes
  while (at < body.length) {
    // Streams of snappy-java may be put one behind the other.
    if (isXerial(body.subarray(at)) && body.length - at >= xerialHeaderBytes) {
      at += xerialHeaderBytes
      continue
    }
    if (body.length - at < 4) throw cut()
    const length = body.readInt32BE(at)
    at += 4
    if (length < 0 || length > body.length - at) throw broken("a chunk is longer than the data")
    yield [at, at + length]
    at += length
  }
}

/** The length of raw data as it declares it; undefined for framed data. */
export const declaredLength = (body: Buffer): number | undefined =>
  isXerial(body) ? undefined : readLength(body, 0, body.length).length

/** Writes the elements of one chunk. */
class ChunkWriter implements MatchSink {
  readonly #source: Uint8Array
  readonly #target: Uint8Array
  at: number

  constructor(source: Uint8Array, target: Uint8Array, at: number) {
    this.#source = source
    this.#target = target
    this.at = at
  }

  rest(from: number, to: number): void {
    const length = to - from - 1
    if (length < 0) return
    const target = this.#target
    if (length < 60) target[this.at++] = length << 2
    else if (length < 256) {
      target[this.at++] = 60 << 2
      target[this.at++] = length
    } else {
      target[this.at++] = 61 << 2
      target[this.at++] = length & 0xff
      target[this.at++] = length >>> 8
    }
    target.set(this.#source.subarray(from, to), this.at)
    this.at += to - from
  }

  sequence(from: number, to: number, distance: number, length: number): void {
    this.rest(from, to)
    const target = this.#target
    for (let left = length; left > 0; ) {
      const part = Math.min(left, maxCopy)
      target[this.at++] = ((part - 1) << 2) | 2
      target[this.at++] = distance & 0xff
      target[this.at++] = distance >>> 8
      left -= part
    }
  }
}

/** The size of chunks that snappy-java writes. */
const chunkBytes = 32 * 1024
const maxChunkSize = (bytes: number): number => bytes + Math.ceil(bytes / 6) + 32

/** Encodes `source` in xerial's framing. */
export const encodeSnappy = (source: Uint8Array): Buffer => {
  const chunks = Math.ceil(source.length / chunkBytes)
  const target = Buffer.allocUnsafe(xerialHeaderBytes + chunks * (maxChunkSize(chunkBytes) + 4))
  xerialMagic.copy(target)
  target.writeInt32BE(1, 8)
  target.writeInt32BE(1, 12)
  let at = xerialHeaderBytes
  for (let from = 0; from < source.length; from += chunkBytes) {
    const to = Math.min(from + chunkBytes, source.length)
    const writer = new ChunkWriter(source, target, at + 4)
    for (let length = to - from; ; length >>>= 7) {
      target[writer.at++] = length < 0x80 ? length : (length & 0x7f) | 0x80
      if (length < 0x80) break
    }
    findMatches(source, from, to, writer)
    target.writeInt32BE(writer.at - at - 4, at)
    at = writer.at
  }
  return target.subarray(0, at)
}
