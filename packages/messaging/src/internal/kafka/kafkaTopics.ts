/** Creates topics that are missing. */
import type { Admin, Broker } from "@eventbus/core/Broker"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Complete } from "../../KafkaSettings.ts"
import * as MessagingException from "../../MessagingException.ts"
import type { TopicDeclaration } from "../../Topic.ts"

/** Those that exist are left alone. Fails with the first that cannot be created, after all others were tried. */
export const declare = (
  { admin }: Broker["Service"],
  topics: ReadonlyArray<TopicDeclaration>,
  defaults: Complete["topics"]
): Effect.Effect<void, MessagingException.MessagingException> =>
  Effect.gen(function* () {
    const administrator = yield* admin
    const existing = new Set(yield* administrator.listTopics)
    const missing = topics.filter(({ name }) => !existing.has(name))
    const results = yield* Effect.forEach(
      missing,
      (topic) => Effect.result(Effect.mapError(create(administrator, topic, defaults), failed(topic.name))),
      { concurrency: 8 }
    )
    yield* Effect.fromResult(Result.all(results))
  }).pipe(
    Effect.catchIf(
      (error) => error._tag !== "MessagingException",
      (cause) => Effect.fail(failed(topics.map(({ name }) => name).join(", "))(cause))
    ),
    Effect.scoped,
    Effect.asVoid
  )

const failed =
  (topic: string) =>
  (cause: unknown): MessagingException.MessagingException => {
    const text = `Failed to create topic ${topic} on KAFKA`
    return new MessagingException.MessagingException({ text, brokerType: "KAFKA", topic, cause })
  }

/** Another process may have created the topic meanwhile. */
const create = (admin: Admin, { name, partitions, ...topic }: TopicDeclaration, defaults: Complete["topics"]) => {
  const retention = String(topic.retentionMillis ?? defaults.retentionMillis)
  const request = {
    topic: name,
    partitions: partitions ?? defaults.partitions,
    replicationFactor: topic.replicationFactor ?? defaults.replicationFactor,
    config: new Map([["retention.ms", retention]])
  }
  return Effect.catchTag(admin.createTopics([request]), "TopicExists", () => Effect.void)
}
