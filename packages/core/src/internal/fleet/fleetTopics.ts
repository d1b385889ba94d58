/**
 * The two topics of a fleet and their configuration. Each is created by those who write to it: the control topic by operators, the fleet topic by processes.
 */
import type { Admin } from "../../Broker.ts"
import * as OwnTopic from "../publish/ownTopic.ts"

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

const own = (topics: FleetTopics, kind: Kind): OwnTopic.OwnTopic => ({
  topic: topics[kind],
  required: required[kind],
  recommended: recommended[kind]
})

/** Everything about a topic that does not fit. A missing one is the only problem of its own. */
export const problems = (admin: Admin, topics: FleetTopics, kind: Kind) => OwnTopic.problems(admin, own(topics, kind))

/** Creates the topic when it is missing, whatever its settings are otherwise. */
export const createMissing = (admin: Admin, topics: FleetTopics, kind: Kind) =>
  OwnTopic.createMissing(admin, own(topics, kind))

/** Creates the topic when it is missing, and refuses one that does not fit. */
export const ensure = (admin: Admin, topics: FleetTopics, kind: Kind) => OwnTopic.ensure(admin, own(topics, kind))
