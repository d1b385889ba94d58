/**
 * Helpers for a `TestClock`: after each call, everything that is due has happened.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

/** More yields than any chain of fibers in the connector and the in-memory broker needs. */
const longestChain = 300

/** Runs everything that is due now, without moving the clock. */
export const settle: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: longestChain }))

/** Runs everything that is due now, moves the clock, and runs everything that became due. */
export const advance = (duration: Duration.Input): Effect.Effect<void> =>
  settle.pipe(Effect.andThen(TestClock.adjust(duration)), Effect.andThen(settle))
