/**
 * Resolves the retry tiers of a binding: the topic of each tier, the tiers of each topic, and the next destination of a failed record.
 */

import type { Tier } from "../../RetryPolicy.ts"
import type * as TopicName from "../../TopicName.ts"
import * as UserFunction from "../../UserFunction.ts"
import { withSuffix } from "../base/derivedNames.ts"
import { pluralize } from "../base/pluralize.ts"
import type { Destination } from "../failure/classification.ts"
import { isDelay } from "../failure/routeChecks.ts"
import { delayMillis } from "./tierDelays.ts"

/** A retry topic and the tiers that share it: one tier, or neighbouring tiers with the same delay. */
export interface TierTopic {
  readonly topic: string
  /** The wait before each delivery of a tier, in milliseconds; the last one holds for all that follow. One alone where all wait equally long. */
  readonly delaysMillis: ReadonlyArray<number>
  /** The longest of them. */
  readonly longestMillis: number
  /** Numbers of its first and last tier, from 1. */
  readonly first: number
  readonly last: number
  /** Most handlers that run at the same time for records of this topic. */
  readonly concurrency: number
}

export interface Tiers {
  readonly count: number
  /** Every retry topic once, in the order of the tiers. */
  readonly topics: ReadonlyArray<TierTopic>
  /** Undefined for a topic that is not a retry topic of the binding. */
  readonly ofTopic: (topic: string) => TierTopic | undefined
  /** The topic of tier `n`, from 1 to `count`. */
  readonly topicOf: (n: number) => TierTopic
  /** How long a record waits before delivery `attempt` in tier `n`, in milliseconds. */
  readonly waitMillis: (n: number, attempt: number) => number
  /** How many deliveries a record gets in tier `n`. */
  readonly deliveries: (n: number) => number
  /** Where a record goes next after its delivery `attempt` in tier `tier` (0 is the main topic) failed. */
  readonly nextDestination: (tier: number, attempt: number, destination: Onward) => NextDestination
}

type Onward = Extract<Destination, { readonly _tag: "NextTier" | "Tier" | "After" }>

/** The next delivery, or why there is none: the record has been through all tiers, or the requested tier does not exist. */
export type NextDestination = { readonly tier: number; readonly attempt: number } | "exhausted" | "no-such-tier"

/** Why a route that asks for a tier that does not exist leads to the dead letter topic, for the people who read the letter. */
export const noSuchTier = (asked: Onward, { count }: Tiers): string => {
  const what =
    asked._tag === "After"
      ? `a wait of ${asked.delayMillis} ms`
      : `retry tier ${asked._tag === "Tier" ? asked.tier : ""}`
  return `the route asks for ${what}, and the binding has ${pluralize(count, "retry tier")}`
}

export const make = (source: TopicName.Source, naming: TopicName.NamingStrategy, tiers: ReadonlyArray<Tier>): Tiers => {
  const topics: Array<TierTopic> = []
  const byTier: Array<TierTopic> = []
  for (const [index, tier] of tiers.entries()) {
    const n = index + 1
    const before = topics.at(-1)
    if (tier.sharesTopic && before !== undefined) {
      topics[topics.length - 1] = { ...before, last: n, concurrency: Math.max(before.concurrency, tier.concurrency) }
      continue
    }
    const { concurrency, topicSuffix } = tier
    const delaysMillis = delaysOf(tier)
    const topic =
      topicSuffix === undefined
        ? UserFunction.plain("naming.retry", naming.retry(source, n))
        : withSuffix(source.topic, topicSuffix)
    topics.push({ topic, delaysMillis, longestMillis: Math.max(...delaysMillis), first: n, last: n, concurrency })
  }
  for (const topic of topics) for (let n = topic.first; n <= topic.last; n++) byTier[n] = topic
  const byTopic = new Map(topics.map((topic) => [topic.topic, topic]))
  const onward = (tier: number, attempt: number): NextDestination => {
    if (tier > 0 && attempt < tiers[tier - 1]!.maxAttempts) return { tier, attempt: attempt + 1 }
    return tier < tiers.length ? { tier: tier + 1, attempt: 1 } : "exhausted"
  }
  /** The first tier, from `tier` on, that waits at least `askedMillis`; the last tier when none does. */
  const waitingFor = (askedMillis: number, tier: number): number => {
    const index = tiers.findIndex((_, at) => at >= tier - 1 && byTier[at + 1]!.longestMillis >= askedMillis)
    return index === -1 ? tiers.length : index + 1
  }
  /** The first delivery, from this one on, that waits at least `askedMillis`; this one when none does. */
  const longEnough = (next: NextDestination, askedMillis: number): NextDestination => {
    if (typeof next === "string") return next
    const index = byTier[next.tier]!.delaysMillis.findIndex((each, at) => at >= next.attempt - 1 && each >= askedMillis)
    return index === -1 ? next : { tier: next.tier, attempt: index + 1 }
  }
  const hop: Tiers["nextDestination"] = (tier, attempt, destination) => {
    if (destination._tag === "NextTier") return onward(tier, attempt)
    if (destination._tag === "Tier") return forward(destination.tier, tier, attempt)
    const { delayMillis: askedMillis } = destination
    if (!isDelay(askedMillis)) return "no-such-tier"
    return longEnough(forward(waitingFor(askedMillis, tier), tier, attempt), askedMillis)
  }
  const forward = (target: number, tier: number, attempt: number): NextDestination => {
    // Only forward (ruling 15), so that the number of deliveries is bounded.
    if (target <= tier) return onward(tier, attempt)
    return Number.isInteger(target) && target <= tiers.length ? { tier: target, attempt: 1 } : "no-such-tier"
  }
  return {
    count: tiers.length,
    topics,
    ofTopic: (topic) => byTopic.get(topic),
    topicOf: (n) => byTier[n]!,
    waitMillis: (n, attempt) => delayMillis(byTier[n]!.delaysMillis, attempt),
    deliveries: (n) => tiers[n - 1]!.maxAttempts,
    nextDestination: hop
  }
}

const delaysOf = ({ delayMillis, laterDelaysMillis = [] }: Tier): ReadonlyArray<number> => [
  delayMillis,
  ...laterDelaysMillis
]
