/**
 * Locks whose offset the source does not have: it was cut off, or made anew where the cluster gives topics no ids. They are of another incarnation of the source.
 *
 * A new leader may not know the end of its log for some seconds. After that, the log may grow past such an offset with other records: a lock that was behind the end for longer stays so.
 */
import type * as Clock from "effect/Clock"
import * as Clocks from "../base/clocks.ts"
import type * as OrderHeaders from "../record/orderHeaders.ts"

/** A new leader knows the end of its log again by then. */
const leaderMillis = 10_000

/** Nothing may come behind what is done: a lock without a record stands at the end then. */
export const isBehind = (end: bigint, { kind, offset }: OrderHeaders.Lock): boolean =>
  offset >= (kind === "next" ? end + 1n : end)

export class LostOffsets {
  readonly #elapsedMillis: () => number
  /** By the place of the lock: when it was seen first. */
  readonly #seen = new Map<string, number>()

  constructor(clock: Clock.Clock) {
    this.#elapsedMillis = Clocks.stopwatch(clock)
  }

  /** Whether the lock at this place is of another incarnation of a source that ends here. */
  has(place: string, end: bigint, lock: OrderHeaders.Lock): boolean {
    const first = this.#seen.get(place)
    const now = this.#elapsedMillis()
    if (!isBehind(end, lock)) return first !== undefined && now - first >= leaderMillis
    if (first === undefined) this.#seen.set(place, now)
    return true
  }
}
