/** Text to UTF-8. */

/** Short texts of ASCII alone, such as ids and names of types, are written without the engine's encoder, which takes five times as long for them. */
export const encode = (text: string): Uint8Array => {
  if (text.length > longestByHand) return encoder.encode(text)
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > lastOfAscii) return encoder.encode(text)
    bytes[at] = code
  }
  return bytes
}

const longestByHand = 64
const lastOfAscii = 0x7f
const encoder = new TextEncoder()
