/**
 * How many handlers of a binding run at once: its `maxInFlight`, a tier's `concurrency` within that, and what the circuit breaker lets through.
 */
import type { Clock } from "effect"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import { type BreakerGate, permitsAsSlots } from "./breakerGate.ts"
import * as ConcurrencySlots from "./concurrencySlots.ts"

export interface ConcurrencyLimits {
  readonly slots: ConcurrencySlots.ConcurrencySlots
  readonly slotsOf: (tier: TierTopic) => ConcurrencySlots.ConcurrencySlots
}

export const make = (
  { maxInFlight, tiers }: BindingDefinition<unknown>,
  gate: BreakerGate | undefined,
  clock: Clock.Clock
): ConcurrencyLimits => {
  // A delivery between two attempts keeps its permit. One that waits for a place must not: who has the place may wait for the permit.
  const inFlight = Number.isFinite(maxInFlight)
    ? ConcurrencySlots.make(maxInFlight, clock, gate)
    : ConcurrencySlots.unbounded
  const slots = gate === undefined ? inFlight : ConcurrencySlots.nested(inFlight, permitsAsSlots(gate))
  const ofTiers = new Map(
    tiers.topics.map((tier) => {
      const ofTier = ConcurrencySlots.make(tier.concurrency, clock, gate)
      return [tier, ConcurrencySlots.nested(ofTier, slots)] as const
    })
  )
  return { slots, slotsOf: (tier) => ofTiers.get(tier) ?? slots }
}
