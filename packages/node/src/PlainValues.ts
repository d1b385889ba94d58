/** Settings as plain values: a duration is a text or a number, and what takes time is a promise. */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"

/** A duration as a text such as `"5m"`, `"1m 30s"`, `"10 seconds"` or `"PT10S"`, or a number of milliseconds. */
export type DurationValue = string | number

/** Settings of the core whose durations are plain values. */
export type Plain<S> = { readonly [N in keyof S]: Duration.Input extends S[N] ? DurationValue : S[N] }

/** A service of the core whose effects are promises. They reject with the error that the effect fails with. */
export type Promised<S> = {
  readonly [N in keyof S]: S[N] extends (...args: infer A) => Effect.Effect<infer R, infer _E, infer _R>
    ? (...args: A) => Promise<R>
    : S[N] extends Effect.Effect<infer R, infer _E, infer _R>
      ? () => Promise<R>
      : S[N]
}
