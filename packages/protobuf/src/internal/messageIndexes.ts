/**
 * Confluent's message indexes, which stand between the schema's id and the message: the way from the file to the message, one index for each level of nesting. Their number and each of
 * them is a zigzag varint, as Kafka writes them. The most frequent ones, `[0]`, are a single zero byte.
 */

/** Deeper nesting than any file has; a larger number means that the bytes are something else. */
const maxLevels = 100

/** The indexes, and the message behind them. Throws with a message that says what is wrong with the bytes. */
export const read = (bytes: Uint8Array): { readonly indexes: ReadonlyArray<number>; readonly body: Uint8Array } => {
  let offset = 0
  const next = (): number => {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = bytes[offset++]
      if (byte === undefined) throw new Error("the bytes end inside the message indexes")
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    }
    throw new Error("expected message indexes, found a number of more than 5 bytes")
  }
  const count = next()
  if (count < 0 || count > maxLevels) throw new Error(`expected 0 to ${maxLevels} message indexes, found ${count}`)
  const indexes = count === 0 ? [0] : Array.from({ length: count }, next)
  return { indexes, body: bytes.subarray(offset) }
}

export const write = (indexes: ReadonlyArray<number>): Uint8Array => {
  if (indexes.length === 1 && indexes[0] === 0) return Uint8Array.of(0)
  return Uint8Array.from([indexes.length, ...indexes].flatMap(varint))
}

/** The written indexes with the message behind them. */
export const before = (indexes: Uint8Array, message: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(indexes.length + message.length)
  bytes.set(indexes)
  bytes.set(message, indexes.length)
  return bytes
}

/** Counts and indexes are never negative. */
const varint = (value: number): ReadonlyArray<number> => {
  const bytes: Array<number> = []
  let rest = value * 2
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80)
  return [...bytes, rest]
}
