/** Header names as they are on the wire. Names repeat from record to record, so each is encoded once and cached. */
import { varintSize, writeVarint } from "./varint.ts"

const cache = new Map<string, Uint8Array>()
const maxCached = 500
const maxCachedLength = 128

/** The name in UTF-8, after its length. Names above 128 characters are not cached, and the cache holds at most 500: names may come from records. */
export const encodedName = (name: string): Uint8Array => {
  const cached = cache.get(name)
  if (cached !== undefined) return cached
  const text = Buffer.from(name)
  const encoded = new Uint8Array(varintSize(text.length) + text.length)
  encoded.set(text, writeVarint(encoded, 0, text.length))
  if (name.length > maxCachedLength) return encoded
  if (cache.size >= maxCached) cache.clear()
  cache.set(name, encoded)
  return encoded
}
