/** How a cluster that cannot answer yet is asked again: after 100 ms, growing to half a second. It may be busy, and thousands may be asking. */
import { Effect, Schedule } from "effect"

export const delayMillis = (triesBefore: number): number => Math.min(500, 100 * 1.5 ** triesBefore)

/** For some six seconds. */
export const schedule = Schedule.modifyDelay(Schedule.recurs(14), ({ output }) => Effect.succeed(delayMillis(output)))
