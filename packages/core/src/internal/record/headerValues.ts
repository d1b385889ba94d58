/**
 * Reads header values that somebody else may have written. Nothing here throws: what is missing, malformed or out of range is undefined.
 */

import type { Header } from "../../ConsumerRecord.ts"

export type HeaderValue = Uint8Array | null | undefined

export const maxInt32 = 2 ** 31 - 1
export const maxInt64 = 2n ** 63n - 1n

/** The last moment that a `Date` can show, in epoch milliseconds. */
const lastMillis = 8_640_000_000_000_000

const utf8 = new TextDecoder()

/** The last of a name: Kafka's idiom, and a copy writes its own last. A loop, since it is asked of every record. */
export const last = (headers: ReadonlyArray<Header>, name: string): HeaderValue => {
  for (let index = headers.length - 1; index >= 0; index--) {
    const header = headers[index]!
    if (header.key === name) return header.value
  }
  return undefined
}

/** UTF-8 text; bytes that are none become U+FFFD. */
export const text = (value: HeaderValue): string | undefined =>
  value === null || value === undefined ? undefined : utf8.decode(value)

/** A whole number from `least` to `most` in decimal text. */
export const wholeNumber = (value: HeaderValue, least: number, most: number): number | undefined => {
  const number = decimal(value)
  return number === undefined ? undefined : within(Number(number), least, most)
}

/** Epoch milliseconds in decimal text, within what a `Date` can show. */
export const timestamp = (value: HeaderValue): number | undefined => wholeNumber(value, 0, lastMillis)

/** An exact offset in decimal text. */
export const offset = (value: HeaderValue): bigint | undefined => {
  const number = decimal(value)
  return number === undefined ? undefined : exactOffset(BigInt(number))
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

/** A number holds so many digits exactly. */
const exactDigits = 15
const zero = 0x30

/** What up to 20 digits say, exactly. Byte by byte: a record in a tier has many such headers. */
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

const within = (value: number, least: number, most: number): number | undefined =>
  value >= least && value <= most ? value : undefined

const exactOffset = (value: bigint): bigint | undefined => (value <= maxInt64 ? value : undefined)
