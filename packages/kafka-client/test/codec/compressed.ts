/** Helpers of the tests of codecs. */
import type { CodecName } from "../../src/internal/codec/codecNames.ts"
import { decompressPieces, decompressSmall, type Pieces } from "../../src/internal/codec/decompress.ts"

export type Codec = Exclude<CodecName, "none">

export const codecs: ReadonlyArray<Codec> = ["gzip", "snappy", "lz4", "zstd"]

const maxWindowBytes = 16 * 1024 * 1024

export const readAll = async (pieces: Pieces): Promise<Buffer> => {
  const parts: Array<Uint8Array> = []
  for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) parts.push(piece)
  return Buffer.concat(parts)
}

export const inPieces = (codec: Codec, body: Buffer): Promise<Buffer> =>
  readAll(decompressPieces(codec, body, maxWindowBytes))

/** At once where that is possible, else in pieces. */
export const decompress = async (codec: Codec, body: Buffer): Promise<Buffer> =>
  decompressSmall(codec, body) ?? (await inPieces(codec, body))

/** Text that repeats here and there, of at least `length` bytes. */
export const text = (length: number, seed = 1): Buffer => {
  const lines: Array<string> = []
  let state = seed
  for (let size = 0; size < length; size += lines.at(-1)!.length) {
    state = Math.imul(state, 1_103_515_245) + 12_345
    lines.push(`{"id":${state >>> 8},"city":"Lisbon","amount":${(state >>> 4) & 0xfff}}\n`)
  }
  return Buffer.from(lines.join(""))
}
