/** Confluent's wire format: a zero byte, the schema's id as a big-endian int32, then the body. */

const magic = 0
const headerLength = 5

/** The id and the body. Throws with a message that says what is wrong with the bytes. */
export const read = (bytes: Uint8Array): { readonly id: number; readonly body: Uint8Array } => {
  if (bytes[0] !== magic) {
    const found = bytes.length === 0 ? "zero bytes" : `byte ${bytes[0]} at the beginning`
    throw new Error(`expected the magic byte 0 of a schema registry's wire format, found ${found}`)
  }
  if (bytes.length < headerLength) throw new Error(`expected a schema id of 4 bytes, found ${bytes.length - 1}`)
  const id = view(bytes).getInt32(1)
  if (id < 0) throw new Error(`expected a schema id of 0 or more, found ${id}`)
  return { id, body: bytes.subarray(headerLength) }
}

/** The id; undefined when the bytes are not in the wire format. */
export const idOf = (bytes: Uint8Array | null): number | undefined => {
  if (bytes === null || bytes.length < headerLength || bytes[0] !== magic) return undefined
  const id = view(bytes).getInt32(1)
  return id < 0 ? undefined : id
}

export const write = (id: number, body: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(headerLength + body.length)
  view(bytes).setInt32(1, id)
  bytes.set(body, headerLength)
  return bytes
}

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
