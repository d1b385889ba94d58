/** The frames of zstd data. Node.js decodes only the first one and allocates what a header asks for, so the bounds of each are found here first. */
import { broken } from "./CodecError.ts"

const frameMagic = 0xfd2fb528
/** Magic numbers of skippable frames differ in the last four bits. */
const skippableMagic = 0x184d2a50
/** The most that one block holds, decoded. */
const maxBlockBytes = 128 * 1024

export interface ZstdFrame {
  readonly bytes: Buffer
  /** Memory that decoding it takes, in bytes. */
  readonly windowBytes: number
  /** The most that it holds, decoded. */
  readonly maxContentBytes: number
}

const cut = () => broken("the data ends too early")

/** Reads the header of a frame. Returns where its blocks begin. */
const readHeader = (body: Buffer, from: number) => {
  const descriptor = body[from + 4]!
  const isSingleSegment = (descriptor & 0x20) !== 0
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >>> 6]!
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!
  let at = from + 5
  const end = at + (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes
  if (end > body.length) throw cut()
  let windowBytes = 0
  if (!isSingleSegment) {
    const window = body[at++]!
    windowBytes = 2 ** (10 + (window >>> 3)) * (1 + (window & 7) / 8)
  }
  const sizeAt = at + dictionaryBytes
  const contentBytes =
    sizeBytes === 0
      ? undefined
      : sizeBytes === 8
        ? Number(body.readBigUInt64LE(sizeAt))
        : body.readUIntLE(sizeAt, sizeBytes) + (sizeBytes === 2 ? 256 : 0)
  if (isSingleSegment) windowBytes = contentBytes!
  return { end, windowBytes, contentBytes, hasChecksum: (descriptor & 4) !== 0 }
}

const readFrame = (body: Buffer, from: number): ZstdFrame => {
  if (body.length - from < 6) throw cut()
  const { end, windowBytes, contentBytes, hasChecksum } = readHeader(body, from)
  let at = end
  let maxContentBytes = 0
  for (let isLast = false; !isLast; ) {
    if (body.length - at < 3) throw cut()
    const block = body.readUIntLE(at, 3)
    isLast = (block & 1) !== 0
    const kind = (block >>> 1) & 3
    const size = block >>> 3
    if (kind === 3 || size > maxBlockBytes) throw broken("a zstd block is not legal")
    // A block of kind 1 is one byte that repeats.
    at += 3 + (kind === 1 ? 1 : size)
    maxContentBytes += kind === 2 ? maxBlockBytes : size
  }
  if (hasChecksum) at += 4
  if (at > body.length) throw cut()
  if (contentBytes !== undefined && contentBytes > maxContentBytes)
    throw broken(`${at - from} bytes cannot hold the declared ${contentBytes}`)
  return { bytes: body.subarray(from, at), windowBytes: Math.min(windowBytes, maxContentBytes), maxContentBytes }
}

/** The frames of `body`, without skippable ones. */
export function* zstdFrames(body: Buffer): Generator<ZstdFrame, void> {
  let at = 0
  while (at < body.length) {
    if (body.length - at < 8) throw cut()
    const magic = body.readUInt32LE(at)
    if (magic === frameMagic) {
      const frame = readFrame(body, at)
      yield frame
      at += frame.bytes.length
    } else if ((magic & 0xfffffff0) >>> 0 === skippableMagic) at += 8 + body.readUInt32LE(at + 4)
    else throw broken("there is no zstd frame")
  }
  if (at !== body.length) throw cut()
}
