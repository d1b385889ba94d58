/**
 * Spellings of keys, and suggestions for unknown names.
 */

/** Maps `maxPollIntervalMs` to `max-poll-interval-ms`. */
export const kebab = (camel: string): string => camel.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Maps `maxPollIntervalMs` and `order-events` to `MAX_POLL_INTERVAL_MS` and `ORDER_EVENTS`. */
export const constant = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]/g, "_")
    .toUpperCase()

/** The spellings of a key in a file: camel case and kebab case, for a duration also without its unit. */
export const spellings = (key: string): ReadonlyArray<string> => {
  const names = key.endsWith("Ms") ? [key, key.slice(0, -2)] : [key]
  return Array.from(new Set(names.flatMap((name) => [name, kebab(name)])))
}

/** The closest known name, if one is close. */
export const closest = (name: string, known: Iterable<string>): string | undefined => {
  const plain = simplify(name)
  let best: string | undefined
  // Up to a third of the letters may be wrong.
  let least = Math.floor(Math.max(2, plain.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(plain, simplify(candidate), least)
    if (steps < least) {
      least = steps
      best = candidate
    }
  }
  return best
}

/** A suggestion for the end of a message; empty when no known name is close. */
export const hint = (name: string, known: Iterable<string>): string => {
  const found = closest(name, known)
  return found === undefined ? "" : `; did you mean ${found}?`
}

const simplify = (name: string): string =>
  name
    .slice(0, 64)
    .replace(/[^A-Za-z0-9]/g, "")
    .toLowerCase()

/** Number of letters to insert, delete, change or swap with their neighbour; at most `bound`. */
const distance = (left: string, right: string, bound: number): number => {
  if (Math.abs(left.length - right.length) >= bound) return bound
  let before: ReadonlyArray<number> = []
  let current = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row++) {
    const next = [row]
    for (let column = 1; column <= right.length; column++) {
      const changed = current[column - 1]! + (left[row - 1] === right[column - 1] ? 0 : 1)
      const swapped =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
          ? before[column - 2]! + 1
          : Number.POSITIVE_INFINITY
      next.push(Math.min(changed, swapped, current[column]! + 1, next[column - 1]! + 1))
    }
    before = current
    current = next
  }
  return Math.min(bound, current[right.length]!)
}
