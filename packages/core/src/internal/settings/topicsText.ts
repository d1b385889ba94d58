/**
 * The topics of a binding in one sentence, for the log line of its start.
 */
import * as Duration from "effect/Duration"
import type { BindingDefinition } from "./bindingDefinition.ts"
import * as Sources from "./sources.ts"

/** The part of a binding that the sentence names. */
export type Topics = BindingDefinition<unknown>

/** `It reads 'orders', retries over 'orders.retry-1' (10s) and sends dead letters to 'orders.DLT'; missing topics are created`. */
export const topicsText = (definition: Topics): string =>
  `${Sources.of(definition).map(sourceText).join(". ")}; ${whenMissing[definition.missingTopics]}`

const sourceText = ({ topic, tiers, deadLetterTopic }: Topics): string => {
  const retry = tiers.topics.map((tier) => `'${tier.topic}' (${Duration.format(Duration.millis(tier.delayMillis))})`)
  const retries = retry.length === 0 ? "has no retry topics" : `retries over ${retry.join(", ")}`
  return `It reads '${topic}', ${retries} and sends dead letters to '${deadLetterTopic}'`
}

const whenMissing = {
  create: "missing topics are created",
  wait: "records wait for missing topics",
  require: "nothing is read while one is missing"
} as const
