/**
 * Takes the snapshot of a binding from the state of its parts.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { ContainerState } from "../../EventBusError.ts"
import type {
  BindingSnapshot,
  ConsumerSnapshot,
  ContainerSnapshot,
  OngoingFailure,
  ParkedCounts,
  PartitionSnapshot,
  TopicFailure
} from "../../Snapshot.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import type { Strategy } from "../deadLetters/strategy.ts"
import type { ConsumerStatus } from "../group/supervisor.ts"
import type { BindingFailures, OngoingFailures } from "../observe/ongoingFailures.ts"
import type { HeldRecords } from "../partition/heldRecords.ts"
import type { Partition } from "../partition/partition.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { CopyPublisher } from "../publish/copyPublisher.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Sources from "../settings/sources.ts"
import type { BreakerPermits } from "../slots/breakerPermits.ts"
import type { ClusterStatus } from "./lagPoller.ts"
import type { Pausing } from "./pausing.ts"

export interface Parts {
  readonly definition: BindingDefinition<unknown>
  readonly state: () => ContainerState
  readonly sinceMillis: () => number
  readonly pausing: Pick<Pausing, "pausedBy" | "pausedTiers" | "fleetHolds" | "readsHolds">
  readonly held: Pick<HeldRecords, "list">
  /** Undefined before the dead letter strategy runs. */
  readonly unreadableLetters: () => Pick<Strategy["unreadable"], "list"> | undefined
  readonly copyPublisher: Pick<CopyPublisher, "unpublished">
  readonly clusterStatus: ClusterStatus
  readonly failures: BindingFailures
  /** Undefined for a binding without order per key. */
  readonly parked: (() => ParkedCounts) | undefined
  readonly breaker: CircuitBreaker.CircuitBreaker | undefined
  readonly permits: Pick<BreakerPermits, "trials"> | undefined
  /** By the index of the consumer. */
  readonly statuses: ReadonlyMap<number, ConsumerStatus>
}

export const take = (parts: Parts): Effect.Effect<BindingSnapshot> =>
  Effect.gen(function* () {
    const { definition, pausing, held, copyPublisher, breaker, statuses, failures } = parts
    const now = yield* Clock.currentTimeMillis
    const state = parts.state()
    const pausedTiers = pausing.pausedTiers()
    const fleetHolds = pausing.fleetHolds()
    const heldTiers = [...pausedTiers, ...fleetHolds.flatMap(({ tier }) => tier ?? [])]
    return {
      name: definition.name,
      cluster: definition.cluster,
      topic: definition.topic,
      topics: Sources.topicsOf(definition),
      groupId: definition.groupId,
      binding: { name: definition.name, definition },
      state,
      sinceMillis: parts.sinceMillis(),
      held: held.list(),
      unreadableLetters: parts.unreadableLetters()?.list() ?? [],
      pausedBy: pausing.pausedBy(),
      pausedTiers,
      fleetHolds,
      readsHolds: pausing.readsHolds(),
      containers: containersOf(definition, state, heldTiers),
      consumers: Array.from(statuses, ([index, status]) => consumerOf(index, status)),
      partitions: Array.from(statuses)
        .flatMap(([index, { consumer }]) => (consumer?.partitions() ?? []).map((at) => partitionOf(index, at, now)))
        .sort((a, b) => a.tier - b.tier || compareText(a.topic, b.topic) || a.partition - b.partition),
      breaker: breaker === undefined ? undefined : yield* breaker.snapshot,
      trials: parts.permits?.trials(),
      unpublished: copyPublisher.unpublished(),
      unreachable: parts.clusterStatus.unreachable,
      unreadable: topicFailure(failures),
      commits: failureOf(failures.commits),
      transactions: failureOf(failures.transactions),
      deadLetterStrategy: failureOf(failures.strategy),
      newestFailure: failures.newest.read(),
      parked: parts.parked?.(),
      maxPollIntervalMillis: definition.maxPollIntervalMillis
    }
  })

const compareText = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)

const failureOf = (failures: OngoingFailures): OngoingFailure | undefined => {
  const failure = failures.longest()
  return failure && { error: failure.error, sinceMillis: failure.sinceMillis }
}

const topicFailure = ({ topics }: BindingFailures): TopicFailure | undefined => {
  const failure = topics.longest()
  // Behind the name, which has no space, may stand which request fails.
  return failure && { topic: failure.about.split(" ", 1)[0]!, error: failure.error, sinceMillis: failure.sinceMillis }
}

/** A tier is paused together with its binding, or alone. */
const containersOf = (
  definition: BindingDefinition<unknown>,
  state: ContainerState,
  heldTiers: ReadonlyArray<number>
): ReadonlyArray<ContainerSnapshot> => [
  {
    ...{ name: DerivedNames.container(BindingKey.label(definition)), tier: 0, topic: definition.topic },
    ...{ topics: Sources.topicsOf(definition), state }
  },
  ...Array.from({ length: definition.tiers.count }, (_, index): ContainerSnapshot => {
    const tier = index + 1
    const isPaused = state === "RUNNING" && heldTiers.includes(tier)
    return {
      name: DerivedNames.container(BindingKey.label(definition), tier),
      tier,
      topic: definition.tiers.topicOf(tier).topic,
      topics: Sources.of(definition).map(({ tiers }) => tiers.topicOf(tier).topic),
      state: isPaused ? "PAUSED" : state
    }
  })
]

const consumerOf = (
  index: number,
  { status, sinceMillis, hasRun, error, crashes }: ConsumerStatus
): ConsumerSnapshot => ({ index, status, sinceMillis, hasRun, error, crashes })

const partitionOf = (consumer: number, partition: Partition, nowMillis: number): PartitionSnapshot => ({
  topic: partition.topic,
  partition: partition.partition,
  tier: partition.tier?.first ?? 0,
  consumer,
  generation: partition.generation,
  position: partition.position(),
  committed: partition.committed < 0n ? undefined : partition.committed,
  logEnd: partition.log.end,
  lag: partition.lag(),
  openTransactionSinceMillis: partition.log.openTransaction?.sinceMillis,
  pauses: PauseReasons.list(partition.reasons),
  unreadable: partition.unreadable,
  inFlight: partition.tracker.inFlight(),
  buffered: partition.held.records,
  bufferedBytes: Math.round(partition.held.bytes),
  waitingMillis: partition.waitingMillis(nowMillis),
  unfetchedMillis: partition.log.unfetchedMillis ?? 0,
  preparingMillis: millisSince(partition.preparingSinceMillis, nowMillis),
  awaitsUnit: partition.awaitsUnit
})

const millisSince = (sinceMillis: number | undefined, nowMillis: number): number =>
  sinceMillis === undefined ? 0 : nowMillis - sinceMillis
