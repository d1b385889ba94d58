/**
 * Derives the health of a connector from the snapshots of its bindings: a pure function.
 */
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { Health, Reason, Status } from "../../Health.ts"
import type { BindingSnapshot, ConsumerSnapshot, PartitionSnapshot, Trials } from "../../Snapshot.ts"
import { isUnreachable } from "./lagPoller.ts"

/** A copy that is refused once is usually published at the next attempt, so a shorter failure does not count. */
const unpublishedMillis = 5_000

/** A schema that is new to the process takes a request, so a shorter wait does not count. */
const preparingMillis = 5_000

/** A quota may throttle a fetch, and finding a new leader takes time, so a shorter pause between fetches does not count. */
const unfetchedMillis = 60_000

export interface Now {
  readonly nowMillis: number
  readonly isClosing: boolean
}

export const fromSnapshots = (bindings: ReadonlyArray<BindingSnapshot>, now: Now): Health => {
  const started = bindings.filter(({ state }) => state === "RUNNING" || state === "PAUSED")
  const reasons: ReadonlyArray<Reason> = [
    ...unreachable(started),
    ...started.flatMap((binding) => ofBinding(binding, now)),
    ...(now.isClosing ? [{ _tag: "Closing" } as const] : [])
  ]
  const down = reasons.filter((reason) => severity(reason) === "DOWN")
  const degraded = reasons.filter((reason) => severity(reason) === "DEGRADED")
  return {
    status: down.length > 0 ? "DOWN" : degraded.length > 0 ? "DEGRADED" : "UP",
    live: !down.some(({ _tag }) => _tag === "PollLoopStuck"),
    ready:
      !now.isClosing &&
      started.every(({ consumers }) => consumers.every(({ hasRun, status }) => hasRun && status !== "fenced")),
    reasons: [...down, ...degraded]
  }
}

/** Set while the cluster of a binding does not answer, as the lag poller or one of its consumers found. */
const unreachableOf = ({ unreachable, consumers }: BindingSnapshot) =>
  unreachable ?? consumers.find(({ error }) => error !== undefined && isUnreachable(error))

/** One reason for each cluster that does not answer. */
const unreachable = (started: ReadonlyArray<BindingSnapshot>): ReadonlyArray<Reason> =>
  Array.from(
    Map.groupBy(started, ({ cluster }) => cluster),
    ([cluster, bindings]): ReadonlyArray<Reason> => {
      const affected = bindings.flatMap((binding) => {
        const found = unreachableOf(binding)
        return found?.error === undefined ? [] : [{ name: binding.name, ...found, error: found.error }]
      })
      const [first] = affected.toSorted((a, b) => a.sinceMillis - b.sinceMillis)
      if (first === undefined) return []
      const { error, sinceMillis } = first
      return [{ _tag: "ClusterUnreachable", cluster, bindings: affected.map(({ name }) => name), error, sinceMillis }]
    }
  ).flat()

const ofBinding = (snapshot: BindingSnapshot, { nowMillis }: Now): ReadonlyArray<Reason> => {
  const { name, cluster, topic, pausedBy, sinceMillis, unpublished, unreadable, breaker } = snapshot
  const of = { cluster, binding: name }
  return [
    ...snapshot.consumers.flatMap((consumer) => ofConsumer(of, consumer)),
    ...(unreadable === undefined ? [] : [{ _tag: "TopicUnreadable", ...of, topic, ...unreadable } as const]),
    ...(unpublished === undefined || nowMillis - unpublished.sinceMillis < unpublishedMillis
      ? []
      : [{ _tag: "PublisherFailing", ...of, ...unpublished } as const]),
    ...(unreachableOf(snapshot) === undefined
      ? snapshot.partitions.flatMap((partition) => ofPartition(of, partition, snapshot.maxPollIntervalMillis))
      : []),
    ...(breaker === undefined ? [] : ofBreaker(of, breaker, snapshot.trials)),
    ...(pausedBy.includes("operator") ? [{ _tag: "Paused", ...of, sinceMillis, by: pausedBy } as const] : []),
    ...snapshot.pausedTiers.map((tier) => ({ _tag: "TierPaused", ...of, tier }) as const)
  ]
}

interface OfBinding {
  readonly cluster: string
  readonly binding: string
}

/** A half-open breaker counts too, since it lets only a few records through, but not while it has nothing to try. */
const ofBreaker = (
  of: OfBinding,
  breaker: CircuitBreaker.Snapshot,
  trials: Trials | undefined
): ReadonlyArray<Reason> => {
  const { state, sinceMillis, nextProbeAtMillis } = breaker
  if (state === "CLOSED" || state === "DISABLED") return []
  if (state === "HALF_OPEN" && trials?.candidates === 0) return []
  return [{ _tag: "BreakerOpen", ...of, state, sinceMillis, nextProbeAtMillis, onlyCandidate: trials?.only }]
}

const ofConsumer = (of: OfBinding, consumer: ConsumerSnapshot): ReadonlyArray<Reason> => {
  const { index, status, sinceMillis, hasRun, error, crashes } = consumer
  if (status === "fenced" && error !== undefined) {
    return [{ _tag: "ConsumerFenced", ...of, consumer: index, error, sinceMillis }]
  }
  if (error !== undefined) {
    return isUnreachable(error)
      ? []
      : [{ _tag: "ConsumerCrashed", ...of, consumer: index, error, crashes, sinceMillis }]
  }
  return status === "connecting" && !hasRun ? [{ _tag: "Starting", ...of, consumer: index, sinceMillis }] : []
}

/** A partition that is paused on purpose is healthy: the pause is a reason of its own, or a delay of a retry topic. */
const ofPartition = (of: OfBinding, at: PartitionSnapshot, maxPollIntervalMillis: number): ReadonlyArray<Reason> => {
  if (at.pauses.some((reason) => reason !== "backpressure")) return []
  const { topic, partition, consumer, lag } = at
  const stuck = { ...of, topic, partition, consumer, lag }
  if (at.unfetchedMillis >= unfetchedMillis) return [{ _tag: "PollLoopStuck", ...stuck, forMillis: at.unfetchedMillis }]
  if (at.preparingMillis >= preparingMillis) return [{ _tag: "SerdeWaiting", ...stuck, forMillis: at.preparingMillis }]
  return at.waitingMillis >= maxPollIntervalMillis
    ? [{ _tag: "PartitionStalled", ...stuck, forMillis: at.waitingMillis }]
    : []
}

/** The status that a reason alone leads to. */
const severity = (reason: Reason): Exclude<Status, "UP"> => severities[reason._tag]

const severities = {
  ClusterUnreachable: "DOWN",
  ConsumerCrashed: "DOWN",
  ConsumerFenced: "DOWN",
  TopicUnreadable: "DOWN",
  PublisherFailing: "DOWN",
  SerdeWaiting: "DOWN",
  PollLoopStuck: "DOWN",
  PartitionStalled: "DOWN",
  BreakerOpen: "DEGRADED",
  Paused: "DEGRADED",
  TierPaused: "DEGRADED",
  Starting: "DEGRADED",
  Closing: "DEGRADED"
} as const satisfies Record<Reason["_tag"], Status>
