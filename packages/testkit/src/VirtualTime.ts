/**
 * Time in tests: it stands still until a test moves it, and what is due then has happened when the test goes on.
 */
import { type Duration, Effect } from "effect"
import { TestClock } from "effect/testing"

/** More hops from fiber to fiber than any chain of the connector and the in-memory broker takes. */
const longestChain = 300

/** Lets everything happen that is due now, without moving the clock. */
export const settle: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: longestChain }))

/** Lets everything happen that is due now, moves the clock, and lets everything happen that became due. */
export const advance = (duration: Duration.Input): Effect.Effect<void> =>
  settle.pipe(Effect.andThen(TestClock.adjust(duration)), Effect.andThen(settle))
