/**
 * Finds records that a service of Spring Kafka has left in the retry topics of `@RetryableTopic`. Spring reads each in a group of its own: the suffix of the topic (`-retry-5000`,
 * `-retry-0`, `-retry`) is that of the group, too.
 */
import * as Effect from "effect/Effect"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { pluralize } from "../base/pluralize.ts"
import { countWaiting } from "./countWaiting.ts"
import type { Finding, Plan } from "./planTypes.ts"

const guide = "docs/guide/move-from-spring.md#move-the-group"

/** A topic without such a group has no reader of Spring's. */
export const springRecordsWaiting = Effect.fnUntraced(function* (
  plan: Plan,
  admin: Admin,
  existing: ReadonlySet<string>
): Effect.fn.Return<ReadonlyArray<Finding>, BrokerError> {
  const topics = retryTopics(plan, existing)
  if (topics.length === 0) return []
  const groups = new Set(yield* admin.listGroups)
  const read = topics.flatMap(({ topic, suffix }) =>
    [plan.groupId, ...plan.adopts]
      .map((name) => `${name}${suffix}`)
      .filter((group) => groups.has(group))
      .map((group) => ({ topic, group }))
  )
  const found = yield* Effect.forEach(read, ({ topic, group }) =>
    Effect.map(countWaiting(admin, group, topic), (count) => (count === 0 ? [] : [finding(topic, group, count)]))
  )
  return found.flat()
})

const retryTopics = (plan: Plan, existing: ReadonlySet<string>) => {
  const own = new Set(plan.topics.map(({ topic }) => topic))
  const sources = plan.topics.flatMap(({ role, topic }) => (role === "source" ? [topic] : []))
  const isSuffix = /^-retry(-|$)/
  return Array.from(existing)
    .filter((topic) => !own.has(topic))
    .sort()
    .flatMap((topic) =>
      sources
        .filter((source) => topic.startsWith(source) && isSuffix.test(topic.slice(source.length)))
        .map((source) => ({ topic, suffix: topic.slice(source.length) }))
    )
}

const finding = (topic: string, group: string, count: number): Finding => ({
  ...{ severity: "warning", code: "spring-records-waiting", subject: topic },
  message: `${pluralize(count, "record")} of Spring's retry topic '${topic}' ${count === 1 ? "waits" : "wait"} for group '${group}'. The binding does not read them: when the last old pod has stopped, empty the topic in that group (${guide}).`
})
