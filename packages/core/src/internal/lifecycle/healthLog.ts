/**
 * Writes a line when health begins to show a reason, and one when it is over. It leaves out reasons that have a line at the moment at which they begin: the event log
 * writes those.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { describe, type Health, type Reason } from "../../Health.ts"
import * as LogLine from "../base/logLine.ts"

/** How often health is looked at. */
const lookMillis = 5_000

/** Reasons whose beginning an event reports: `SessionCrashed`, `ConsumerFenced`, `PublishFailed`, `BatchUnreadable`, `BreakerChanged`, `StateChanged`. */
const beginsWithEvent: ReadonlySet<Reason["_tag"]> = new Set([
  ...([
    "ConsumerCrashed",
    "ConsumerFenced",
    "PublisherFailing",
    "BatchUnreadable",
    "BreakerOpen",
    "Paused",
    "ReadingHolds",
    "Starting",
    "Closing"
  ] as const)
])

/** Reasons whose end an event reports, or nobody has to know. */
const endsWithEvent: ReadonlySet<Reason["_tag"]> = new Set([
  ...(["BreakerOpen", "Paused", "ReadingHolds", "Starting", "Closing"] as const)
])

interface Shown {
  readonly reason: Reason
  readonly sinceMillis: number
}

/** Looks at health until it is interrupted. */
export const run = (health: Effect.Effect<Health>, groupOf: GroupOf): Effect.Effect<never> => {
  const shown = new Map<string, Shown>()
  const annotated = (reason: Reason, line: Effect.Effect<void>) =>
    Effect.annotateLogs(line, annotations(reason, groupOf))
  const look = Effect.gen(function* () {
    const { reasons } = yield* health
    const nowMillis = yield* Clock.currentTimeMillis
    const current = new Map(reasons.map((reason) => [keyOf(reason), reason]))
    for (const [key, reason] of current) {
      if (shown.has(key)) continue
      shown.set(key, { reason, sinceMillis: "sinceMillis" in reason ? reason.sinceMillis : nowMillis })
      if (!beginsWithEvent.has(reason._tag)) yield* annotated(reason, lineOf(reason))
    }
    for (const [key, { reason, sinceMillis }] of shown) {
      if (current.has(key)) continue
      shown.delete(key)
      if (endsWithEvent.has(reason._tag)) continue
      const seconds = Math.round((nowMillis - sinceMillis) / 1_000)
      yield* annotated(reason, LogLine.info(`${over(reason)} after ${seconds} s`))
    }
  })
  return Effect.forever(Effect.andThen(Effect.sleep(lookMillis), look))
}

/** Somebody has paused a tier on purpose; every other reason is a failure. */
const lineOf = (reason: Reason): Effect.Effect<void> =>
  reason._tag === "TierPaused" ? LogLine.info(describe(reason)) : LogLine.error(describe(reason))

const keyOf = (reason: Reason): string => {
  const { cluster, binding, topic, partition, consumer, tier } = { ...nowhere, ...reason }
  return JSON.stringify([reason._tag, cluster, binding, topic, partition, consumer, tier])
}

const nowhere = { cluster: "", binding: "", topic: "", partition: -1, consumer: -1, tier: 0 }

/** The group of a binding; undefined when nobody knows the binding any more. */
export type GroupOf = (binding: { readonly cluster: string; readonly binding: string }) => string | undefined

const annotations = (reason: Reason, groupOf: GroupOf) => {
  const { cluster, binding, topic, partition } = { ...nowhere, ...reason }
  const consumerGroup = binding === "" ? undefined : groupOf({ cluster, binding })
  return {
    cluster,
    ...(binding === "" ? {} : { bindingName: binding }),
    ...(topic === "" ? {} : { topic }),
    ...(partition < 0 ? {} : { partition }),
    ...(consumerGroup === undefined ? {} : { consumerGroup })
  }
}

/** That something works again. */
const over = (reason: Reason): string => {
  switch (reason._tag) {
    case "ClusterUnreachable":
      return `Cluster '${reason.cluster}' answers again`
    case "ConsumerCrashed":
    case "ConsumerFenced":
      return `Consumer ${reason.consumer} runs again`
    case "TopicUnreadable":
      return `Topic '${reason.topic}' can be read again`
    case "PublisherFailing":
      return `Copies can be published to '${reason.topic}' again`
    case "CommitsFailing":
      return "Offsets are committed again"
    case "TransactionsFailing":
      return "Transactions are committed again"
    case "DeadLetterStrategyFailing":
      return "The dead letter strategy works again"
    case "OpenTransaction":
      return `The open transaction of ${reason.topic}-${reason.partition} has ended`
    case "TierPaused":
      return `Retry tier ${reason.tier} goes on`
    case "BatchUnreadable":
    case "UnitIncomplete":
    case "SerdeWaiting":
    case "PollLoopStuck":
    case "PartitionStalled":
      return `${reason.topic}-${reason.partition} moves again`
    default:
      return `${reason._tag} is over`
  }
}
