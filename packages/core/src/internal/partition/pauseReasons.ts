/**
 * Why a partition is paused: a set of reasons, each set and cleared by its own owner (ruling 9).
 *
 * A set is a bit mask, so that the hot path can look at it without cost.
 */

import type { PauseReason } from "../../Snapshot.ts"

/** A set of reasons. */
export type PauseReasons = number

const bits: Readonly<Record<PauseReason, number>> = {
  ...{ operator: 1, breaker: 2, delay: 4, backpressure: 8, shutdown: 16 },
  ...{ unreadable: 32, fleet: 64, order: 128 }
}

const all = Object.keys(bits) as ReadonlyArray<PauseReason>

/** The reasons that pause only the fetch. */
const ofFetch = bits.backpressure | bits.delay | bits.unreadable

export const empty: PauseReasons = 0

export const add = (set: PauseReasons, reason: PauseReason): PauseReasons => set | bits[reason]

export const remove = (set: PauseReasons, reason: PauseReason): PauseReasons => set & ~bits[reason]

export const has = (set: PauseReasons, reason: PauseReason): boolean => (set & bits[reason]) !== 0

/** The reasons in the set, in the order in which `PauseReason` names them. */
export const list = (set: PauseReasons): ReadonlyArray<PauseReason> => all.filter((reason) => has(set, reason))

/** A partition is fetched only without any reason. */
export const fetchAllowed = (set: PauseReasons): boolean => set === empty

/**
 * Whether records that are fetched already may be handled. `backpressure`, `delay` and `unreadable` pause only the fetch: records that are due go on, and a record that
 * is not due waits in its place.
 */
export const handlingAllowed = (set: PauseReasons): boolean => (set & ~ofFetch) === empty
