/**
 * The topics of a binding in one sentence, for the log line of its start.
 */
import * as Duration from "effect/Duration"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "./bindingDefinition.ts"
import * as Sources from "./sources.ts"

/** The part of a binding that the sentence names. */
export type Topics = BindingDefinition<unknown>

/** `It reads 'orders', retries over 'orders.retry-1' (10s) and sends dead letters to 'orders.DLT'; missing retry and dead letter topics are created`. */
export const topicsText = (definition: Topics): string =>
  `${Sources.of(definition).map(sourceText).join(". ")}; ${whenMissing[definition.missingTopics]}`

const sourceText = ({ topic, tiers, deadLetterTopic }: Topics): string => {
  const retry = tiers.topics.map((tier) => `'${tier.topic}' (${delaysText(tier)})`)
  const retries = retry.length === 0 ? "has no retry topics" : `retries over ${retry.join(", ")}`
  return `It reads '${topic}', ${retries} and sends dead letters to '${deadLetterTopic}'`
}

/** `10s`, or `1s to 30s` where the wait grows. */
const delaysText = ({ delaysMillis, longestMillis }: TierTopic): string => {
  const shortest = Math.min(...delaysMillis)
  const [from, to] = [shortest, longestMillis].map((millis) => Duration.format(Duration.millis(millis)))
  return from === to ? `${to}` : `${from} to ${to}`
}

const whenMissing = {
  create: "missing retry and dead letter topics are created",
  wait: "records wait for missing topics",
  require: "nothing is read while one is missing"
} as const
