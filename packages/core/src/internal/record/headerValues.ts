/**
 * Reads header values from untrusted records. Nothing here throws: a missing, malformed or out-of-range value is undefined.
 */

import type { Header } from "../../ConsumerRecord.ts"

export type HeaderValue = Uint8Array | null | undefined

export const maxInt32 = 2 ** 31 - 1
const maxInt64 = 2n ** 63n - 1n

/** The last time that a `Date` can represent, in epoch milliseconds. */
const lastMillis = 8_640_000_000_000_000

const utf8 = new TextDecoder()

/** The last value of a name, as Kafka's `Headers.lastHeader`: a copy writes its own headers last. A loop, because it runs for every record. */
export const last = (headers: ReadonlyArray<Header>, name: string): HeaderValue => {
  for (let index = headers.length - 1; index >= 0; index--) {
    const header = headers[index]!
    if (header.key === name) return header.value
  }
  return undefined
}

/** Whether two values have the same bytes. */
export const isSame = (one: HeaderValue, other: HeaderValue): boolean => {
  if (one === null || one === undefined || one.length !== other?.length) return false
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false
  return true
}

/** UTF-8 text. Malformed bytes become U+FFFD. */
export const text = (value: HeaderValue): string | undefined =>
  value === null || value === undefined ? undefined : utf8.decode(value)

/** A whole number in decimal text, from `min` to `max`. */
export const wholeNumber = (value: HeaderValue, min: number, max: number): number | undefined => {
  const number = decimal(value)
  return number === undefined ? undefined : within(Number(number), min, max)
}

/** Epoch milliseconds in decimal text, within the range of a `Date`. */
export const timestamp = (value: HeaderValue): number | undefined => wholeNumber(value, 0, lastMillis)

/**
 * The timestamp of a record in decimal text: any 64 bits, as a producer wrote them. It may lie before 1970, or beyond the range of a `Date`. It is a part of the default
 * idempotency key, which must be the same in all tiers.
 */
export const recordTimestamp = (value: HeaderValue): number | undefined => {
  const isNegative = value?.[0] === minus
  const number = decimal(isNegative ? value?.subarray(1) : value)
  if (number === undefined || (isNegative && Number(number) === 0)) return undefined
  const millis = isNegative ? -Number(number) : Number(number)
  return within(millis, -(2 ** 63), 2 ** 63)
}

/** An exact offset in decimal text. */
export const offset = (value: HeaderValue): bigint | undefined => {
  const number = decimal(value)
  return number === undefined ? undefined : exactOffset(BigInt(number))
}

/** A big-endian number of exactly `size` bytes, as Spring writes it. Negative numbers are undefined. */
export const bigEndian = (value: HeaderValue, size: number): bigint | undefined => {
  if (value === null || value === undefined || value.length !== size) return undefined
  const number = value.reduce((all, byte) => all * 256n + BigInt(byte), 0n)
  return number < 1n << BigInt(size * 8 - 1) ? number : undefined
}

/** Epoch milliseconds in eight big-endian bytes. */
export const bigEndianTimestamp = (value: HeaderValue): number | undefined => {
  const millis = bigEndian(value, 8)
  return millis === undefined ? undefined : within(Number(millis), 0, lastMillis)
}

/** A JavaScript number represents this many decimal digits exactly. */
const exactDigits = 15
const zero = 0x30
const minus = 0x2d

/** Reads up to 20 digits exactly. Byte by byte, without a string: a record in a tier has many such headers. */
const decimal = (value: HeaderValue): number | bigint | undefined => {
  if (value === null || value === undefined || value.length === 0 || value.length > 20) return undefined
  let number = 0
  let rest = 0n
  for (let index = 0; index < value.length; index++) {
    const digit = value[index]! - zero
    if (digit < 0 || digit > 9) return undefined
    if (index < exactDigits) number = number * 10 + digit
    else rest = (index === exactDigits ? BigInt(number) : rest) * 10n + BigInt(digit)
  }
  return value.length <= exactDigits ? number : rest
}

const within = (value: number, min: number, max: number): number | undefined =>
  value >= min && value <= max ? value : undefined

const exactOffset = (value: bigint): bigint | undefined => (value <= maxInt64 ? value : undefined)
