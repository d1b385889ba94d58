import { Effect } from "effect"

/** Waits until an assertion holds, 30 seconds at most. Its last error is reported. */
export const eventually = (assertion: () => void): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let left = 1_200; left > 0; left--) {
      const exit = yield* Effect.exit(Effect.sync(assertion))
      if (exit._tag === "Success") return
      yield* Effect.sleep("25 millis")
    }
    assertion()
  })
