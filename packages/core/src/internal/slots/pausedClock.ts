/**
 * Time that a delivery spends on the broker's work, such as a transaction: it uses up no processing budget, since it is no fault of the record's
 * (ruling 18).
 */
import { type Clock, Effect } from "effect"
import type { DeliveryContext } from "./concurrencySlots.ts"

type Around = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export interface PausedClock {
  /** Stops the timer for as long as the effect runs. May overlap and nest. */
  readonly within: Around
  /** Work of the handler within that: the timer runs. */
  readonly except: Around
}

export const make = (clock: Clock.Clock, delivery: DeliveryContext): PausedClock => {
  let running = 0
  let startedMillis = 0
  let sinceMillis = 0
  const stop = () => {
    if (running++ > 0) return
    startedMillis = delivery.startedMillis
    sinceMillis = clock.currentTimeMillisUnsafe()
    delivery.startedMillis = Number.POSITIVE_INFINITY
  }
  const go = () => {
    if (--running > 0) return
    delivery.startedMillis = startedMillis + clock.currentTimeMillisUnsafe() - sinceMillis
  }
  const between =
    (before: () => void, after: () => void): Around =>
    (effect) =>
      Effect.suspend(() => {
        before()
        return Effect.ensuring(effect, Effect.sync(after))
      })
  return { within: between(stop, go), except: between(go, stop) }
}
