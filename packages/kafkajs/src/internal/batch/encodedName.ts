/** Names of headers as they are on the wire: they repeat from record to record, so that each is encoded once. */
import { varintSize, writeVarint } from "./varint.ts"

const known = new Map<string, Uint8Array>()
const mostKnown = 500
const longestKnown = 128

/** In UTF-8, with its length in front. What is longer than names are is not kept, and neither are more than there can be. */
export const encodedName = (name: string): Uint8Array => {
  const before = known.get(name)
  if (before !== undefined) return before
  const text = Buffer.from(name)
  const encoded = new Uint8Array(varintSize(text.length) + text.length)
  encoded.set(text, writeVarint(encoded, 0, text.length))
  if (name.length > longestKnown) return encoded
  if (known.size >= mostKnown) known.clear()
  known.set(name, encoded)
  return encoded
}
