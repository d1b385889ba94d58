/** Compresses a body with the settings that Kafka's own producer has by default. */
import { promisify } from "node:util"
import type { CodecError } from "./CodecError.ts"
import { type CodecName, isCodecName } from "./codecNames.ts"
import { encodeLz4 } from "./lz4.ts"
import { encodeSnappy } from "./snappy.ts"
import { requireZstd, zlib } from "./zlib.ts"

/** Up to here gzip and zstd take less time than another thread takes to be asked. */
const inlineBytes = 32 * 1024

const zstd = (body: Uint8Array): Promise<Buffer> | Buffer => {
  requireZstd()
  return body.length > inlineBytes ? promisify(zlib().zstdCompress)(body) : zlib().zstdCompressSync(body)
}

/** Why nothing can be compressed with a codec; undefined for one that can be used. `name` may come from a program without types. */
export const unusableCodec = (name: string): string | undefined => {
  if (!isCodecName(name)) return `codec '${name}' is not known`
  try {
    if (name === "zstd") requireZstd()
    return undefined
  } catch (error) {
    return (error as CodecError).message
  }
}

/** Compresses on this thread, or for long bodies of gzip and zstd on another one. Throws `CodecError` where Node.js lacks the codec. */
export const compress = (codec: Exclude<CodecName, "none">, body: Uint8Array): Promise<Buffer> | Buffer => {
  switch (codec) {
    case "gzip":
      return body.length > inlineBytes ? promisify(zlib().gzip)(body) : zlib().gzipSync(body)
    case "snappy":
      return encodeSnappy(body)
    case "lz4":
      return encodeLz4(body)
    case "zstd":
      return zstd(body)
  }
}
