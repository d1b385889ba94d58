/**
 * Why a partition is paused: a set of reasons, each set and cleared by its own owner (ruling 9).
 *
 * A set is a bit mask, so that taking one more look at it costs nothing on the hot path.
 */

import type { PauseReason } from "../../Snapshot.ts"

/** A set of reasons. */
export type PauseReasons = number

const bits: Readonly<Record<PauseReason, number>> = { operator: 1, breaker: 2, delay: 4, backpressure: 8, shutdown: 16 }

const all: ReadonlyArray<PauseReason> = ["operator", "breaker", "delay", "backpressure", "shutdown"]

export const empty: PauseReasons = 0

export const add = (set: PauseReasons, reason: PauseReason): PauseReasons => set | bits[reason]

export const remove = (set: PauseReasons, reason: PauseReason): PauseReasons => set & ~bits[reason]

export const has = (set: PauseReasons, reason: PauseReason): boolean => (set & bits[reason]) !== 0

/** The reasons in the set, in the order in which `PauseReason` names them. */
export const list = (set: PauseReasons): ReadonlyArray<PauseReason> => all.filter((reason) => has(set, reason))

/** A partition is fetched only when nothing holds it. */
export const fetchAllowed = (set: PauseReasons): boolean => set === empty

/**
 * Records that are fetched already are handled, unless something holds them too. `backpressure` and `delay` hold the fetch only: a record whose
 * turn has not come is waited for where it is, and those that are due already go on.
 */
export const handlingAllowed = (set: PauseReasons): boolean => (set & ~(bits.backpressure | bits.delay)) === empty
