/**
 * The log line of each event that an operator must know. Events without a line are for listeners only.
 */

import type * as Effect from "effect/Effect"
import type { EventBusEvent } from "../../EventBusEvent.ts"
import * as LogLine from "../base/logLine.ts"
import { pluralize } from "../base/pluralize.ts"
import * as Acls from "../checks/acls.ts"
import * as ForeignGroups from "../checks/foreignGroups.ts"
import { failureText } from "../failure/failureText.ts"
import * as KeyLines from "../parked/keyLines.ts"
import { batchText, unreadableText } from "../partition/unreadableText.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import { type Topics, topicsText } from "../settings/topicsText.ts"
import * as RecordLines from "./recordLines.ts"

/** An effect that logs the line of the event; undefined when it has none. The line of a start names the topics of the binding. */
export const of = (
  event: EventBusEvent,
  binding: BindingDefinition<unknown> | undefined
): Effect.Effect<void> | undefined =>
  event._tag === "Settled"
    ? RecordLines.of(event, binding)
    : (ofConsumer(event, binding) ?? ofPartition(event) ?? ofDeadLetters(event))

const ofConsumer = (event: EventBusEvent, binding: Topics | undefined): Effect.Effect<void> | undefined => {
  switch (event._tag) {
    case "StateChanged": {
      const reasons = event.reasons.length === 0 ? "" : ` (${event.reasons.join(", ")})`
      const isStart = event.to === "RUNNING" && event.from !== "PAUSED"
      const topics = isStart && binding !== undefined ? `. ${topicsText(binding)}` : ""
      const drain = isEnd(event.to) && !isEnd(event.from) && event.from !== "CREATED" ? drains : ""
      return LogLine.info(`Binding is ${event.to}${reasons}, was ${event.from}${drain}${topics}`)
    }
    case "SessionCrashed":
      return LogLine.error(`Consumer failed; restarting with backoff: ${event.error.message}`)
    case "ConsumerFenced":
      return LogLine.error(
        `Consumer stopped for good: ${event.error.message} It does not take the name back. Stop this process, or start the binding again if the other one is gone`
      )
    case "EventLoopBlocked": {
      const { blockedMillis, sessionTimeoutMillis } = event
      return LogLine.error(
        `The event loop was blocked for ${blockedMillis} ms, so no heartbeat was sent. After ${sessionTimeoutMillis} ms without one, the group reassigns the partitions. Move long computations to a worker thread, or yield in between`
      )
    }
    case "AclsMissing": {
      const acls = event.acls.map(Acls.describe).join(", ")
      return LogLine.warning(`ACLs are missing: ${acls}. Requests that need them fail until they are granted`)
    }
    case "TopicsShared": {
      const topics = event.shared.map(ForeignGroups.describe).join(", ")
      return LogLine.warning(
        `Other groups use the same topics: ${topics}. Each group handles its own copies, and purges refuse. naming: TopicName.perGroup separates them`
      )
    }
    case "ConsumersIdle": {
      const { topic, concurrency, partitions } = event
      const idle = pluralize(concurrency - partitions, "consumer")
      return LogLine.warning(
        `Topic '${topic}' has ${pluralize(partitions, "partition")}, but concurrency is ${concurrency}: ${idle} will be idle`
      )
    }
    case "ForeignRecordsPassedOver": {
      const { kind, owner, topic } = event
      const records = pluralize(event.records, "record")
      return kind === "replay"
        ? LogLine.info(`Passed over ${records} of topic '${topic}' that group '${owner}' replayed for itself`)
        : LogLine.warning(
            `Passed over ${records} of group '${owner}' in retry topic '${topic}'. Groups should not share it: naming: TopicName.perGroup separates them`
          )
    }
    case "BatchUnreadable":
      return LogLine.error(`Partition stopped: ${unreadableText(event.batch)}`)
    case "BatchSkipped":
      return LogLine.warning(`An operator passed the unreadable batch of ${batchText(event.batch)}: ${event.reason}`)
    case "RecordDecided": {
      const { decision } = event
      const { topic, partition, offset } = event.at
      const done = decision.kind === "skip" ? "skipped" : "dead-lettered"
      return LogLine.warning(`An operator ${done} held record ${topic}-${partition}@${offset}: ${decision.reason}`)
    }
    case "KeyDecided":
    case "RetentionUnknown":
      return LogLine.warning(KeyLines.of(event))
    case "BreakerChanged": {
      const { from, to, snapshot } = event
      if (to === "CLOSED") return LogLine.info("Circuit breaker is CLOSED: normal processing")
      const rates = `${snapshot.failureRate} % failures, ${snapshot.slowCallRate} % slow calls`
      return LogLine.warning(`Circuit breaker is ${to}, was ${from}: ${rates}`)
    }
    default:
      return undefined
  }
}

const ofPartition = (event: EventBusEvent): Effect.Effect<void> | undefined => {
  switch (event._tag) {
    case "PartitionAssigned":
      return LogLine.info(`Partition assigned; reading from offset ${event.position}`)
    case "PartitionReleased":
      return LogLine.info(`Partition revoked; committed offset ${event.committed}`)
    case "PartitionLost":
      return LogLine.warning("Partition lost; running handlers were interrupted, nothing was committed")
    case "RecordsGone": {
      const { gone, cause, from, to } = event
      if (cause === "topic-deleted") return LogLine.error(deletedText(event))
      if (event.behind !== undefined) return LogLine.error(KeyLines.followersGone(event))
      const lost = cause === "retention" ? "lost to retention" : `never read (${cause})`
      return LogLine.error(
        `${lost}: ${gone ?? "an unknown number of records"}. Offset ${from} no longer exists, continuing at ${to}`
      )
    }
    case "LocksGone":
      return LogLine.error(KeyLines.locksGone(event))
    case "PublishFailed":
      return LogLine.error(
        `Cannot publish to '${event.topic}'; retrying while the record waits: ${event.error.message}`
      )
    case "TransactionFailed":
      return LogLine.warning(`Transaction failed; restarting from the committed offset: ${event.error.message}`)
    case "ProcessingBudgetReached":
      return LogLine.warning("Handling took more than 70 % of maxPollInterval; it was cut short")
    case "DrainTimedOut":
      return LogLine.warning(
        `Drain timed out with ${pluralize(event.unfinished, "record")} in work; they will be delivered again`
      )
    default:
      return undefined
  }
}

const deletedText = (event: Extract<EventBusEvent, { readonly _tag: "RecordsGone" }>): string => {
  const { topic, partition, gone, from, to } = event
  if (gone === undefined)
    return `Topic '${topic}' was deleted and made again. Records that waited in partition ${partition} behind offset ${from} may have gone with it; how many is not known`
  const records = `${event.isLowerBound === true ? "at least " : ""}${pluralize(Number(gone), "record")}`
  return `Topic '${topic}' was deleted, or deleted and made again, and ${records} that waited in partition ${partition} went with it: offsets ${from} to ${to - 1n}, as far as the log was known`
}

const ofDeadLetters = (event: EventBusEvent): Effect.Effect<void> | undefined => {
  switch (event._tag) {
    case "AlertFailed":
      return LogLine.warning(`Alert handler failed: ${failureText(event.failure)}`)
    case "AlertDropped":
      return LogLine.warning("Alert queue is full; dropped the alert about a stored dead letter")
    case "LetterHandlerFailed":
      return LogLine.warning(`Dead letter handler failed: ${failureText(event.failure)}`)
    case "UnreadableLettersSkipped":
      return LogLine.warning(
        `An operator passed the unreadable dead letters of ${batchText(event.batch)}: ${event.reason}`
      )
    case "ScheduledReplay": {
      const { replayed, passedOver, refused, refusals = new Map(), foreign, unreadable } = event.report
      const others = Array.from(foreign, ([group, records]) => `, of group '${group}': ${records}`).join("")
      const reasons =
        refusals.size === 0 ? "" : ` (${Array.from(refusals, ([why, records]) => `${records}: ${why}`).join("; ")})`
      return LogLine.info(
        `Dead letters replayed: ${replayed}, passed over: ${passedOver}, refused: ${refused}${reasons}${others}${unreadable === 0 ? "" : `, unreadable: ${unreadable}`}`
      )
    }
    case "ForeignLettersPassedOver": {
      const { owner, records, topic } = event
      return LogLine.warning(
        `Passed over ${pluralize(records, "dead letter")} of group '${owner}' in topic '${topic}'. Groups should not share it: naming: TopicName.perGroup separates them`
      )
    }
    default:
      return undefined
  }
}

const isEnd = (state: string): boolean => state === "STOPPED" || state === "DESTROYED"

/** The state is entered at the first moment of a stop. */
const drains = "; no more records begin, and those in work end first"
