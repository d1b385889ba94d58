/**
 * Decodes the names of headers. Successive records mostly have the same names in the same order, and comparing a name with the last one at its position
 * costs less than decoding it.
 */

/** Names are remembered for this many headers of a record, and up to this length: memory that a hostile record cannot exceed. */
const rememberedHeaders = 64
const rememberedLength = 64

/** The last name at each position in a record. */
const lastNames = new Array<string>(rememberedHeaders).fill("")

/** The name of the header with this index in its record; its bytes are UTF-8. */
export const headerName = (bytes: Buffer, at: number, length: number, index: number): string => {
  if (index >= rememberedHeaders || length > rememberedLength) return bytes.toString("utf8", at, at + length)
  const last = lastNames[index]!
  if (isSameAscii(last, bytes, at, length)) return last
  const name = bytes.toString("utf8", at, at + length)
  lastNames[index] = name
  return name
}

/** Whether the bytes are this text. Only ASCII is recognised: its bytes are its character codes. */
const isSameAscii = (text: string, bytes: Buffer, at: number, length: number): boolean => {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) {
    const byte = bytes[at + i]!
    if (byte !== text.charCodeAt(i) || byte > 0x7f) return false
  }
  return true
}
