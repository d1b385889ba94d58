/**
 * Handlers for tests: one that records its deliveries, one that fails at first, and one that is slow (connector seed §10). They nest:
 * `TestHandler.slow("2 seconds", TestHandler.failing({ times: 2, error }))`.
 */
import type { Delivery } from "@eventbus/core"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as ClockDriver from "./internal/target/clockDriver.ts"

/** A handler and the deliveries that it received. */
export interface TestHandler<K, V, E = never> {
  /** The handler for `Binding.make`. */
  readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<void, E>
  /** Every delivery that the handler was called with, in order, failed calls and redeliveries included. */
  readonly calls: Effect.Effect<ReadonlyArray<Delivery.Delivery<K, V>>>
  /** The values of the successful calls, in the order in which they ended. */
  readonly handled: Effect.Effect<ReadonlyArray<V>>
  /**
   * Waits for the `n`th success, counted from 1. Fails with `NeverHandled` after `within` of real time (default 5 seconds). The test must move a
   * `TestClock` before or meanwhile.
   */
  readonly nth: (n: number, within?: Duration.Input) => Effect.Effect<Delivery.Delivery<K, V>, NeverHandled>
}

/** The handler did not reach the number of successes that the test waited for. */
export class NeverHandled extends Schema.TaggedError<NeverHandled>()("NeverHandled", {
  /** The success that the test waited for, counted from 1. */
  n: Schema.Int,
  /** The handled values as JSON. */
  handled: Schema.Array(Schema.String),
  /** Number of calls, failed ones included. */
  calls: Schema.Int
}) {
  override get message(): string {
    const found = this.handled.length === 0 ? "none" : this.handled.join(", ")
    return `The handler did not reach success number ${this.n}. It handled: ${found}. It was called ${this.calls} times.`
  }
}

type Inner<K, V, E> = Pick<TestHandler<K, V, E>, "handler">

/** Succeeds at once and records each delivery (`TestRecordHandler`). */
export const recording = <V, K = Uint8Array | null>(): TestHandler<K, V> => make({ handler: () => Effect.void })

/** Options of `failing`. */
export interface FailingOptions<E> {
  /** Number of failures before the first success. */
  readonly times: number
  /** Makes the error of a failed call; `call` counts from 1. */
  readonly error: (call: number) => E
  /** `record` (default) counts the calls of each record over all tiers; `handler` counts all calls together. */
  readonly per?: "record" | "handler"
}

/** Fails `times` times, then succeeds or runs `then` (`FailingHandler`). */
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

/** Sleeps for `duration`, then succeeds or runs `then` (`SlowHandler`). It sleeps on Effect's `Clock`, so a `TestClock` must be moved. */
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
