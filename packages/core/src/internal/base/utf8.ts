/** Text to UTF-8. */

/**
 * The bytes of a text; undefined where UTF-8 cannot carry it, since it has a lone surrogate. Short texts of ASCII alone, such as ids and names of types, are written without
 * the engine's encoder, which takes five times as long for them.
 */
export const encode = (text: string): Uint8Array | undefined => {
  if (text.length > longestByHand) return encodeAny(text)
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > lastOfAscii) return encodeAny(text)
    bytes[at] = code
  }
  return bytes
}

const encodeAny = (text: string): Uint8Array | undefined => (text.isWellFormed() ? encoder.encode(text) : undefined)

const longestByHand = 64
const lastOfAscii = 0x7f
const encoder = new TextEncoder()
