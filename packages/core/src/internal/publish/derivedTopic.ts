/**
 * The settings of a retry or dead letter topic when it is created: those of its source, with a longer retention where needed and room for added headers.
 */
import * as Effect from "effect/Effect"
import type { Admin, NewTopic, TopicDescription } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** Room for the headers that a copy has more than its source, in bytes. */
const headroomBytes = 16 * 1024

const dayMillis = 86_400_000

/** The source, as the cluster describes it. */
export interface Model {
  readonly description: TopicDescription
  readonly config: ReadonlyMap<string, string>
}

export const model = (admin: Admin, source: string): Effect.Effect<Model, BrokerError> =>
  Effect.all({
    description: admin.describeTopic(source),
    config: Effect.orElseSucceed(admin.topicConfig(source), () => new Map<string, string>())
  })

export const like = (
  { description, config }: Model,
  { retry, tiers }: BindingDefinition<unknown>,
  topic: string
): NewTopic => {
  const tier = tiers.ofTopic(topic)
  const isRetry = tier !== undefined
  return {
    topic,
    partitions: (isRetry ? retry.partitions : undefined) ?? description.partitions,
    replicationFactor: (isRetry ? retry.replicationFactor : undefined) ?? description.replicationFactor,
    config: new Map([
      // Compaction would keep one record per key.
      ["cleanup.policy", "delete"],
      // A dead letter stays until somebody purges it; a waiting record must outlive its delay, and an outage.
      ["retention.ms", isRetry ? String(retentionMillis(config.get("retention.ms"), tier.longestMillis)) : "-1"],
      ...largest(config.get("max.message.bytes"))
    ])
  }
}

const retentionMillis = (source: string | undefined, delayMillis: number): number => {
  const sourceMillis = Number(source)
  const base = Number.isSafeInteger(sourceMillis) && sourceMillis > 7 * dayMillis ? sourceMillis : 7 * dayMillis
  return Math.min(Number.MAX_SAFE_INTEGER, base + 2 * delayMillis)
}

const largest = (source: string | undefined): ReadonlyArray<readonly [string, string]> => {
  const bytes = Number(source)
  return Number.isSafeInteger(bytes) && bytes > 0 && bytes < 2 ** 31 - headroomBytes
    ? [["max.message.bytes", String(bytes + headroomBytes)]]
    : []
}
