/**
 * Finds topics of a group that a binding does not read, while the group moves between it and another client (ruling 80): a retry topic that the old service has made itself, for
 * example. A kafkajs leader gives partitions of its own topics to every member, and after the move nobody would read them.
 */
import * as Effect from "effect/Effect"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { pluralize } from "../base/pluralize.ts"
import type { GroupDescription } from "../port/admin.ts"
import * as AssignmentStrategy from "../port/assignmentStrategy.ts"
import { countWaiting } from "./countWaiting.ts"
import { clients } from "./groupProtocol.ts"
import type { Finding, Plan } from "./planTypes.ts"

const guide = "docs/guide/move-from-kafkajs.md#your-service-has-a-retry-topic-of-its-own"

/** A group that stays shared with Java, and never moves, is left alone: a leader of Java regards what each member subscribes to. */
export const inspect = Effect.fnUntraced(function* (
  plan: Plan,
  admin: Admin,
  existing: ReadonlySet<string>,
  group: GroupDescription
): Effect.fn.Return<ReadonlyArray<Finding>, BrokerError> {
  const listed = plan.partitionAssignmentStrategy
  if (!listed.includes(AssignmentStrategy.own)) return []
  const read = new Set(plan.topics.map(({ topic }) => topic))
  const found = readByOthers(plan, group, read)
  if (AssignmentStrategy.foreign(listed).length === 0) return found
  for (const { topics = [] } of group.members) for (const topic of topics) read.add(topic)
  const rest = Array.from(existing).filter((topic) => !read.has(topic))
  return [...found, ...(yield* readByNobody(plan, admin, rest))]
})

const readByOthers = (plan: Plan, group: GroupDescription, own: ReadonlySet<string>): ReadonlyArray<Finding> => {
  const readers = group.members.filter(
    ({ isConnector, topics = [] }) => isConnector === false && topics.some((topic) => !own.has(topic))
  )
  const topics = new Set(readers.flatMap(({ topics = [] }) => topics.filter((topic) => !own.has(topic))))
  const isKafkajs = group.protocol === AssignmentStrategy.kafkajs
  const harm = isKafkajs
    ? "their leader would give it partitions of that topic, and it would stop with FOREIGN_ASSIGNMENT"
    : "nobody reads that topic once they have stopped"
  return Array.from(topics)
    .sort()
    .map((topic) => ({
      ...{ severity: isKafkajs ? "error" : "warning", code: "topic-of-other-members", subject: topic },
      message: `Group '${group.groupId}' has ${clients({ members: readers })} that read topic '${topic}', too, and the binding does not: ${harm}. ${remedy(plan, topic)}`
    }))
}

/** The old members have stopped, or the group rebalances and does not tell what they read: its offsets do. */
const readByNobody = Effect.fnUntraced(function* (plan: Plan, admin: Admin, topics: ReadonlyArray<string>) {
  const { groupId } = plan
  const committed = new Set((yield* admin.committedOffsets(groupId, topics)).map(({ topic }) => topic))
  const found = yield* Effect.forEach(Array.from(committed).sort(), (topic) =>
    Effect.map(countWaiting(admin, groupId, topic), (count): ReadonlyArray<Finding> => {
      const waiting = `${pluralize(count, "record")} of topic '${topic}' ${count === 1 ? "waits" : "wait"} for group '${groupId}'`
      const finding: Finding = {
        ...{ severity: "warning", code: "topic-of-other-members", subject: topic },
        message: `${waiting}, which has read it before, and the binding does not read it. ${remedy(plan, topic)}`
      }
      return count === 0 ? [] : [finding]
    })
  )
  return found.flat()
})

const remedy = ({ topics }: Plan, topic: string): string => {
  const sources = topics.flatMap((each) => (each.role === "source" ? [each.topic] : []))
  return `Let the binding read it until it is empty: topic: [${[...sources, topic].join(", ")}] (${guide}).`
}
