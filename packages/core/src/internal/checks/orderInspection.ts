/**
 * Compares a plan with order per key (`orderingMode: "PER_KEY"`) with the cluster: the topics that would lose records of a parked key, and keys that a change of the plan would leave behind.
 */
import * as Effect from "effect/Effect"
import type { Admin, TopicDescription } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { pluralize } from "../base/pluralize.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import * as SourceRetention from "../retry/sourceRetention.ts"
import { countWaiting } from "./countWaiting.ts"
import type { Finding, Plan, PlannedTopic } from "./planTypes.ts"

/** A topic of the plan that exists. */
export interface Found extends TopicDescription {
  readonly config: ReadonlyMap<string, string>
}

/** Empty for a binding with another `orderingMode`. */
export const orderFindings = (plan: Plan, found: ReadonlyMap<string, Found>): ReadonlyArray<Finding> =>
  plan.orderPerKey.isKept
    ? plan.topics.flatMap((topic) => {
        const there = found.get(topic.topic)
        if (topic.role === "source") return there === undefined ? [] : ofSource(plan, there)
        return topic.role === "retry" ? ofRetryTopic(plan, topic, there, found.get(topic.source)) : []
      })
    : []

const ofSource = ({ orderPerKey }: Plan, { topic, config }: Found): ReadonlyArray<Finding> => {
  const { delaysMillis, holdForMillis } = orderPerKey
  const retention = SourceRetention.read(config)
  const refusal = SourceRetention.refusal(topic, retention, delaysMillis)
  const findings: Array<Finding> = []
  const add = (severity: Finding["severity"], code: Finding["code"], message: string) =>
    findings.push({ severity, code, subject: topic, message })
  if (refusal !== undefined) add("error", "short-retention", `${refusal}.`)
  const { retentionMillis, isCompacted } = retention
  if (holdForMillis !== undefined && retentionMillis !== undefined && holdForMillis > retentionMillis / 2) {
    const times = `perKey.holdFor is ${holdForMillis} ms, retention.ms of '${topic}' is ${retentionMillis}`
    add(
      "warning",
      "short-retention",
      `${times}: a held key is given up when the first record behind it is older than half of the retention, before holdFor has passed.`
    )
  }
  if (isCompacted) {
    add(
      "warning",
      "compacted",
      `Topic '${topic}' is compacted, and orderingMode PER_KEY lets records wait in it: a newer record of the key may replace one that waits, which is then never handled.`
    )
  }
  return findings
}

const ofRetryTopic = (
  { orderPerKey: { holdForMillis = 0 } }: Plan,
  { topic, partitions: planned }: PlannedTopic,
  there: Found | undefined,
  source: Found | undefined
): ReadonlyArray<Finding> => {
  const findings: Array<Finding> = []
  const refuse = (code: Finding["code"], message: string) =>
    findings.push({ severity: "error", code, subject: topic, message })
  const partitions = there?.partitions ?? planned
  if (source !== undefined && partitions !== undefined && partitions < source.partitions) {
    const found = there === undefined ? `retry.partitions is ${partitions}` : `Topic '${topic}' has ${partitions}`
    refuse(
      "fewer-partitions",
      `${found}; allowed with orderingMode PER_KEY are ${pluralize(source.partitions, "partition")} or more, as many as source '${source.topic}' has: a partition of the source without one in the retry topic is not handled.`
    )
  }
  if (there === undefined) return findings
  const { retentionMillis, isCompacted } = SourceRetention.read(there.config)
  if (isCompacted) {
    refuse(
      "compacted",
      `cleanup.policy of '${topic}' is '${there.config.get("cleanup.policy")}'; allowed with orderingMode PER_KEY is 'delete': Kafka refuses the claim of an owner, which has no key, and the binding handles nothing.`
    )
  }
  if (retentionMillis !== undefined && retentionMillis < 2 * holdForMillis) {
    refuse(
      "short-retention",
      `retention.ms of '${topic}' is ${retentionMillis}; allowed is ${2 * holdForMillis} or more, twice perKey.holdFor: Kafka may delete a held record before somebody decides about it.`
    )
  }
  return findings
}

/**
 * Retry topics with parked keys that the plan does not read, or not in order: what follows their keys would never be handled. A client that may not read offsets gets none of these findings.
 */
export const parkedKeysLeft = (
  plan: Plan,
  admin: Admin,
  existing: ReadonlySet<string>
): Effect.Effect<ReadonlyArray<Finding>> => Effect.orElseSucceed(left(plan, admin, existing), () => [])

const left = Effect.fnUntraced(function* (
  plan: Plan,
  admin: Admin,
  existing: ReadonlySet<string>
): Effect.fn.Return<ReadonlyArray<Finding>, BrokerError> {
  const { groupId, adopts, topics, orderPerKey } = plan
  const served = orderPerKey.servesParkedKeys
    ? new Set(topics.flatMap(({ role, topic }) => (role === "retry" ? [topic] : [])))
    : new Set<string>()
  const others = Array.from(existing).filter((topic) => !served.has(topic))
  const ofFormer = yield* Effect.forEach(adopts, (former) => ofFormerName(admin, former, Array.from(existing)))
  const ordered = yield* orderedTopics(admin, groupId, others)
  const found = yield* Effect.forEach(ordered, (topic) =>
    Effect.map(countWaiting(admin, groupId, topic), (count): ReadonlyArray<Finding> => {
      if (count === 0) return []
      const isRead = topics.some((each) => each.topic === topic)
      const records = `Retry topic '${topic}' has ${pluralize(count, "record")} behind the offsets of group '${groupId}', among them the locks of parked keys`
      const change = isRead ? "keeps no order of keys in it" : "does not read it"
      return [
        {
          ...{ severity: "error", code: "parked-keys", subject: topic },
          message: `${records}, and the binding ${change}: the records that follow these keys would never be handled. Go on with the former settings until eventbus_parked_keys is 0, and do not purge or delete the topic before.`
        }
      ]
    })
  )
  return [...found.flat(), ...ofFormer.flat()]
})

/** The commits of a retry partition that an owner reads in order carry an epoch. */
const orderedTopics = (admin: Admin, groupId: string, topics: ReadonlyArray<string>) =>
  Effect.map(admin.committedOffsets(groupId, topics), (commits) =>
    Array.from(
      new Set(
        commits.flatMap(({ topic, metadata }) => (CommitMetadata.parse(metadata).epoch === undefined ? [] : [topic]))
      )
    ).sort()
  )

/** A lock tells where its own group goes on, and says nothing to a group of another name. */
const ofFormerName = Effect.fnUntraced(function* (
  admin: Admin,
  former: string,
  existing: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Finding>, BrokerError> {
  const topics = yield* orderedTopics(admin, former, existing)
  const found = yield* Effect.forEach(topics, (topic) =>
    Effect.map(countWaiting(admin, former, topic), (count): ReadonlyArray<Finding> => {
      if (count === 0) return []
      const records = `Retry topic '${topic}' has ${pluralize(count, "record")} behind the offsets of group '${former}', which the binding adopts, among them the locks of parked keys`
      const message = `${records}. A group of another name cannot keep their order, and does not start. Go on under the former name until eventbus_parked_keys is 0.`
      return [{ severity: "error", code: "parked-keys", subject: topic, message }]
    })
  )
  return found.flat()
})
