/**
 * The backoff between restarts of a failed session, of a background loop that died, and of a custom dead letter consumer: 1 second first, doubling up to 30 seconds.
 */
import * as Schedule from "effect/Schedule"

export const restartBackoff = Schedule.min([Schedule.exponential("1 second", 2), Schedule.spaced("30 seconds")])
