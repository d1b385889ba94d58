/**
 * The retry topics of a binding according to its plan: the topic of each tier, and the destination of a failed record. Written independently of the
 * connector, so that the connector is not checked against itself.
 */
import type { BindingPlan, Route, TierPlan } from "./Scenario.ts"

/** The next delivery of a record. Tier 0 is the main topic. */
export interface TierAttempt {
  readonly tier: number
  readonly attempt: number
}

/** How long a record waits before delivery `attempt` in a tier. */
export const waitMillis = (
  { delayMillis, multiplier }: Pick<TierPlan, "delayMillis" | "multiplier">,
  attempt: number
): number => Math.round(delayMillis * multiplier ** (attempt - 1))

/** The topics that a binding reads beside its retry topics. */
export const mainTopics = (plan: Pick<BindingPlan, "topic" | "otherTopics">): ReadonlyArray<string> => [
  plan.topic,
  ...plan.otherTopics
]

/** The main topic of a topic that a binding reads or publishes to. */
export const mainTopicOf = (plan: BindingPlan, topic: string): string =>
  mainTopics(plan).find((main) => topic === main || topic.startsWith(`${main}.`)) ?? plan.topic

/** Each main topic has retry topics of its own. */
export const topicOfTier = (plan: BindingPlan, tier: number, main: string): string => {
  let first = tier
  // Neighbours with equal delays share a topic, which has the name of the first of them.
  while (first > 1 && plan.tiers[first - 2]!.delayMillis === plan.tiers[first - 1]!.delayMillis) first--
  return `${main}.retry-${first}`
}

/** Retry topics of a plan, each once. */
export const retryTopics = (plan: BindingPlan): ReadonlyArray<string> => [
  ...new Set(mainTopics(plan).flatMap((main) => plan.tiers.map((_, index) => topicOfTier(plan, index + 1, main))))
]

/** Largest number of concurrent handlers of a retry topic: the most that one of its tiers allows. */
export const concurrencyOf = (plan: BindingPlan, topic: string): number =>
  Math.max(
    ...plan.tiers
      .filter((_, index) => topicOfTier(plan, index + 1, mainTopicOf(plan, topic)) === topic)
      .map((tier) => tier.concurrency)
  )

/** Whether two topics are those of the same tier, each of its main topic. */
export const areOfOneTier = (plan: BindingPlan, topic: string, other: string): boolean =>
  topic.slice(mainTopicOf(plan, topic).length) === other.slice(mainTopicOf(plan, other).length)

/** Whether the wait in a retry topic depends on the number of the delivery. */
export const waitsGrow = (plan: BindingPlan, topic: string): boolean =>
  plan.tiers.some(
    ({ delayMillis, multiplier, maxAttempts }, index) =>
      delayMillis > 0 &&
      multiplier > 1 &&
      maxAttempts > 1 &&
      topicOfTier(plan, index + 1, mainTopicOf(plan, topic)) === topic
  )

/** The topic in the name of a partition. */
export const topicOf = (partition: string): string => partition.slice(0, partition.lastIndexOf("/"))

export const deadLetterTopic = (main: string): string => `${main}.DLT`

export const deadLetterTopics = (plan: BindingPlan): ReadonlyArray<string> => mainTopics(plan).map(deadLetterTopic)

/** The topic that transactional handlers publish to. */
export const outputTopic = (plan: BindingPlan): string => `${plan.name}.out`

/** More partitions than a topic grows to. */
const mostPartitions = 12

/** Each source partition has an output partition of its own, so that no reader waits for the open transaction of another one. */
export const outputPartition = (plan: BindingPlan, topic: string, partition: number): number =>
  sourceTopics(plan).indexOf(topic) * mostPartitions + partition

export const outputPartitions = (plan: BindingPlan): number => sourceTopics(plan).length * mostPartitions

/** Every topic that a binding reads. */
export const sourceTopics = (plan: BindingPlan): ReadonlyArray<string> => [...mainTopics(plan), ...retryTopics(plan)]

export const groupOf = (plan: BindingPlan, topic: string): string =>
  plan.tierConsumer === "separate" && !mainTopics(plan).includes(topic) ? `${plan.groupId}.retry` : plan.groupId

/** Groups that read the retry topics of a plan. */
export const retryGroups = (plan: BindingPlan): ReadonlyArray<string> =>
  retryTopics(plan).map((topic) => groupOf(plan, topic))

/** The next delivery of a record that failed in a tier; undefined after the last tier. */
export const nextTierAttempt = (
  plan: BindingPlan,
  { tier, attempt }: TierAttempt,
  route: Route
): TierAttempt | undefined => {
  // A batch with DLQ_AND_CONTINUE has no tiers, since a record would come back alone (ruling 53).
  if (plan.listener === "batch" && plan.batchFailureStrategy === "DLQ_AND_CONTINUE") return undefined
  const next = forward(plan, { tier, attempt }, targetOf(plan, tier, route))
  if (route._tag !== "After" || next === undefined) return next
  const entered = plan.tiers[next.tier - 1]!
  for (let each = next.attempt; each <= entered.maxAttempts; each++) {
    if (waitMillis(entered, each) >= route.millis) return { tier: next.tier, attempt: each }
  }
  return next
}

const forward = (
  plan: BindingPlan,
  { tier, attempt }: TierAttempt,
  target: number | undefined
): TierAttempt | undefined => {
  if (target !== undefined && target > tier)
    return target <= plan.tiers.length ? { tier: target, attempt: 1 } : undefined
  const { maxAttempts = 0 } = plan.tiers[tier - 1] ?? {}
  if (attempt < maxAttempts) return { tier, attempt: attempt + 1 }
  return tier < plan.tiers.length ? { tier: tier + 1, attempt: 1 } : undefined
}

const targetOf = (plan: BindingPlan, tier: number, route: Route): number | undefined => {
  if (route._tag !== "After") return route._tag === "Tier" ? route.tier : undefined
  const index = plan.tiers.findIndex((each, at) => at + 1 >= tier && waitMillis(each, each.maxAttempts) >= route.millis)
  return index < 0 ? plan.tiers.length : index + 1
}

/** Smallest number of handler calls until a record that always fails is in the dead letter topic. */
export const callsInAll = (plan: BindingPlan): number => {
  const skipsTiers = plan.listener === "batch" && plan.batchFailureStrategy === "DLQ_AND_CONTINUE"
  const deliveries = skipsTiers ? 0 : plan.tiers.reduce((sum, { maxAttempts }) => sum + maxAttempts, 0)
  return plan.maxAttempts * (1 + deliveries)
}
