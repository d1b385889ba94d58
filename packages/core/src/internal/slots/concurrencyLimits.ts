/**
 * The limits on how many handlers of a binding run at once: its `maxInFlight`, within that a tier's `concurrency`, and the permits of its circuit breaker.
 */
import type * as Clock from "effect/Clock"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import type { BreakerPermits } from "./breakerPermits.ts"
import * as ConcurrencySlots from "./concurrencySlots.ts"

/** A delivery needs all of these before its handler runs. */
export interface ConcurrencyLimits {
  /** A delivery takes one slot of each, in this order: the tier's comes before the binding's. Empty without limits. */
  readonly slots: ReadonlyArray<ConcurrencySlots.ConcurrencySlots>
  /** A delivery takes its permit last. Undefined without a circuit breaker. */
  readonly breaker: BreakerPermits | undefined
  readonly clock: Clock.Clock
}

export interface BindingLimits {
  /** For records of the main topic. */
  readonly main: ConcurrencyLimits
  /** The retry topics of one tier share its limit, whichever topic they belong to. */
  readonly ofTier: (tier: TierTopic) => ConcurrencyLimits
}

export const make = (
  { maxInFlight, tiers }: Pick<BindingDefinition<unknown>, "maxInFlight" | "tiers">,
  breaker: BreakerPermits | undefined,
  clock: Clock.Clock
): BindingLimits => {
  const slots = Number.isFinite(maxInFlight) ? [ConcurrencySlots.make(maxInFlight)] : []
  const main = { slots, breaker, clock }
  const ofTiers = new Map(
    tiers.topics.map(
      (tier) => [tier.first, { ...main, slots: [ConcurrencySlots.make(tier.concurrency), ...slots] }] as const
    )
  )
  return { main, ofTier: ({ first }) => ofTiers.get(first) ?? main }
}
