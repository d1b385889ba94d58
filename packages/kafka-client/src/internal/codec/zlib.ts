/** Node's compression, and whether it has zstd. The first compressed batch loads it, because loading it would take several milliseconds of every start. */
import type * as Zlib from "node:zlib"
import { CodecError } from "./CodecError.ts"

let loaded: typeof Zlib | undefined

export const zlib = (): typeof Zlib => {
  loaded ??= process.getBuiltinModule("node:zlib")
  return loaded
}

/** The oldest version that this package supports has zstd, and 23.0 to 23.7 have not. */
export const requireZstd = (): void => {
  if (typeof zlib().createZstdDecompress !== "function")
    throw new CodecError("unknown", `Node.js ${process.version} has no zstd: it needs 22.15, or 23.8 and later`)
}
