/**
 * The two topics of a fleet: their configuration, and what does not fit where somebody else has made them. Each is created by those who write to it: the control topic by
 * operators, the fleet topic by processes.
 */
import { Effect } from "effect"
import type { Admin, NewTopic } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { type TopicProblem, UnfitTopic } from "../../FleetView.ts"

/** The names of the topics. */
export interface FleetTopics {
  readonly control: string
  readonly fleet: string
}

/** The settings that the rest relies on. */
const required = {
  control: { "cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime" },
  fleet: { "cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime" }
} as const

/** Small segments are compacted soon, so that a view need not read an hour of heartbeats. */
const recommended = {
  control: {},
  fleet: { "retention.ms": "3600000", "segment.ms": "300000", "min.cleanable.dirty.ratio": "0.01" }
} as const

type Kind = keyof FleetTopics

/** Stands for the setting of a topic that does not exist. */
const missing = "topic"

const newTopic = (topics: FleetTopics, kind: Kind): NewTopic => ({
  topic: topics[kind],
  partitions: 1,
  config: new Map(Object.entries({ ...required[kind], ...recommended[kind] }))
})

/** Everything about a topic that does not fit. A missing one is the only problem of its own. */
export const problems = Effect.fnUntraced(function* (
  admin: Admin,
  topics: FleetTopics,
  kind: Kind
): Effect.fn.Return<ReadonlyArray<TopicProblem>, BrokerError> {
  const topic = topics[kind]
  const found = yield* Effect.catchTag(
    Effect.all([admin.describeTopic(topic), admin.topicConfig(topic)], { concurrency: 2 }),
    "UnknownTopic",
    () => Effect.succeed(undefined)
  )
  if (found === undefined) return [{ topic, setting: missing, found: "missing", allowed: "one that exists" }]
  const [{ partitions }, config] = found
  return [
    ...(partitions === 1 ? [] : [{ topic, setting: "partitions", found: String(partitions), allowed: "1" }]),
    ...Object.entries(required[kind]).flatMap(([setting, allowed]) => {
      const value = config.get(setting) ?? "unknown"
      return isSame(value, allowed) ? [] : [{ topic, setting, found: value, allowed }]
    })
  ]
})

/** Kafka gives the policies of a topic in any order. */
const isSame = (one: string, other: string): boolean =>
  one.split(",").toSorted().join() === other.split(",").toSorted().join()

/** Creates the topic when it is missing, whatever its settings are otherwise. */
export const createMissing = (admin: Admin, topics: FleetTopics, kind: Kind): Effect.Effect<void, BrokerError> =>
  Effect.asVoid(Effect.catchTag(admin.describeTopic(topics[kind]), "UnknownTopic", () => create(admin, topics, kind)))

const create = (admin: Admin, topics: FleetTopics, kind: Kind) =>
  Effect.catchTag(admin.createTopics([newTopic(topics, kind)]), "TopicExists", () => Effect.void)

/** Creates the topic when it is missing, and refuses one that does not fit. */
export const ensure = Effect.fnUntraced(function* (
  admin: Admin,
  topics: FleetTopics,
  kind: Kind
): Effect.fn.Return<void, BrokerError | UnfitTopic> {
  const found = yield* problems(admin, topics, kind)
  if (found[0]?.setting === missing) return yield* create(admin, topics, kind)
  if (found.length > 0) return yield* new UnfitTopic({ problems: found })
})
