/**
 * The settings that `orderingMode: "PER_KEY"` refuses, each with the reason. Without them, a key that waits for a retry would lose its order.
 */
import type { ConfigurationIssue } from "../../EventBusError.ts"
import { shown } from "../base/shown.ts"
import * as AssignmentStrategy from "../port/assignmentStrategy.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** Empty for a binding with another `orderingMode`. */
export const problems = (definition: BindingDefinition<unknown>): ReadonlyArray<ConfigurationIssue> =>
  definition.orderingMode === "PER_KEY"
    ? [...ofHandler(definition), ...ofTiers(definition), ...ofGroup(definition), ...ofFailures(definition)]
    : []

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: shown(found),
  allowed
})

/** A handler that gets one record per call, and one record of a key at a time. */
const ofHandler = ({ handler, listenerType, orderingMode, processingOrder }: BindingDefinition<unknown>) => [
  ...(handler._tag === "PerRecord" && listenerType === "BATCH"
    ? [
        issue(
          "listenerType",
          listenerType,
          '"SINGLE" with orderingMode "PER_KEY": the records of a batch are acknowledged together'
        )
      ]
    : []),
  ...(handler._tag === "PerBatch"
    ? [
        issue(
          "orderingMode",
          orderingMode,
          '"RELAXED_IN_RETRY" or "STRICT" for a handler of batches: records of one call cannot wait for one another'
        )
      ]
    : []),
  ...(handler._tag === "Transactional"
    ? [
        issue(
          "orderingMode",
          orderingMode,
          '"RELAXED_IN_RETRY" or "STRICT" for a transactional binding: the place of a failed record in its key cannot be a part of its transaction yet'
        )
      ]
    : []),
  ...(processingOrder === "unordered"
    ? [
        issue(
          "processingOrder",
          processingOrder,
          '"key" or "partition" with orderingMode "PER_KEY": "unordered" handles records of one key at the same time'
        )
      ]
    : [])
]

/** Retry topics whose records become due in the order of their offsets. */
const ofTiers = ({ tiers }: BindingDefinition<unknown>) =>
  tiers.count === 0
    ? [
        issue(
          "retry",
          "no tiers",
          'one retry tier or more with orderingMode "PER_KEY": a failed record waits in a retry topic; "STRICT" keeps the order without tiers'
        )
      ]
    : tiers.topics
        .filter(({ delaysMillis }) => delaysMillis.length > 1)
        .map(({ first, delaysMillis }) =>
          issue(
            `retry.tiers[${first - 1}]`,
            `waits of ${delaysMillis.join(", ")} ms`,
            'one delay for each tier with orderingMode "PER_KEY": records that wait differently do not become due in the order of the topic'
          )
        )

/** One member that owns a partition of the main topic owns the same partition of each retry topic. */
const ofGroup = ({ retry, groupProtocol, partitionAssignmentStrategy: listed }: BindingDefinition<unknown>) => [
  ...(groupProtocol === "consumer"
    ? [
        issue(
          "groupProtocol",
          groupProtocol,
          '"classic" with orderingMode "PER_KEY": the broker does not promise to assign a partition and its retries to the same member'
        )
      ]
    : []),
  ...(retry.consumer === "separate"
    ? [
        issue(
          "retry.consumer",
          retry.consumer,
          '"shared" with orderingMode "PER_KEY": two groups do not assign a partition and its retries to the same member'
        )
      ]
    : []),
  ...(AssignmentStrategy.foreign(listed).length > 0
    ? [
        issue(
          "partitionAssignmentStrategy",
          listed,
          `["${AssignmentStrategy.own}"] with orderingMode "PER_KEY": another protocol does not assign a partition and its retries to the same member`
        )
      ]
    : [])
]

/** A record that used up its attempts stops its key, never its partition. */
const ofFailures = ({ onExhausted }: BindingDefinition<unknown>) =>
  onExhausted === "halt"
    ? [
        issue(
          "onExhausted",
          onExhausted,
          '"dead-letter" with orderingMode "PER_KEY": perKey.onDeadLetter "hold" keeps a record and its key waiting, and the partition goes on'
        )
      ]
    : []
