/** Backoff between requests to a cluster that is not ready: 100 ms, growing to half a second. Many clients may be waiting for the same node. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/** Milliseconds before the next try, after this many earlier ones. */
export const delayMillis = (triesBefore: number): number => Math.min(500, 100 * 1.5 ** triesBefore)

/** 14 repetitions, over about six seconds. */
export const schedule = Schedule.modifyDelay(Schedule.recurs(14), ({ output }) => Effect.succeed(delayMillis(output)))
