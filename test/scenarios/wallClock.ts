/** A wall clock that tests can set. */
import { it } from "@effect/vitest"
import type { Broker } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect, type Scope } from "effect"
import { skewed } from "../outbox/skewedClock.ts"
import { layer } from "./bus.ts"

/** As on a real machine: `currentTimeNanos` follows the wall clock, too. */
const off = (clock: Clock.Clock, offMillis: () => number): Clock.Clock =>
  new Proxy(skewed(clock, offMillis), {
    get: (target, key) =>
      key === "currentTimeNanosUnsafe"
        ? () => target.currentTimeNanosUnsafe() + BigInt(offMillis()) * 1_000_000n
        : Reflect.get(target, key)
  })

/** A test whose wall clock, the broker's too, can be set; monotonic time is the test clock's. */
export const withWallClock = <E>(
  title: string,
  body: (
    set: (offMillis: number) => void
  ) => Effect.Effect<void, E, MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope>
): void =>
  it.effect(title, () =>
    Effect.gen(function* () {
      let offMillis = 0
      const clock = off(yield* Clock.Clock, () => offMillis)
      yield* body((millis) => (offMillis = millis)).pipe(
        Effect.provide(layer()),
        Effect.provideService(Clock.Clock, clock)
      )
    })
  )
