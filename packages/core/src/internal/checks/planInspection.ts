/**
 * Compares a plan with the cluster: what is missing, what the connector will create, and what does not fit.
 */
import * as Effect from "effect/Effect"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { pluralize } from "../base/pluralize.ts"
import * as Acls from "./acls.ts"
import * as ForeignGroups from "./foreignGroups.ts"
import { inspectGroup } from "./groupInspection.ts"
import { type Found, orderFindings, parkedKeysLeft } from "./orderInspection.ts"
import type { Finding, Plan, PlannedTopic } from "./planTypes.ts"

export const inspect = Effect.fnUntraced(function* (
  plan: Plan,
  admin: Admin
): Effect.fn.Return<ReadonlyArray<Finding>, BrokerError> {
  const existing = new Set(yield* admin.listTopics)
  const found = new Map<string, Found>()
  for (const { topic } of plan.topics) {
    if (!existing.has(topic)) continue
    const description = yield* admin.describeTopic(topic)
    // A client that may not read topic configurations still gets all other findings.
    const config = yield* Effect.orElseSucceed(admin.topicConfig(topic), () => new Map<string, string>())
    found.set(topic, { ...description, config })
  }
  return [
    ...plan.topics.flatMap((topic) => {
      const there = found.get(topic.topic)
      const source = found.get(topic.source)
      return there === undefined ? missing(topic, source) : misfits(topic, there, source, plan)
    }),
    ...orderFindings(plan, found),
    ...idleConsumers(plan, found),
    ...(yield* missingAcls(plan, admin)),
    ...(yield* inspectGroup(plan, admin, existing)),
    ...(yield* parkedKeysLeft(plan, admin, existing)),
    ...(yield* sharedTopics(plan, admin, existing))
  ]
})

const sharedTopics = (
  plan: Plan,
  admin: Admin,
  existing: ReadonlySet<string>
): Effect.Effect<ReadonlyArray<Finding>> => {
  const derived = plan.topics.filter(
    ({ role, topic }) => (role === "retry" || role === "dead-letter") && existing.has(topic)
  )
  const found = ForeignGroups.find(
    admin,
    derived.map(({ topic }) => topic),
    plan
  )
  return Effect.map(found, (shared) =>
    shared.map(({ topic, groups }) => ({
      severity: "warning",
      code: "shared-topic",
      subject: topic,
      message: `Topic '${topic}' has copies of ${groups.map((group) => `group '${group}'`).join(", ")}. Each group handles its own copies, and purges refuse; naming: TopicName.perGroup separates them. If the group was renamed, name the former group in adopts.`
    }))
  )
}

const missingAcls = (plan: Plan, admin: Admin): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.map(Acls.findMissing(admin, plan.topics, plan.groups), (missing) =>
    missing.map((acl) => ({
      severity: acl.operation === "Create" ? "warning" : "error",
      code: "acl-missing",
      subject: acl.name,
      message: `An ACL is missing: ${Acls.describe(acl)}.`
    }))
  )

const missing = (planned: PlannedTopic, source: Found | undefined): ReadonlyArray<Finding> => {
  const { topic, role } = planned
  if (role === "source") {
    const message = `Topic '${topic}' does not exist. The binding waits until it is created.`
    return [{ severity: "error", code: "source-missing", subject: topic, message }]
  }
  if (!planned.createIfMissing) {
    const message = `Topic '${topic}' does not exist, and the binding may not create it (missingTopics: "wait"). Records stay unfinished until it is created.`
    return [{ severity: "error", code: "topic-missing", subject: topic, message }]
  }
  const partitions = planned.partitions ?? source?.partitions
  const replication = planned.replicationFactor ?? source?.replicationFactor
  const size =
    partitions === undefined
      ? "with the source's partitions"
      : `with ${pluralize(partitions, "partition")}, replication ${replication ?? "of the source"}`
  return [
    {
      severity: "info",
      code: "topic-to-create",
      subject: topic,
      message: `The connector will create topic '${topic}' ${size}.`
    }
  ]
}

const misfits = (
  { topic, role, delayMillis }: PlannedTopic,
  there: Found,
  source: Found | undefined,
  { orderPerKey }: Plan
): ReadonlyArray<Finding> => {
  if (role !== "retry" && role !== "dead-letter") return []
  // With order per key, more is at stake in a retry topic, and another finding says what.
  const isOrdered = role === "retry" && orderPerKey.isKept
  const findings: Array<Finding> = []
  const warn = (code: Finding["code"], message: string) =>
    findings.push({ severity: "warning", code, subject: topic, message })
  if (!isOrdered && source !== undefined && there.partitions < source.partitions) {
    const fewer = `Topic '${topic}' has ${pluralize(there.partitions, "partition")}, its source ${source.partitions}`
    warn("fewer-partitions", `${fewer}: copies are partitioned by key, and fewer records are handled at the same time.`)
  }
  const [maxBytes, maxOfSource] = [bytesOf(there), source === undefined ? undefined : bytesOf(source)]
  if (maxBytes !== undefined && maxOfSource !== undefined && maxBytes < maxOfSource) {
    const sizes = `max.message.bytes of '${topic}' is ${maxBytes}, less than the ${maxOfSource} of its source`
    warn("smaller-messages", `${sizes}: a record above that size cannot be copied and stays unfinished.`)
  }
  if (!isOrdered && there.config.get("cleanup.policy")?.includes("compact")) {
    warn("compacted", `Topic '${topic}' is compacted: Kafka keeps only the last copy of each key.`)
  }
  const retention = Number(there.config.get("retention.ms"))
  if (delayMillis !== undefined && retention > 0 && retention < 2 * delayMillis) {
    const times = `retention.ms of '${topic}' is ${retention}, the delay of its tier ${delayMillis} ms`
    warn("short-retention", `${times}: Kafka may delete a record before it is due, or during an outage.`)
  }
  return findings
}

/** A consumer works as long as one of the topics has a partition for it. */
const idleConsumers = (plan: Plan, found: ReadonlyMap<string, Found>): ReadonlyArray<Finding> => {
  const sources = plan.topics.filter(({ role }) => role === "source").map(({ topic }) => found.get(topic))
  if (!sources.every((each) => each !== undefined)) return []
  const source = sources.reduce((most, each) => (each.partitions > most.partitions ? each : most))
  return plan.consumers
    .filter(({ topics, members }) => topics.includes(source.topic) && members > source.partitions)
    .map(({ groupId, members }) => ({
      severity: "warning",
      code: "idle-consumers",
      subject: groupId,
      message: `concurrency is ${members}, topic '${source.topic}' has ${pluralize(source.partitions, "partition")}: ${pluralize(members - source.partitions, "consumer")} of each process will be idle.`
    }))
}

const bytesOf = ({ config }: Found): number | undefined => {
  const bytes = Number(config.get("max.message.bytes"))
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : undefined
}
