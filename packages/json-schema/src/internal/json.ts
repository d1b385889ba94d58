/** JSON text in UTF-8. */

/** Throws when the bytes are not UTF-8 or not JSON. */
export const parse = (bytes: Uint8Array): unknown => {
  if (bytes.length === 0) throw new Error("zero bytes are not JSON")
  return JSON.parse(decoder.decode(bytes))
}

export const print = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value))

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })
