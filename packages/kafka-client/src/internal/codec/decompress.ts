/** Decompresses a body: at once where it is small, and otherwise piece by piece, each when it is asked for. */
import type { Gunzip, ZstdDecompress } from "node:zlib"
import { broken, CodecError } from "./CodecError.ts"
import type { CodecName } from "./codecNames.ts"
import { decodeLz4 } from "./lz4.ts"
import { defaultHistoryBytes, OutputWindow } from "./outputWindow.ts"
import { declaredLength, decodeSnappy } from "./snappy.ts"
import { requireZstd, zlib } from "./zlib.ts"
import { type ZstdFrame, zstdFrames } from "./zstdFrames.ts"

/** The most bytes that are decompressed at once. So small a body is decompressed twice as fast on this thread as on another one. */
export const smallBytes = 256 * 1024

/** The most bytes of a piece. */
export const pieceBytes = 128 * 1024

/** The decompressed bytes, in order. */
export interface Pieces {
  /** The next bytes; undefined when there are none left. Fails with `CodecError`. */
  readonly next: () => Promise<Uint8Array | undefined>
  /** Frees the memory of a decoder that is not read to its end. */
  readonly close: () => void
}

/** Larger windows of zstd take more memory than its specification asks every decoder for. */
const commonZstdWindowBytes = 8 * 1024 * 1024

/** For bodies that are decompressed at once: they never leave bytes in it. */
let scratch: OutputWindow | undefined

/** `undefined` when the output is larger than what is decompressed at once. */
const inflate = (decode: () => Buffer): Buffer | undefined => {
  try {
    return decode()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return undefined
    throw broken((error as Error).message)
  }
}

const inflateZstd = (frames: ReadonlyArray<ZstdFrame>): Buffer | undefined => {
  const parts: Array<Buffer> = []
  let left = smallBytes
  for (const { bytes } of frames) {
    const part = inflate(() => zlib().zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, left) }))
    if (part === undefined || part.length > left) return undefined
    left -= part.length
    parts.push(part)
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}

const lzPieces = (codec: "lz4" | "snappy", body: Buffer, window: OutputWindow): Generator<Uint8Array, void> =>
  codec === "lz4" ? decodeLz4(body, window) : decodeSnappy(body, window)

const decodeAtOnce = (codec: "lz4" | "snappy", body: Buffer): Buffer | undefined => {
  scratch ??= new OutputWindow(smallBytes)
  scratch.reset()
  const pieces = lzPieces(codec, body, scratch)
  const first = pieces.next()
  if (first.done === true) return Buffer.alloc(0)
  return pieces.next().done === true
    ? Buffer.from(first.value.buffer, first.value.byteOffset, first.value.length)
    : undefined
}

/** Decompresses a body at once. Undefined when that takes more than 256 KiB; then `decompressPieces` does it. Throws `CodecError`. */
export const decompressSmall = (codec: Exclude<CodecName, "none">, body: Buffer): Buffer | undefined => {
  if (body.length > smallBytes) return undefined
  switch (codec) {
    case "gzip":
      return inflate(() => zlib().gunzipSync(body, { maxOutputLength: smallBytes }))
    case "zstd":
      requireZstd()
      return inflateZstd(Array.from(zstdFrames(body)))
    default:
      return decodeAtOnce(codec, body)
  }
}

const closed = (): void => {}

/** Reads a stream of zlib, which runs on another thread and stops while nobody reads. */
const streamPieces = (stream: Gunzip | ZstdDecompress, body: Buffer): Pieces => {
  stream.end(body)
  const pieces: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]()
  return {
    next: async () => {
      try {
        const next = await pieces.next()
        return next.done === true ? undefined : next.value
      } catch (error) {
        throw broken((error as Error).message)
      }
    },
    close: () => stream.destroy()
  }
}

/** A stream holds one piece that nobody has asked for yet. */
const streamOptions = { chunkSize: pieceBytes, highWaterMark: 1 }

const zstdPieces = (body: Buffer, maxWindowBytes: number): Pieces => {
  requireZstd()
  const frames = zstdFrames(body)
  let current: Pieces | undefined
  const next = async (): Promise<Uint8Array | undefined> => {
    while (true) {
      const piece = await current?.next()
      if (piece !== undefined) return piece
      const frame = frames.next()
      if (frame.done === true) return undefined
      const { bytes, windowBytes } = frame.value
      if (windowBytes > Math.max(maxWindowBytes, commonZstdWindowBytes))
        throw new CodecError("tooLarge", `decoding takes a window of ${windowBytes} bytes`)
      current = streamPieces(zlib().createZstdDecompress(streamOptions), bytes)
    }
  }
  return { next, close: () => current?.close() }
}

/** Reads all again where a window turns out to keep too little. */
const snappyPieces = (body: Buffer, maxWindowBytes: number): Pieces => {
  let pieces = decodeSnappy(body, new OutputWindow(pieceBytes))
  let given = 0
  const rewind = (failed: unknown): void => {
    const length = failed instanceof CodecError && failed.failure === "tooFar" ? declaredLength(body) : undefined
    if (length === undefined || length > maxWindowBytes) throw failed
    pieces = decodeSnappy(body, new OutputWindow(pieceBytes, length))
    for (let skipped = 0; skipped < given; ) skipped += (pieces.next().value as Uint8Array).length
  }
  return {
    next: async () => {
      let next: IteratorResult<Uint8Array, void>
      try {
        next = pieces.next()
      } catch (failed) {
        rewind(failed)
        next = pieces.next()
      }
      if (next.done === true) return undefined
      given += next.value.length
      return next.value
    },
    close: closed
  }
}

const lz4Pieces = (body: Buffer): Pieces => {
  const pieces = decodeLz4(body, new OutputWindow(pieceBytes, defaultHistoryBytes))
  return {
    next: async () => {
      const next = pieces.next()
      return next.done === true ? undefined : next.value
    },
    close: closed
  }
}

/**
 * Decompresses a body of any length piece by piece. `maxWindowBytes`: what a decoder may keep of its output, in bytes; 64 KiB for LZ4 and 32 KiB for gzip
 * are enough always. Throws `CodecError`.
 */
export const decompressPieces = (codec: Exclude<CodecName, "none">, body: Buffer, maxWindowBytes: number): Pieces => {
  switch (codec) {
    case "gzip":
      return streamPieces(zlib().createGunzip(streamOptions), body)
    case "zstd":
      return zstdPieces(body, maxWindowBytes)
    case "snappy":
      return snappyPieces(body, maxWindowBytes)
    case "lz4":
      return lz4Pieces(body)
  }
}
