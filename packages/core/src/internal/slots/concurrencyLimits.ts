/**
 * How many handlers of a binding run at once: its `maxInFlight`, a tier's `concurrency` within that, and what the circuit breaker lets through.
 */
import type { Clock } from "effect"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import { type BreakerGate, permits } from "./breakerGate.ts"
import * as Places from "./concurrencySlots.ts"

export interface Bounds {
  readonly places: Places.Places
  readonly placesOf: (tier: TierTopic) => Places.Places
}

export const make = (
  { maxInFlight, tiers }: BindingDefinition<unknown>,
  gate: BreakerGate | undefined,
  clock: Clock.Clock
): Bounds => {
  // A delivery between two attempts keeps its permit. One that waits for a place must not: who has the place may wait for the permit.
  const inFlight = Number.isFinite(maxInFlight) ? Places.make(maxInFlight, clock, gate) : Places.unbounded
  const places = gate === undefined ? inFlight : Places.nested(inFlight, permits(gate))
  const ofTiers = new Map(
    tiers.topics.map((tier) => {
      const ofTier = Places.make(tier.concurrency, clock, gate)
      return [tier, Places.nested(ofTier, places)] as const
    })
  )
  return { places, placesOf: (tier) => ofTiers.get(tier) ?? places }
}
