/**
 * The retry tiers that an operator has paused while the rest of the binding continues (ruling 50).
 */
import type { Partition } from "../partition/partition.ts"
import type { Tiers, TierTopic } from "../retry/tiers.ts"

export interface PausedTiers {
  /** False when the tier was paused already. */
  readonly pause: (tier: TierTopic) => boolean
  /** False when the tier was not paused. */
  readonly resume: (tier: TierTopic) => boolean
  readonly includes: (partition: Partition) => boolean
  /** The numbers of the paused tiers, ascending. */
  readonly list: () => ReadonlyArray<number>
}

export const make = (tiers: Tiers): PausedTiers => {
  /** By the first tier of the retry topic: each topic of the binding has a retry topic of the same tiers. */
  const paused = new Set<number>()
  return {
    pause: ({ first }) => !paused.has(first) && paused.add(first).has(first),
    resume: ({ first }) => paused.delete(first),
    includes: ({ tier }) => tier !== undefined && paused.has(tier.first),
    list: () =>
      Array.from({ length: tiers.count }, (_, index) => index + 1).filter((n) => paused.has(tiers.topicOf(n).first))
  }
}
