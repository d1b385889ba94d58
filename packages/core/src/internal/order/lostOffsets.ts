/**
 * Locks whose offset the source does not have: it was cut off, or made anew where the cluster gives topics no ids. They are of another incarnation of the source. A new leader may
 * not know the end of its log for some seconds, so the unit tries again; and once the log has the offset, nobody can tell the lock from one of its own.
 */
import type * as OrderHeaders from "../record/orderHeaders.ts"

/** Nothing may come behind what is done: a lock without a record stands at the end then. */
export const isBehind = (end: bigint, { kind, offset }: OrderHeaders.Lock): boolean =>
  offset >= (kind === "next" ? end + 1n : end)
