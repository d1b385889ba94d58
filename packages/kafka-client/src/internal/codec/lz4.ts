/** LZ4: the frame format, as Kafka writes it since record batches have magic 2, and the block format in it. Independent and linked blocks, all checksums. */
import { broken, cut } from "./CodecError.ts"
import { blockBytes, findMatches, type MatchSink } from "./matchFinder.ts"
import type { OutputWindow } from "./outputWindow.ts"
import { XxHash32, xxHash32 } from "./xxHash32.ts"

const frameMagic = 0x184d2204
/** Magic numbers of skippable frames differ in the last four bits. */
const skippableMagic = 0x184d2a50
const minMatch = 4
/** The largest blocks, by the number in the frame's descriptor. */
const blockSizes: ReadonlyMap<number, number> = new Map([4, 5, 6, 7].map((id) => [id, 1 << (2 * id + 8)]))

/** The position in a block. A length of 15 in a nibble is followed by bytes to add, the last of which is not 255. */
class Block {
  readonly bytes: Uint8Array
  readonly end: number
  at: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  length(nibble: number): number {
    if (nibble < 15) return nibble
    let length = 15
    let byte: number
    do {
      if (this.at >= this.end) throw cut()
      byte = this.bytes[this.at++]!
      length += byte
    } while (byte === 255)
    return length
  }
}

/** Decodes one block, with a yield for each full window. */
function* decodeBlock(block: Block, window: OutputWindow, maxBytes: number): Generator<void, void> {
  const { bytes, end } = block
  let left = maxBytes
  while (block.at < end) {
    const token = bytes[block.at++]!
    let literals = block.length(token >>> 4)
    if (literals > end - block.at) throw cut()
    left -= literals
    if (left < 0) throw tooLong()
    if (literals > window.room) {
      const part = yield* window.literalParts(bytes, block.at, literals)
      block.at += part
      literals -= part
    }
    window.literal(bytes, block.at, literals)
    block.at += literals
    // The last sequence is literals alone.
    if (block.at === end) return
    if (end - block.at < 2) throw cut()
    const distance = bytes[block.at]! | (bytes[block.at + 1]! << 8)
    block.at += 2
    let length = block.length(token & 15) + minMatch
    left -= length
    if (left < 0) throw tooLong()
    if (length > window.room) length -= yield* window.matchParts(distance, length)
    window.match(distance, length)
  }
  throw cut()
}

const tooLong = () => broken("a block holds more than the frame allows")

interface Descriptor {
  readonly linked: boolean
  readonly blockChecksums: boolean
  readonly contentSize: number | undefined
  readonly contentChecksum: boolean
  readonly maxBlockBytes: number
  /** Where the blocks begin. */
  readonly end: number
}

const readDescriptor = (body: Buffer, from: number): Descriptor => {
  if (body.length - from < 7) throw cut()
  const flags = body[from + 4]!
  if (flags >>> 6 !== 1) throw broken(`version ${flags >>> 6} of the LZ4 frame format is not known`)
  if ((flags & 1) !== 0) throw broken("an LZ4 frame with a dictionary cannot be read")
  const hasSize = (flags & 8) !== 0
  const end = from + (hasSize ? 15 : 7)
  if (body.length < end) throw cut()
  const checksum = (xxHash32(body.subarray(from + 4, end - 1)) >>> 8) & 0xff
  if (checksum !== body[end - 1]) throw broken("the checksum of the LZ4 frame's descriptor is wrong")
  const maxBlockBytes = blockSizes.get((body[from + 5]! >>> 4) & 7)
  if (maxBlockBytes === undefined) throw broken("the LZ4 frame names no size of blocks")
  return {
    linked: (flags & 0x20) === 0,
    blockChecksums: (flags & 0x10) !== 0,
    contentSize: hasSize ? Number(body.readBigUInt64LE(from + 6)) : undefined,
    contentChecksum: (flags & 4) !== 0,
    maxBlockBytes,
    end
  }
}

/** Decodes the blocks of one frame. Returns where the frame ends. */
function* decodeFrame(body: Buffer, from: number, window: OutputWindow): Generator<Uint8Array, number> {
  const { linked, blockChecksums, contentSize, contentChecksum, maxBlockBytes, end } = readDescriptor(body, from)
  const hash = new XxHash32()
  let written = 0
  let at = end
  const taken = (): ReadonlyArray<Uint8Array> => {
    const piece = window.take()
    if (piece === undefined) return []
    written += piece.length
    if (contentChecksum) hash.update(piece)
    return [piece]
  }
  window.beginStream()
  while (true) {
    if (body.length - at < 4) throw cut()
    const size = body.readUInt32LE(at)
    at += 4
    if (size === 0) break
    const length = size & 0x7fffffff
    if (length > maxBlockBytes || length + (blockChecksums ? 4 : 0) > body.length - at) throw cut()
    if (blockChecksums && xxHash32(body.subarray(at, at + length)) !== body.readUInt32LE(at + length))
      throw broken("the checksum of an LZ4 block is wrong")
    if (!linked) window.beginStream()
    if (size === length)
      for (const _ of decodeBlock(new Block(body, at, at + length), window, maxBlockBytes)) yield* taken()
    else
      for (let copied = 0; copied < length; ) {
        if (window.room === 0) yield* taken()
        const part = Math.min(window.room, length - copied)
        window.literal(body, at + copied, part)
        copied += part
      }
    at += length + (blockChecksums ? 4 : 0)
  }
  yield* taken()
  if (contentSize !== undefined && written !== contentSize)
    throw broken("an LZ4 frame does not hold as much as it says")
  if (!contentChecksum) return at
  if (body.length - at < 4) throw cut()
  if (body.readUInt32LE(at) !== hash.digest()) throw broken("the checksum of an LZ4 frame is wrong")
  return at + 4
}

/** Decodes all frames of `body`, piece by piece. */
export function* decodeLz4(body: Buffer, window: OutputWindow): Generator<Uint8Array, void> {
  let at = 0
  while (at < body.length) {
    if (body.length - at < 8) throw cut()
    const magic = body.readUInt32LE(at)
    if (magic === frameMagic) at = yield* decodeFrame(body, at, window)
    else if ((magic & 0xfffffff0) >>> 0 === skippableMagic) at += 8 + body.readUInt32LE(at + 4)
    else throw broken("there is no LZ4 frame")
  }
  if (at !== body.length) throw cut()
}

/** Writes sequences of one block. */
class BlockWriter implements MatchSink {
  readonly #source: Uint8Array
  readonly #target: Uint8Array
  at: number

  constructor(source: Uint8Array, target: Uint8Array, at: number) {
    this.#source = source
    this.#target = target
    this.at = at
  }

  #length(length: number): void {
    let left = length - 15
    for (; left >= 255; left -= 255) this.#target[this.at++] = 255
    this.#target[this.at++] = left
  }

  #literals(from: number, to: number, matchNibble: number): void {
    const length = to - from
    this.#target[this.at++] = (Math.min(length, 15) << 4) | matchNibble
    if (length >= 15) this.#length(length)
    this.#target.set(this.#source.subarray(from, to), this.at)
    this.at += length
  }

  sequence(from: number, to: number, distance: number, length: number): void {
    const more = length - minMatch
    this.#literals(from, to, Math.min(more, 15))
    this.#target[this.at++] = distance & 0xff
    this.#target[this.at++] = distance >>> 8
    if (more >= 15) this.#length(more)
  }

  rest(from: number, to: number): void {
    this.#literals(from, to, 0)
  }
}

const descriptorBytes = 7
/** Incompressible literals take a token and one byte more for each 255. */
const maxBlockSize = (bytes: number): number => bytes + Math.ceil(bytes / 255) + 16

/** Encodes `source` as one frame of independent blocks of 64 KiB, without checksums of the content, as Kafka's own producer does. */
export const encodeLz4 = (source: Uint8Array): Buffer => {
  const blocks = Math.ceil(source.length / blockBytes)
  const target = Buffer.allocUnsafe(descriptorBytes + blocks * (maxBlockSize(blockBytes) + 4) + 4)
  target.writeUInt32LE(frameMagic, 0)
  target[4] = 0x60
  target[5] = 0x40
  target[6] = (xxHash32(target.subarray(4, 6)) >>> 8) & 0xff
  let at = descriptorBytes
  for (let from = 0; from < source.length; from += blockBytes) {
    const to = Math.min(from + blockBytes, source.length)
    const writer = new BlockWriter(source, target, at + 4)
    findMatches(source, from, to, writer)
    const size = writer.at - at - 4
    if (size < to - from) {
      target.writeUInt32LE(size, at)
      at = writer.at
    } else {
      target.writeUInt32LE((0x80000000 | (to - from)) >>> 0, at)
      target.set(source.subarray(from, to), at + 4)
      at += 4 + to - from
    }
  }
  target.writeUInt32LE(0, at)
  return target.subarray(0, at + 4)
}
