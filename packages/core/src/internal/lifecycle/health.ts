/**
 * Derives the health of a connector from the snapshots of its bindings: a pure function.
 */
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { Health, Reason, Status } from "../../Health.ts"
import type { BindingSnapshot, ConsumerSnapshot, OngoingFailure, PartitionSnapshot, Trials } from "../../Snapshot.ts"
import { isUnreachable } from "./lagPoller.ts"

/** A request that is refused once usually succeeds at the next attempt, so a shorter failure of copies, commits and transactions does not count. */
const repeatedMillis = 5_000

/** A partition gets a new leader within a few seconds, so a shorter failure that may heal by itself does not count. */
const leaderlessMillis = 15_000

/** Most transactions end within a minute, or their coordinator ends them then. */
const openTransactionMillis = 60_000

/** A schema that is new to the process takes a request, so a shorter wait does not count. */
const preparingMillis = 5_000

/** A quota may throttle a fetch, and finding a new leader takes time, so a shorter pause between fetches does not count. */
const unfetchedMillis = 60_000

/** A unit begins within a few requests, and a rebalance moves its parts together. */
const unitMillis = 15_000

export interface Now {
  readonly nowMillis: number
  readonly isClosing: boolean
  /** Whether a binding has been registered so far. Default true. */
  readonly hasBindings?: boolean
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
    ready: reasons.length === 0 && now.hasBindings !== false,
    reasons: [...down, ...degraded]
  }
}

/** The status of one binding. */
export const statusOf = (binding: BindingSnapshot, nowMillis: number): Status =>
  fromSnapshots([binding], { nowMillis, isClosing: false }).status

/** Set while the cluster of a binding does not answer, as the lag poller or one of its consumers found. */
const unreachableOf = ({ unreachable, consumers }: BindingSnapshot) =>
  unreachable ?? consumers.find(({ error }) => error !== undefined && isUnreachable(error))

/** One reason for each cluster that does not answer. */
export const unreachable = (started: ReadonlyArray<BindingSnapshot>): ReadonlyArray<Reason> =>
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
  const { name, cluster, pausedBy, sinceMillis, unpublished, breaker, readsHolds } = snapshot
  const of = { cluster, binding: name }
  const lasts = (failure: OngoingFailure) => nowMillis - failure.sinceMillis >= repeatedMillis
  // A cluster that is away is one reason, not one for each request that waits for it.
  const isReachable = unreachableOf(snapshot) === undefined
  return [
    ...snapshot.consumers.flatMap((consumer) => ofConsumer(of, consumer)),
    ...(isReachable ? ofTopic(of, snapshot, nowMillis) : []),
    ...(unpublished !== undefined && lasts(unpublished)
      ? [{ _tag: "PublisherFailing", ...of, ...unpublished } as const]
      : []),
    ...(isReachable ? ofRequests(of, snapshot, lasts) : []),
    ...(isReachable
      ? snapshot.partitions.flatMap((partition) =>
          ofPartition(of, partition, snapshot.maxPollIntervalMillis, nowMillis)
        )
      : []),
    ...(breaker === undefined ? [] : ofBreaker(of, breaker, snapshot.trials)),
    ...(pausedBy.includes("operator") || pausedBy.includes("fleet")
      ? [{ _tag: "Paused", ...of, sinceMillis, by: pausedBy } as const]
      : []),
    ...(readsHolds ? [{ _tag: "ReadingHolds", ...of, sinceMillis } as const] : []),
    ...heldTiers(snapshot).map((tier) => ({ _tag: "TierPaused", ...of, tier }) as const)
  ]
}

/** Retry tiers that are paused by themselves, in this process or in the whole fleet. */
const heldTiers = ({ pausedTiers, fleetHolds }: BindingSnapshot): ReadonlyArray<number> =>
  Array.from(new Set([...pausedTiers, ...fleetHolds.flatMap(({ tier }) => tier ?? [])]))

interface OfBinding {
  readonly cluster: string
  readonly binding: string
}

/** A topic that is missing or refused counts at once, a partition without a leader after a while. */
const ofTopic = (of: OfBinding, { unreadable }: BindingSnapshot, nowMillis: number): ReadonlyArray<Reason> => {
  if (unreadable === undefined) return []
  const { error, sinceMillis } = unreadable
  const mayHeal = error.retryable && error._tag !== "UnknownTopic"
  return mayHeal && nowMillis - sinceMillis < leaderlessMillis
    ? []
    : [{ _tag: "TopicUnreadable", ...of, ...unreadable }]
}

/** Requests that are repeated until they work. */
const ofRequests = (
  of: OfBinding,
  { commits, transactions, deadLetterStrategy }: BindingSnapshot,
  lasts: (failure: OngoingFailure) => boolean
): ReadonlyArray<Reason> => [
  ...(commits !== undefined && lasts(commits) ? [{ _tag: "CommitsFailing", ...of, ...commits } as const] : []),
  ...(transactions !== undefined && lasts(transactions)
    ? [{ _tag: "TransactionsFailing", ...of, ...transactions } as const]
    : []),
  ...(deadLetterStrategy !== undefined && lasts(deadLetterStrategy)
    ? [{ _tag: "DeadLetterStrategyFailing", ...of, ...deadLetterStrategy } as const]
    : [])
]

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
const ofPartition = (
  of: OfBinding,
  at: PartitionSnapshot,
  maxPollIntervalMillis: number,
  nowMillis: number
): ReadonlyArray<Reason> => {
  const { topic, partition, consumer, lag, unreadable, openTransactionSinceMillis: sinceMillis } = at
  if (unreadable !== undefined) return [{ _tag: "BatchUnreadable", ...of, consumer, lag, ...unreadable }]
  if (sinceMillis !== undefined && nowMillis - sinceMillis >= openTransactionMillis) {
    return [{ _tag: "OpenTransaction", ...of, topic, partition, consumer, lag, sinceMillis }]
  }
  if (at.awaitsUnit !== undefined && nowMillis - at.awaitsUnit.sinceMillis >= unitMillis) {
    return [{ _tag: "UnitIncomplete", ...of, topic, partition, consumer, ...at.awaitsUnit }]
  }
  if (at.pauses.some((reason) => reason !== "backpressure")) return []
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
  CommitsFailing: "DOWN",
  TransactionsFailing: "DOWN",
  DeadLetterStrategyFailing: "DOWN",
  OpenTransaction: "DOWN",
  BatchUnreadable: "DOWN",
  UnitIncomplete: "DOWN",
  SerdeWaiting: "DOWN",
  PollLoopStuck: "DOWN",
  PartitionStalled: "DOWN",
  BreakerOpen: "DEGRADED",
  Paused: "DEGRADED",
  TierPaused: "DEGRADED",
  ReadingHolds: "DEGRADED",
  Starting: "DEGRADED",
  Closing: "DEGRADED"
} as const satisfies Record<Reason["_tag"], Status>
