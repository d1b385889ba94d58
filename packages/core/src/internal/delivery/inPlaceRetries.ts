/**
 * Waiting between two attempts in place: by the backoff of the binding, within the processing budget, and no longer than the partition runs.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as Clocks from "../base/clocks.ts"
import type { Partition } from "../partition/partition.ts"
import * as Backoff from "../retry/backoff.ts"
import { type BindingDefinition, budgetMillis } from "../settings/bindingDefinition.ts"
import type { DeliveryContext } from "../slots/deliveryContext.ts"
import { type ConsumerContext, report } from "./consumerContext.ts"

/** Pause after a handler that interrupted itself, which is neither success nor failure (ruling 16). */
export const selfInterruptedMillis = 1000

/** The waits of one delivery, one by one: milliseconds, and undefined when the attempts are used up. */
export const stepper = (
  definition: BindingDefinition<unknown>
): Effect.Effect<(nowMillis: number) => Effect.Effect<number | undefined>> =>
  Effect.map(
    Schedule.toStep(Backoff.schedule(definition.retry.blocking)),
    (step) => (nowMillis) =>
      Pull.matchEffect(step(nowMillis, undefined), {
        onSuccess: ([, delay]) => Effect.succeed<number | undefined>(Duration.toMillis(delay)),
        onFailure: Effect.failCause,
        onDone: () => Effect.succeed(undefined)
      })
  )

/** A wait between two attempts; undefined, and reported, where it would use up the processing budget. */
export const withinBudget = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  delivery: DeliveryContext,
  delay: number | undefined
): number | undefined => {
  if (delay === undefined || delivery.clock.spentMillis() + delay < budgetMillis(context.definition)) return delay
  report(context, partition, { _tag: "ProcessingBudgetReached" })
  return undefined
}

/** Waits for the next attempt of a delivery. */
export const backOff = (
  { clock }: ConsumerContext<unknown>,
  partition: Partition,
  delivery: DeliveryContext,
  millis: number
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const wallClockWasSet = Clocks.adjustments(clock)
    return Effect.map(partition.sleep(millis), () => delivery.clock.wallClockWasSet(wallClockWasSet()))
  })
