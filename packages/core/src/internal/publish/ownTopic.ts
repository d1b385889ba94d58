/**
 * A topic of one partition that the connector makes for itself: its configuration, and what does not fit where somebody else has made it.
 */
import * as Effect from "effect/Effect"
import type { Admin, NewTopic } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { type TopicProblem, UnfitTopic } from "../../FleetView.ts"

export interface OwnTopic {
  readonly topic: string
  /** The settings that the rest relies on. */
  readonly required: Readonly<Record<string, string>>
  /** Further settings that it is made with. */
  readonly recommended: Readonly<Record<string, string>>
}

/** Stands for the setting of a topic that does not exist. */
const missing = "topic"

const newTopic = ({ topic, required, recommended }: OwnTopic): NewTopic => ({
  topic,
  partitions: 1,
  config: new Map(Object.entries({ ...required, ...recommended }))
})

/** Everything about the topic that does not fit. A missing one is the only problem of its own. */
export const problems = Effect.fnUntraced(function* (
  admin: Admin,
  { topic, required }: OwnTopic
): Effect.fn.Return<ReadonlyArray<TopicProblem>, BrokerError> {
  const found = yield* Effect.catchTag(
    Effect.all([admin.describeTopic(topic), admin.topicConfig(topic)], { concurrency: 2 }),
    "UnknownTopic",
    () => Effect.succeed(undefined)
  )
  if (found === undefined) return [{ topic, setting: missing, found: "missing", allowed: "one that exists" }]
  const [{ partitions }, config] = found
  return [
    ...(partitions === 1 ? [] : [{ topic, setting: "partitions", found: String(partitions), allowed: "1" }]),
    ...Object.entries(required).flatMap(([setting, allowed]) => {
      const value = config.get(setting) ?? "unknown"
      return isSame(value, allowed) ? [] : [{ topic, setting, found: value, allowed }]
    })
  ]
})

/** Kafka gives the policies of a topic in any order. */
const isSame = (one: string, other: string): boolean =>
  one.split(",").toSorted().join() === other.split(",").toSorted().join()

/** Creates the topic when it is missing, whatever its settings are otherwise. */
export const createMissing = (admin: Admin, own: OwnTopic): Effect.Effect<void, BrokerError> =>
  Effect.asVoid(Effect.catchTag(admin.describeTopic(own.topic), "UnknownTopic", () => create(admin, own)))

const create = (admin: Admin, own: OwnTopic) =>
  Effect.catchTag(admin.createTopics([newTopic(own)]), "TopicExists", () => Effect.void)

/** Creates the topic when it is missing, and refuses one that does not fit. */
export const ensure = Effect.fnUntraced(function* (
  admin: Admin,
  own: OwnTopic
): Effect.fn.Return<void, BrokerError | UnfitTopic> {
  const found = yield* problems(admin, own)
  if (found[0]?.setting === missing) return yield* create(admin, own)
  if (found.length > 0) return yield* new UnfitTopic({ problems: found })
})
