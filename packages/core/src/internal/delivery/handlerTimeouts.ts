/**
 * Cuts off handlers that use up the processing budget (ruling 18). One fiber per consumer looks at the running handlers, next at the earliest moment at which one of
 * them can have used up its budget: there is no timer per record.
 */
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import * as Clocks from "../base/clocks.ts"
import type { Partition } from "../partition/partition.ts"
import { budgetMillis } from "../settings/bindingDefinition.ts"
import { type ConsumerContext, report } from "./consumerContext.ts"

/** A wall clock that was set is noticed within this time. */
const longestLookMillis = 1_000

/** `guarded` opens when a handler begins. */
export const run = (
  context: ConsumerContext<unknown>,
  partitions: () => ReadonlyArray<Partition>,
  guarded: Latch.Latch
): Effect.Effect<never> => {
  const { clock } = context
  const budget = budgetMillis(context.definition)
  const clockWasSet = Clocks.adjustments(clock)
  let elapsedMillis = Clocks.stopwatch(clock)

  /** Milliseconds until the next look; undefined when nothing runs. */
  const look = (): number | undefined => {
    const now = clock.currentTimeMillisUnsafe()
    const setMillis = clockWasSet()
    const lookedMillis = now - elapsedMillis() - 1
    elapsedMillis = Clocks.stopwatch(clock)
    let next: number | undefined
    for (const partition of partitions()) {
      // The next handler may begin at once behind a handler that is cut off, by the clock as it is now: it is not among those to look at.
      for (const { delivery, cutOff } of Array.from(partition.guarded)) {
        // A handler that began since the last look most likely did so by the clock as it is now.
        const { startedMillis } = delivery.clock
        if (startedMillis < lookedMillis || startedMillis > now) delivery.clock.wallClockWasSet(setMillis)
        const rest = delivery.clock.remainingMillis(budget, now)
        if (rest > 0) {
          next = Math.min(next ?? Math.min(budget, longestLookMillis), rest)
          continue
        }
        report(context, partition, { _tag: "ProcessingBudgetReached" })
        cutOff()
      }
    }
    return next
  }
  return Effect.forever(
    Effect.suspend(() => {
      guarded.closeUnsafe()
      const next = look()
      return next === undefined ? guarded.await : Effect.sleep(next)
    })
  )
}
