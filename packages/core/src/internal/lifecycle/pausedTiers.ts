/**
 * Retry topics that an operator has paused by themselves, while the binding goes on (ruling 50). Owns which they are.
 */
import type { Partition } from "../partition/partition.ts"
import type { Tiers, TierTopic } from "../retry/tiers.ts"

export interface PausedTiers {
  /** False when it was held already. */
  readonly pause: (tier: TierTopic) => boolean
  /** False when it was not held. */
  readonly resume: (tier: TierTopic) => boolean
  readonly includes: (partition: Partition) => boolean
  /** Numbers of the tiers that are held. */
  readonly list: () => ReadonlyArray<number>
}

export const make = (tiers: Tiers): PausedTiers => {
  const held = new Set<TierTopic>()
  return {
    pause: (tier) => !held.has(tier) && held.add(tier).has(tier),
    resume: (tier) => held.delete(tier),
    includes: ({ tier }) => tier !== undefined && held.has(tier),
    list: () => Array.from({ length: tiers.count }, (_, index) => index + 1).filter((n) => held.has(tiers.topicOf(n)))
  }
}
