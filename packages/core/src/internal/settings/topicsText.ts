/**
 * The topics of a binding in one sentence, for the log line of its start.
 */
import { Duration } from "effect"
import type { BindingDefinition } from "./bindingDefinition.ts"

/** The part of a binding that the sentence names. */
export type Topics = Pick<BindingDefinition<unknown>, "topic" | "tiers" | "deadLetterTopic" | "missingTopics">

/** `It reads 'orders', retries over 'orders.retry-1' (10s) and sends dead letters to 'orders.DLT'; missing topics are created`. */
export const topicsText = ({ topic, tiers, deadLetterTopic, missingTopics }: Topics): string => {
  const retry = tiers.topics.map((tier) => `'${tier.topic}' (${Duration.format(Duration.millis(tier.delayMillis))})`)
  const retries = retry.length === 0 ? "has no retry topics" : `retries over ${retry.join(", ")}`
  return `It reads '${topic}', ${retries} and sends dead letters to '${deadLetterTopic}'; ${whenMissing[missingTopics]}`
}

const whenMissing = {
  create: "missing topics are created",
  wait: "records wait for missing topics",
  require: "nothing is read while one is missing"
} as const
