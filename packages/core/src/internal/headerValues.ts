/**
 * Reads header values that somebody else may have written. Nothing here throws: what is missing, malformed or out of range is undefined.
 */

export type HeaderValue = Uint8Array | null | undefined

export const maxInt32 = 2 ** 31 - 1
export const maxInt64 = 2n ** 63n - 1n

/** The last moment that a `Date` can show, in epoch milliseconds. */
const lastMillis = 8_640_000_000_000_000

const latin1 = new TextDecoder("latin1")
const utf8 = new TextDecoder()

/** UTF-8 text; bytes that are none become U+FFFD. */
export const text = (value: HeaderValue): string | undefined =>
  value === null || value === undefined ? undefined : utf8.decode(value)

/** A whole number from `least` to `most` in decimal text. */
export const wholeNumber = (value: HeaderValue, least: number, most: number): number | undefined => {
  const decimal = digits(value)
  return decimal === undefined ? undefined : within(Number(decimal), least, most)
}

/** Epoch milliseconds in decimal text, within what a `Date` can show. */
export const timestamp = (value: HeaderValue): number | undefined => wholeNumber(value, 0, lastMillis)

/** An exact offset in decimal text. */
export const offset = (value: HeaderValue): bigint | undefined => {
  const decimal = digits(value)
  return decimal === undefined ? undefined : exactOffset(BigInt(decimal))
}

/** A number in `size` bytes, big-endian, as Spring writes it: 0 or more. */
export const bigEndian = (value: HeaderValue, size: number): bigint | undefined => {
  if (value === null || value === undefined || value.length !== size) return undefined
  const number = value.reduce((all, byte) => all * 256n + BigInt(byte), 0n)
  return number < 1n << BigInt(size * 8 - 1) ? number : undefined
}

/** Epoch milliseconds in eight bytes. */
export const bigEndianTimestamp = (value: HeaderValue): number | undefined => {
  const millis = bigEndian(value, 8)
  return millis === undefined ? undefined : within(Number(millis), 0, lastMillis)
}

const digits = (value: HeaderValue): string | undefined => {
  if (value === null || value === undefined || value.length === 0 || value.length > 20) return undefined
  const decimal = latin1.decode(value)
  return /^\d+$/.test(decimal) ? decimal : undefined
}

const within = (value: number, least: number, most: number): number | undefined =>
  value >= least && value <= most ? value : undefined

const exactOffset = (value: bigint): bigint | undefined => (value <= maxInt64 ? value : undefined)
