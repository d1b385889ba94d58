/** Whether this Node.js has zstd. The oldest version that this package supports has it, and 23.0 to 23.7 have not. */
import * as zlib from "node:zlib"
import { CodecError } from "./CodecError.ts"

export const requireZstd = (): void => {
  if (typeof zlib.createZstdDecompress !== "function")
    throw new CodecError("unknown", `Node.js ${process.version} has no zstd: it needs 22.15, or 23.8 and later`)
}
