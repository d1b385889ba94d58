/** The wait before something is tried again: 100 ms, doubled up to 10 seconds, a fifth more or less so that many processes do not come together. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

const firstMillis = 100
const longestMillis = 10_000

/** Waits after this many failures in a row, 1 or more. */
export const backoff = (failures: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (random) =>
    Effect.sleep(Math.min(firstMillis * 2 ** (failures - 1), longestMillis) * (0.8 + 0.4 * random))
  )
