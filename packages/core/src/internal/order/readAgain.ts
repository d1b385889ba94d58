/**
 * The waits between attempts to read from a log, or to begin a unit: 100 ms doubling up to 5 s.
 */
import * as Schedule from "effect/Schedule"

export const readAgain = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("5 seconds")])
