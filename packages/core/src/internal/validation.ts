/**
 * What a binding's settings must be, checked all at once before anything is started (connector seed §7).
 */
import type { ConfigurationIssue } from "../EventBusError.ts"
import * as TopicName from "../TopicName.ts"
import * as Backoff from "./backoff.ts"
import { type BindingDefinition, budgetMillis } from "./definition.ts"

/** Every problem of the settings, in the order of their names. Empty: the binding can be started. */
export const problems = (definition: BindingDefinition<unknown>): ReadonlyArray<ConfigurationIssue> => [
  ...notEmpty("name", definition.name),
  ...topicName("topic", definition.topic),
  ...topicName("deadLetterTopic", definition.naming.deadLetter(definition)),
  ...notEmpty("groupId", definition.groupId),
  ...wholeNumber("concurrency", definition.concurrency),
  ...wholeNumber("maxPollRecords", definition.maxPollRecords),
  ...(definition.maxInFlight === Number.POSITIVE_INFINITY ? [] : wholeNumber("maxInFlight", definition.maxInFlight)),
  ...wholeNumber("maxBufferedRecords", definition.maxBufferedRecords),
  ...wholeNumber("maxBufferedBytes", definition.maxBufferedBytes),
  ...wholeNumber("maxBytesPerPartition", definition.maxBytesPerPartition),
  ...duration("commitInterval", definition.commitIntervalMillis, 0),
  ...duration("maxPollInterval", definition.maxPollIntervalMillis, 1),
  ...duration("sessionTimeout", definition.sessionTimeoutMillis, 1),
  ...duration("heartbeatInterval", definition.heartbeatIntervalMillis, 1),
  ...duration("rebalanceTimeout", definition.rebalanceTimeoutMillis, 1),
  ...duration("maxWait", definition.maxWaitMillis, 0),
  ...duration("shutdownTimeout", definition.shutdownTimeoutMillis, 0),
  ...heartbeats(definition),
  ...retryBudget(definition),
  ...ordering(definition)
]

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: typeof found === "string" ? `'${found}'` : String(found),
  allowed
})

const notEmpty = (path: string, value: string) =>
  typeof value === "string" && value.trim().length > 0 ? [] : [issue(path, value, "a text that is not empty")]

const topicName = (path: string, value: string) => {
  if (typeof value !== "string") return [issue(path, value, "a topic name")]
  const reason = TopicName.illegal(value)
  return reason === undefined ? [] : [issue(path, value, `a legal topic name: ${reason}`)]
}

const wholeNumber = (path: string, value: number) =>
  Number.isSafeInteger(value) && value >= 1 ? [] : [issue(path, value, "a whole number, 1 or more")]

const duration = (path: string, millis: number, least: number) =>
  Number.isFinite(millis) && millis >= least
    ? []
    : [
        issue(
          path,
          `${millis} ms`,
          `a duration such as "10 seconds", or a number of ms, ${least} ms or more and finite`
        )
      ]

/** A heartbeat may get lost twice before the session does (Kafka's rule of thumb, connector seed §4.9). */
const heartbeats = ({ sessionTimeoutMillis, heartbeatIntervalMillis }: BindingDefinition<unknown>) =>
  sessionTimeoutMillis >= 3 * heartbeatIntervalMillis
    ? []
    : [
        issue(
          "sessionTimeout",
          `${sessionTimeoutMillis} ms`,
          `at least 3 x heartbeatInterval (${heartbeatIntervalMillis} ms)`
        )
      ]

/** totalRetryTime x maxPollRecords < maxPollInterval x 0.7, strictly, with the exact sum of the waits (ruling 18). */
const retryBudget = (definition: BindingDefinition<unknown>) => {
  const waits = Backoff.worstCaseTotalMillis(definition.retry.blocking)
  const total = waits * definition.maxPollRecords
  const budget = budgetMillis(definition)
  if (total < budget) return []
  const allowed = `less than 70 % of maxPollInterval, which is ${budget} ms: fewer attempts, shorter waits, fewer maxPollRecords, or a longer maxPollInterval`
  return [issue("retry", `${waits} ms of waits x ${definition.maxPollRecords} maxPollRecords = ${total} ms`, allowed)]
}

const ordering = ({ orderingMode, onExhausted, processingOrder, listenerType }: BindingDefinition<unknown>) => [
  ...(listenerType === "BATCH" && processingOrder !== "partition"
    ? [issue("processingOrder", processingOrder, '"partition" for batches')]
    : []),
  ...(onExhausted === "halt" && orderingMode !== "STRICT"
    ? [issue("onExhausted", "halt", '"dead-letter", or orderingMode "STRICT" beside "halt"')]
    : []),
  ...(orderingMode === "STRICT" && processingOrder !== "partition"
    ? [issue("processingOrder", processingOrder, '"partition" with orderingMode "STRICT"')]
    : [])
]
