/**
 * The report of a failed run: the scenario in words, the steps around the violation, and the command that repeats the run.
 */
import type { EventBusEvent } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import type { Copy } from "./history/copies.ts"
import type { Entry, StoredLock } from "./history/History.ts"
import type { Outcome } from "./run/simulate.ts"
import { type Action, type BindingPlan, isPerKey, type Scenario } from "./scenario/Scenario.ts"

/** `recent`: the last 40 steps before the violation. `whole`: all of them. Both leave out steps of other partitions. */
export type Extent = "recent" | "whole"

export const describeRun = ({ scenario, history, violation }: Outcome, extent: Extent = "recent"): string => {
  if (violation === undefined) return `Seed ${scenario.seed}: nothing went wrong in ${history.length} steps.`
  const partition = /\b[a-z][\w.-]*\/\d+\b/.exec(violation.message)?.[0]
  const until = history.slice(0, violation.at + 1)
  const shown = until.filter((entry) => concerns(entry, partition)).slice(extent === "recent" ? -40 : 0)
  return [
    `Seed ${scenario.seed} broke the rule '${violation.rule}': ${violation.message}.`,
    "",
    ...describe(scenario),
    "",
    partition === undefined ? "What happened last:" : `What happened last around ${partition}:`,
    ...shown.map((entry) => `  ${seconds(entry.atMillis)}  ${describeEntry(entry)}`),
    "",
    `See it again: pnpm sim --seeds 1 --from ${scenario.seed}${isPerKey(scenario) ? " --kind order" : ""}`
  ].join("\n")
}

const seconds = (millis: number): string => `${(millis / 1000).toFixed(3).padStart(9)} s`

const describe = (scenario: Scenario): ReadonlyArray<string> => [
  `A ${scenario.assignment} cluster, ${scenario.latencyMillis} ms per request, chunks of ${scenario.maxRecordsPerChunk}, tasks ${scenario.interleaving}, ${scenario.faults.faults.length} faults within ${scenario.faultPeriodMillis / 1000} s.`,
  ...scenario.bindings.map(describeBinding),
  `Processes: ${scenario.processes.map(({ concurrency }, index) => `p${index + 1} with ${concurrency} ${concurrency === 1 ? "consumer" : "consumers"}`).join(", ")}.`,
  ...scenario.actions.flatMap((action) => describeAction(action, scenario))
]

const describeBinding = (plan: BindingPlan): string => {
  const listener = plan.listener === "whole-batch" ? `whole batches, verdict '${plan.verdict}'` : plan.listener
  const bounds = `maxInFlight ${plan.maxInFlight ?? "default"}, ${plan.maxBufferedRecords} buffered, polls of ${plan.maxPollRecords}`
  const tiers = plan.tiers.map(
    ({ maxAttempts, delayMillis, multiplier, concurrency }) =>
      `${maxAttempts} after ${delayMillis} ms${multiplier === 1 ? "" : ` times ${multiplier}`} (${concurrency} at once)`
  )
  const retries = tiers.length === 0 ? [] : [...tiers, `${plan.tierConsumer} consumer`]
  const failing = [`${plan.maxAttempts} attempts`, ...retries, `then ${plan.onExhausted}`].join(", ")
  const breaker = plan.breaker === undefined ? "no breaker" : `breaker ${JSON.stringify(plan.breaker)}`
  const perKey = plan.perKey === undefined ? "" : `, order per key ${JSON.stringify(plan.perKey)}`
  return `Binding ${plan.name}: ${plan.partitions} partitions, ${listener}, order by ${plan.processingOrder}, ${plan.ackMode} every ${plan.commitIntervalMillis} ms, ${bounds}, ${failing}, ${plan.membership} members, ${plan.shutdownTimeoutMillis} ms to stop, ${breaker}${perKey}.`
}

const describeAction = (action: Action, scenario: Scenario): ReadonlyArray<string> => {
  const at = `  ${seconds(action.atMillis)}  `
  switch (action._tag) {
    case "Publish":
    case "Read":
    case "Observe":
      return []
    case "Start":
    case "Stop":
    case "Kill":
      return [`${at}${action._tag.toLowerCase()} p${action.process + 1}`]
    case "Pause":
    case "Resume":
      return [`${at}${action._tag.toLowerCase()} ${scenario.bindings[action.binding]?.name} in p${action.process + 1}`]
    case "Remake":
      return [`${at}${action.topic} is deleted, and made again after ${action.gapMillis} ms`]
    case "Decide":
    case "Discard":
    case "Purge":
      return [`${at}${JSON.stringify(action)}`]
    case "Replay":
      return [
        `${at}replay ${scenario.bindings[action.binding]?.name} in p${action.process + 1}: ${JSON.stringify(action.order)}`
      ]
    case "Deploy":
      return [`${at}processes that start from now on are ${action.orderingMode}`]
    case "Grow":
      return [
        `${at}${action.topic ?? scenario.bindings[action.binding]?.topic} grows to ${action.partitions} partitions`
      ]
    default:
      return [`${at}${action._tag.toLowerCase()} in ${topicOf(action, scenario)}/${action.partition}`]
  }
}

const topicOf = (action: Extract<Action, { readonly partition: number }>, { bindings }: Scenario): string | undefined =>
  (action._tag === "Truncate" ? action.topic : undefined) ?? bindings[action.binding]?.topic

/** Steps of the partition, and steps that concern all partitions. */
const concerns = (entry: Entry, partition: string | undefined): boolean => {
  switch (entry._tag) {
    case "Published":
    case "LogEnd":
    case "Compacted":
    case "Truncated":
    case "Called":
    case "Stored":
      return partition === undefined || entry.partition === partition
    case "Returned":
    case "CommitSent":
    case "CommitAccepted":
      return partition === undefined
    case "Broker":
      return partition === undefined || concernsPartition(entry.entry, partition)
    case "Connector":
      return !("topic" in entry.event && "partition" in entry.event) || partition === undefined
        ? true
        : `${entry.event.topic}/${entry.event.partition}` === partition
    default:
      return true
  }
}

const concernsPartition = (entry: MemoryBroker.JournalEntry, partition: string): boolean => {
  if ("partitions" in entry) return entry.partitions.includes(partition)
  if (entry._tag === "Committed") return entry.offsets.some((at) => `${at.topic}/${at.partition}` === partition)
  return entry._tag !== "Appended"
}

export const describeEntry = (entry: Entry): string => {
  switch (entry._tag) {
    case "Published":
      return `${entry.records.length} records published to ${entry.partition} from ${entry.firstOffset}: ${entry.records.map(({ id, key, behaviour }) => `${id}(${key ?? "-"} ${behaviour._tag})`).join(" ")}`
    case "LogEnd":
      return `${entry.partition} ends at ${entry.logEnd}: ${entry.why}`
    case "Compacted":
      return `${entry.partition} compacted, without ${entry.offsets.join(" ")}`
    case "Truncated":
      return `${entry.partition} deleted before ${entry.before}`
    case "Called":
      return `${entry.process} handler ${entry.call} gets ${entry.partition} at ${entry.offsets.join(" ")}`
    case "Returned":
      return `${entry.process} handler ${entry.call} ${entry.outcome}, done: ${entry.done.join(" ") || "nothing"}`
    case "Paused":
    case "Resumed":
      return `${entry.process} ${entry.binding} ${entry._tag.toLowerCase()} by the operator`
    case "CommitSent":
    case "CommitAccepted":
    case "CommitFailed":
      return `${entry.process} ${entry._tag} for ${entry.groupId}`
    case "Sent":
      return `${entry.process} publishes ${copySentence(entry.copy)}`
    case "Replayed":
      return `${entry.process} replays ${copySentence(entry.copy)}`
    case "ReplayEnded":
      return `${entry.process} ends a replay of ${entry.binding} (${entry.order}): ${entry.replayed ?? "it failed"}`
    case "Discarded":
      return `${entry.process}: an operator gives up ${entry.letters.join(" ")}: ${entry.discarded ?? "no answer"}`
    case "KeyDecided":
      return `${entry.process}: an operator decides to ${entry.verb} the key held at ${entry.at}: ${entry.by ?? "it failed"}`
    case "LetterHandled":
      return `${entry.process}: the dead letter of ${entry.partition} at ${entry.offset} is handled`
    case "SendFailed":
      return `${entry.process} could not publish, or does not know (${entry.number})`
    case "Stored":
      return entry.copies
        .map(
          ({ offset, copy, isReadable }) =>
            `${entry.partition} at ${offset}${isReadable ? "" : ", aborted"}: ${copySentence(copy)}`
        )
        .join("; ")
    case "Locked":
      return entry.locks.map((lock) => lockSentence(entry.partition, lock)).join("; ")
    case "Broker":
      return `broker: ${brokerSentence(entry.entry)}`
    case "Connector":
      return `${entry.process}: ${eventSentence(entry.event)}`
    case "Removed":
    case "Made":
      return `${entry.topic} is ${entry._tag === "Made" ? "made again" : "deleted"}`
    case "Read":
      return `somebody reads ${entry.series.size} figures of ${entry.process}`
    case "Observed":
      return `${entry.outputs.length} outputs of ${entry.binding} are committed`
    case "FaultsOver":
      return "the faults are over"
    case "Ended":
      return ["everything is stopped", ...entry.remains.groups].join("; ")
    case "Closed":
      return `the broker is closed, ${entry.fibers} fibers run on`
    default:
      return `${entry._tag} ${entry.process}`
  }
}

const copySentence = ({ topic, id, headers }: Copy): string =>
  `a copy of ${id} to ${topic}, tier ${headers.get("retry-tier")}, attempt ${headers.get("retry-attempt") ?? "-"}, ${headers.get("total-attempts")} calls so far`

const lockSentence = (partition: string, { at, kind, key, offset, hop, epoch, next }: StoredLock): string =>
  key === null
    ? `${partition} at ${at}: the claim of ${epoch}`
    : `${partition} at ${at}: ${kind} of ${key} at ${offset}, hop ${hop}, epoch ${epoch}, next ${next}`

const brokerSentence = (entry: MemoryBroker.JournalEntry): string => {
  switch (entry._tag) {
    case "Appended":
      return `${entry.records} records of ${entry.clientId} appended to ${entry.topic}/${entry.partition} at ${entry.firstOffset}`
    case "Committed":
      return `${entry.memberId} (${entry.generation}) committed ${entry.offsets.map((at) => `${at.topic}/${at.partition} to ${at.offset}`).join(", ")}`
    case "FaultInjected":
      return `${entry.effect} is injected`
    case "Assigned":
    case "Revoked":
    case "Lost":
    case "Released":
      return `${entry.memberId} (${entry.generation}) ${entry._tag} ${entry.partitions.join(" ")}`
    default:
      return `${entry.memberId} ${entry._tag}`
  }
}

const eventSentence = (event: EventBusEvent.EventBusEvent): string => {
  const fields = Object.entries(event).flatMap(([name, value]) => {
    if (name === "_tag" || name === "binding" || value === undefined) return []
    if (name === "record" && "record" in event) return [`record ${event.record.offset}`]
    if (typeof value === "object" && value !== null && "message" in value) return [`${name} ${value.message}`]
    return [`${name} ${Array.isArray(value) ? value.join("+") : String(value)}`]
  })
  return `${event.binding} ${event._tag} ${fields.join(", ")}`
}
