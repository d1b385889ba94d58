/**
 * Turns snapshots, reports and health of the connector into answers that JSON can hold.
 */
import { type ConsumerRecord, type FleetView, Health, type Replay, type Snapshot } from "@eventbus/core"
import type * as Answers from "../Answers.ts"
import type * as BindingAnswers from "../BindingAnswers.ts"
import type { Payload } from "../Mask.ts"
import { textOf } from "./masking.ts"

/** A time that no calendar has is shown as its number. */
export const isoOf = (millis: number): string => (isDate(millis) ? new Date(millis).toISOString() : String(millis))

/** A record may have any time, such as one in nanoseconds. */
export const isDate = (millis: number | undefined): millis is number =>
  millis !== undefined && !Number.isNaN(new Date(millis).getTime())

export const keyOf = ({ cluster, name }: Pick<Snapshot.BindingSnapshot, "cluster" | "name">): string =>
  `${cluster}:${name}`

/** Undefined for none. */
const undecidedOf = (snapshot: Snapshot.BindingSnapshot): number | undefined => {
  const { held, partitions, trials, unreadableLetters } = snapshot
  const batches = partitions.filter(({ unreadable }) => unreadable !== undefined).length + unreadableLetters.length
  const count = held.length + batches + (trials?.only === undefined ? 0 : 1)
  return count === 0 ? undefined : count
}

/** Undefined for none. */
const heldKeysOf = ({ parked }: Snapshot.BindingSnapshot): BindingAnswers.HeldKeys | undefined =>
  parked?.oldestHeld && {
    count: parked.held,
    oldest: recordPositionOf(parked.oldestHeld),
    since: isoOf(parked.oldestHeld.sinceMillis)
  }

/** Over all partitions. Undefined for none: nobody has said how far the group is. */
export const lagOf = (partitions: ReadonlyArray<{ readonly lag: bigint }>): number | undefined =>
  partitions.length === 0 ? undefined : partitions.reduce((sum, { lag }) => sum + Number(lag), 0)

/** By topic, the first tier first. Undefined where none of the partitions is that of a retry topic. */
export const retriesOf = (
  partitions: ReadonlyArray<{ readonly topic: string; readonly tier: number; readonly lag: bigint }>
): ReadonlyArray<BindingAnswers.WaitingRetries> | undefined => {
  const waiting = new Map<string, BindingAnswers.WaitingRetries>()
  for (const { topic, tier, lag } of partitions) {
    if (tier > 0) waiting.set(topic, { topic, tier, waiting: (waiting.get(topic)?.waiting ?? 0) + Number(lag) })
  }
  if (waiting.size === 0) return undefined
  return Array.from(waiting.values()).sort((a, b) => a.tier - b.tier || (a.topic < b.topic ? -1 : 1))
}

/** Such as `orders-3@204`. */
export const recordPositionOf = ({ topic, partition, offset }: ConsumerRecord.RecordPosition): string =>
  `${topic}-${partition}@${offset}`

/** `payload`: with the message, which may quote the record. */
export const newestFailureOf = (
  failure: Snapshot.NewestFailure | undefined,
  payload: Payload
): BindingAnswers.NewestFailure | undefined => {
  if (failure === undefined) return undefined
  const [position, origin] = [recordPositionOf(failure), recordPositionOf(failure.origin)]
  return {
    position,
    ...given("origin", origin === position ? undefined : origin),
    exceptionClass: failure.className,
    ...given("message", textOf(payload, failure.message)),
    at: isoOf(failure.atMillis)
  }
}

/** Undefined for one topic. */
const severalOf = ({ topics }: { readonly topics: ReadonlyArray<string> }): ReadonlyArray<string> | undefined =>
  topics.length === 1 ? undefined : topics

/** `payload`: with the message of the newest failure. */
export const summaryOf = (
  snapshot: Snapshot.BindingSnapshot,
  deadLetters?: number,
  payload: Payload = false
): Answers.BindingSummary => {
  const { name, cluster, topic, groupId, state, sinceMillis, pausedBy, pausedTiers, partitions, breaker } = snapshot
  const { fleetHolds } = snapshot
  return {
    key: keyOf(snapshot),
    ...{ name, cluster, topic, groupId, state },
    ...given("topics", severalOf(snapshot)),
    since: isoOf(sinceMillis),
    ...{ pausedBy, pausedTiers },
    ...(fleetHolds.length === 0 ? {} : { holds: fleetHolds.map(holdOf) }),
    ...given("lag", lagOf(partitions)),
    ...given("retries", retriesOf(partitions)),
    partitions: partitions.length,
    consumersRunning: snapshot.consumers.filter(({ status }) => status === "running").length,
    ...given("newestFailure", newestFailureOf(snapshot.newestFailure, payload)),
    ...given("deadLetters", deadLetters),
    ...(breaker === undefined ? {} : { breaker: breaker.state }),
    ...given("undecided", undecidedOf(snapshot)),
    ...given("heldKeys", heldKeysOf(snapshot))
  }
}

/** By key. */
export const summariesOf = (
  bindings: ReadonlyArray<Snapshot.BindingSnapshot>,
  deadLetters: ReadonlyMap<string, number>,
  payload: Payload
): ReadonlyArray<Answers.BindingSummary> =>
  bindings
    .map((each) => summaryOf(each, deadLetters.get(keyOf(each)), payload))
    .sort((a, b) => (a.key < b.key ? -1 : 1))

/** A hold may end at a time that no date can hold. */
export const holdOf = ({
  tier,
  by,
  reason,
  sinceMillis,
  untilMillis,
  condition
}: FleetView.Hold): Answers.BindingHold => ({
  ...{ ...given("tier", tier), by, reason },
  since: isoOf(isDate(sinceMillis) ? sinceMillis : 0),
  ...given("until", isDate(untilMillis) ? isoOf(untilMillis) : undefined),
  ...given("condition", condition)
})

export const detailOf = (
  snapshot: Snapshot.BindingSnapshot,
  { reasons }: Health.Health,
  metrics: Answers.MetricsSummary | undefined
): Answers.BindingDetail => ({
  ...summaryOf(snapshot, metrics?.deadLetterDepth),
  containers: snapshot.containers.map(({ name, tier, topic, topics, state }) => ({
    ...{ name, tier, topic, state },
    ...given("topics", severalOf({ topics }))
  })),
  consumers: snapshot.consumers.map(({ index, status, sinceMillis, crashes, error }) => ({
    ...{ index, status, crashes },
    since: isoOf(sinceMillis),
    ...(error === undefined ? {} : { error: error.message })
  })),
  assigned: snapshot.partitions.map(partitionOf),
  held: snapshot.held.map(({ topic, partition, offset, failure, sinceMillis }) => ({
    ...{ topic, partition },
    offset: String(offset),
    exceptionClass: failure.className,
    since: isoOf(sinceMillis)
  })),
  problems: reasons.filter((reason) => isAbout(reason, snapshot)).map(Health.describe),
  ...(metrics === undefined ? {} : { metrics })
})

const partitionOf = (partition: Snapshot.PartitionSnapshot): Answers.Partition => ({
  topic: partition.topic,
  partition: partition.partition,
  tier: partition.tier,
  consumer: partition.consumer,
  position: String(partition.position),
  ...(partition.committed === undefined ? {} : { committed: String(partition.committed) }),
  logEnd: String(partition.logEnd),
  lag: Number(partition.lag),
  pauses: partition.pauses,
  inFlight: partition.inFlight,
  buffered: partition.buffered,
  waitingMillis: partition.waitingMillis
})

const bindingsOf = (reason: Health.Reason): ReadonlyArray<string> =>
  reason._tag === "Closing" ? [] : reason._tag === "ClusterUnreachable" ? reason.bindings : [reason.binding]

const isAbout = (reason: Health.Reason, { cluster, name }: Snapshot.BindingSnapshot): boolean =>
  reason._tag !== "Closing" && reason.cluster === cluster && bindingsOf(reason).includes(name)

/** Health while the program closes, whatever the connector says yet. */
export const closing = (health: Health.Health): Health.Health =>
  health.reasons.some(({ _tag }) => _tag === "Closing")
    ? health
    : {
        ...health,
        status: health.status === "UP" ? "DEGRADED" : health.status,
        ready: false,
        reasons: [...health.reasons, { _tag: "Closing" }]
      }

export const healthOf = ({ status, live, ready, reasons }: Health.Health): Answers.HealthReport => ({
  ...{ status, live, ready },
  reasons: reasons.map((reason) => ({
    reason: reason._tag,
    message: Health.describe(reason),
    ...(reason._tag === "Closing" ? {} : { cluster: reason.cluster }),
    bindings: bindingsOf(reason),
    ...("sinceMillis" in reason ? { since: isoOf(reason.sinceMillis) } : {}),
    ...("topic" in reason ? { topic: reason.topic } : {}),
    ...("partition" in reason ? { partition: reason.partition } : {}),
    ...("lag" in reason ? { lag: Number(reason.lag) } : {}),
    ...("forMillis" in reason ? { forMillis: reason.forMillis } : {})
  }))
})

/** A key that is there only where there is a value. */
export const given = <K extends string, A>(name: K, value: A | undefined): { readonly [N in K]?: A } =>
  (value === undefined ? {} : { [name]: value }) as { readonly [N in K]?: A }

/** The most frequent first, and none that never occurred. */
export const countsOf = (counts: ReadonlyMap<string, number>): ReadonlyArray<Answers.Count> =>
  Array.from(counts, ([name, count]) => ({ name, count }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))

export const replayReportOf = (report: Replay.Report): Answers.ReplayReport => ({
  replayed: report.replayed,
  passedOver: report.passedOver,
  refused: report.refused,
  ...(report.refusals === undefined ? {} : { refusals: countsOf(report.refusals) }),
  foreign: countsOf(report.foreign),
  unreadable: report.unreadable
})

export const statsOf = (stats: Replay.Stats): Answers.DeadLetterStats => {
  const { count, exhausted, failed, unreadable, stored, foreign, oldestMillis, newestMillis, byExceptionClass } = stats
  return {
    ...{ count, exhausted, failed, unreadable, stored },
    foreign: countsOf(foreign),
    ...(isDate(oldestMillis) ? { oldest: isoOf(oldestMillis) } : {}),
    ...(isDate(newestMillis) ? { newest: isoOf(newestMillis) } : {}),
    byExceptionClass: countsOf(byExceptionClass)
  }
}
