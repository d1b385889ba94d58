/** Monotonic ULIDs: sortable by time, unique, and ascending within one process even in the same millisecond. */
import { randomFillSync } from "node:crypto"

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const randomLength = 16

const encodeTime = (millis: number): string => {
  let text = ""
  for (let i = 0, rest = millis; i < 10; i++) {
    text = alphabet[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/** Adds 1 to the random part. False when it overflowed. */
const increment = (digits: Uint8Array): boolean => {
  for (let i = digits.length - 1; i >= 0; i--) {
    if (digits[i]! < 31) {
      digits[i]!++
      return true
    }
    digits[i] = 0
  }
  return false
}

/** Builds a generator with a sequence of its own. When the clock goes back, the generator keeps the last time: ids never descend. */
const makeUlid = (): ((millis: number) => string) => {
  const digits = new Uint8Array(randomLength)
  let time = -1
  let prefix = ""
  const startAt = (millis: number): void => {
    time = millis
    prefix = encodeTime(millis)
    randomFillSync(digits)
    for (let i = 0; i < randomLength; i++) digits[i]! &= 31
  }
  return (millis) => {
    if (millis > time) startAt(millis)
    // After 2^80 ids in one millisecond the random part overflows, and the id takes the next millisecond.
    else if (!increment(digits)) startAt(time + 1)
    let text = prefix
    for (let i = 0; i < randomLength; i++) text += alphabet[digits[i]!]
    return text
  }
}

/** The generator of this process. */
export const ulid: (millis: number) => string = makeUlid()
