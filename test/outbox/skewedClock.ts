/** A clock whose wall time is off, and whose monotonic time is not. */
import type { Clock } from "effect"
import { Effect } from "effect"

export const skewed = (clock: Clock.Clock, offMillis: () => number): Clock.Clock =>
  new Proxy(clock, {
    get: (target, key) => {
      if (key === "currentTimeMillisUnsafe") return () => target.currentTimeMillisUnsafe() + offMillis()
      if (key === "currentTimeMillis") return Effect.sync(() => target.currentTimeMillisUnsafe() + offMillis())
      const value: unknown = Reflect.get(target, key)
      return typeof value === "function" ? value.bind(target) : value
    }
  })
