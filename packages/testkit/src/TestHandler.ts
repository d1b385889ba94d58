/**
 * Handlers for tests: one that keeps what it gets, one that fails at first, one that takes its time (connector seed §10). They can be put inside each
 * other: `TestHandler.slow("2 seconds", TestHandler.failing({ times: 2, error }))`.
 */
import type { Delivery } from "@eventbus/core"
import { Deferred, type Duration, Effect, Schema } from "effect"
import * as ClockDriver from "./internal/target/clockDriver.ts"

/** A handler, and what it was handed. */
export interface TestHandler<K, V, E = never> {
  /** For `Binding.make`. */
  readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<void, E>
  /** Every delivery it was called with, in order, failed ones and repeats included. */
  readonly calls: Effect.Effect<ReadonlyArray<Delivery.Delivery<K, V>>>
  /** The values of those that succeeded, in the order in which they did. */
  readonly handled: Effect.Effect<ReadonlyArray<V>>
  /**
   * Waits for the `n`th success, from 1. Fails with `NeverHandled` when it does not come `within` so much real time (default 5 seconds). Time that only a
   * `TestClock` has must be moved before, or meanwhile.
   */
  readonly nth: (n: number, within?: Duration.Input) => Effect.Effect<Delivery.Delivery<K, V>, NeverHandled>
}

/** What a test waited for was not handled. */
export class NeverHandled extends Schema.TaggedError<NeverHandled>()("NeverHandled", {
  n: Schema.Int,
  /** What was, as text. */
  handled: Schema.Array(Schema.String),
  calls: Schema.Int
}) {
  override get message(): string {
    const found = this.handled.length === 0 ? "none" : this.handled.join(", ")
    return `Success number ${this.n} did not come. Handled with success: ${found}. Calls in all: ${this.calls}.`
  }
}

type Inner<K, V, E> = Pick<TestHandler<K, V, E>, "handler">

/** Succeeds at once, and keeps what it gets (`TestRecordHandler`). */
export const recording = <V, K = Uint8Array | null>(): TestHandler<K, V> => make({ handler: () => Effect.void })

export interface FailingOptions<E> {
  /** How often it fails before it succeeds. */
  readonly times: number
  /** What it fails with; `call` counts from 1. */
  readonly error: (call: number) => E
  /** `record` (default): each record fails so often, through all tiers. `handler`: the first calls fail, whichever record they are for. */
  readonly per?: "record" | "handler"
}

/** Fails `times` times, then succeeds, or does what `then` does (`FailingHandler`). */
export const failing = <V, E, K = Uint8Array | null, E2 = never>(
  { times, error, per = "record" }: FailingOptions<E>,
  then?: Inner<K, V, E2>
): TestHandler<K, V, E | E2> => {
  const counts = new Map<string, number>()
  return make<K, V, E | E2>({
    handler: (delivery) =>
      Effect.suspend((): Effect.Effect<void, E | E2> => {
        const counted = per === "record" ? delivery.deduplicationKey : ""
        const call = (counts.get(counted) ?? 0) + 1
        counts.set(counted, call)
        if (call <= times) return Effect.fail(error(call))
        return then === undefined ? Effect.void : then.handler(delivery)
      })
  })
}

/** Takes `duration` for each record, then succeeds, or does what `then` does (`SlowHandler`). Time is the clock's: under `TestClock` it is virtual. */
export const slow = <V, K = Uint8Array | null, E = never>(
  duration: Duration.Input,
  then?: Inner<K, V, E>
): TestHandler<K, V, E> =>
  make<K, V, E>({
    handler: (delivery) =>
      Effect.andThen(Effect.sleep(duration), then === undefined ? Effect.void : then.handler(delivery))
  })

const make = <K, V, E>(inner: Inner<K, V, E>): TestHandler<K, V, E> => {
  const calls: Array<Delivery.Delivery<K, V>> = []
  const successes: Array<Delivery.Delivery<K, V>> = []
  const waiting = new Map<number, Deferred.Deferred<Delivery.Delivery<K, V>>>()

  const succeeded = (delivery: Delivery.Delivery<K, V>) =>
    Effect.suspend(() => {
      const waiter = waiting.get(successes.push(delivery))
      return waiter === undefined ? Effect.void : Deferred.succeed(waiter, delivery)
    })

  const nth = (n: number) =>
    Effect.suspend(() => {
      const known = successes[n - 1]
      if (known !== undefined) return Effect.succeed(known)
      const waiter = waiting.get(n) ?? Deferred.makeUnsafe<Delivery.Delivery<K, V>>()
      waiting.set(n, waiter)
      return Deferred.await(waiter)
    })

  const never = (n: number) =>
    Effect.suspend(() =>
      Effect.fail(
        new NeverHandled({ n, handled: successes.map(({ value }) => JSON.stringify(value)), calls: calls.length })
      )
    )

  return {
    handler: (delivery) =>
      Effect.suspend(() => {
        calls.push(delivery)
        return Effect.andThen(inner.handler(delivery), succeeded(delivery))
      }),
    calls: Effect.sync(() => [...calls]),
    handled: Effect.sync(() => successes.map(({ value }) => value)),
    nth: (n, within = "5 seconds") =>
      Effect.raceFirst(nth(n), Effect.andThen(ClockDriver.onRealClock(Effect.sleep(within)), never(n)))
  }
}
