/**
 * A binding as it is at one moment: what lists, health, metrics and commands of operators show. Taking one asks no broker.
 */
import { Context, type Duration } from "effect"
import type { BrokerError } from "./BrokerError.ts"
import type * as CircuitBreaker from "./CircuitBreaker.ts"
import type { TopicPartition } from "./ConsumerRecord.ts"
import type { ContainerState } from "./EventBusError.ts"
import type { PauseReason } from "./internal/partition/pauseReasons.ts"

/**
 * How often the connector looks at partitions that no fetch tells about (paused, waiting, idle), so that lag and health are right. Read when the connector
 * is made. Default 10 seconds.
 */
export const WatchInterval = Context.Reference<Duration.Input>("@eventbus/core/Snapshot/WatchInterval", {
  defaultValue: () => "10 seconds"
})

export interface BindingSnapshot {
  readonly name: string
  /** The alias of its cluster. */
  readonly cluster: string
  readonly topic: string
  readonly groupId: string
  readonly state: ContainerState
  /** Since when it shows this state, epoch milliseconds. */
  readonly sinceMillis: number
  /** Who holds it when the state is PAUSED: `operator`, `breaker` or both. */
  readonly pausedBy: ReadonlyArray<PauseReason>
  /** Retry tiers that are paused by themselves. */
  readonly pausedTiers: ReadonlyArray<number>
  /** The main container, then one for each retry tier. */
  readonly containers: ReadonlyArray<ContainerSnapshot>
  /** One for each consumer that was started. */
  readonly consumers: ReadonlyArray<ConsumerSnapshot>
  /** The partitions that its consumers own, main topic first. */
  readonly partitions: ReadonlyArray<PartitionSnapshot>
  /** Undefined for a binding without a circuit breaker. */
  readonly breaker: CircuitBreaker.Snapshot | undefined
  /** Set while copies for a retry or dead letter topic cannot be published. */
  readonly unpublished: Unpublished | undefined
  /** Set while no broker of the cluster answers, as it was asked last. */
  readonly unreachable: OngoingFailure | undefined
  /** Set while no consumer has a partition, and the topic does not exist or may not be read. */
  readonly unreadable: OngoingFailure | undefined
  /** A record (or batch) is done with within this: `maxPollInterval`, in milliseconds. */
  readonly maxPollIntervalMillis: number
}

/** The main topic of a binding, or one of its retry tiers, under the name that it has in the seed's registry. */
export interface ContainerSnapshot {
  /** `eventbus-{binding}`, or `eventbus-{binding}-retry-{tier}`. */
  readonly name: string
  /** 0 for the main topic. */
  readonly tier: number
  readonly topic: string
  readonly state: ContainerState
}

/** A member of the group. */
export interface ConsumerSnapshot {
  readonly index: number
  readonly status: "connecting" | "running" | "crashed"
  readonly sinceMillis: number
  /** Whether it has been a member of its group since the binding was started. */
  readonly hasRun: boolean
  /** Why it crashed last; undefined while it is running, and before it ever was. */
  readonly error: BrokerError | undefined
  /** Crashes in a row: without a minute of running in between. */
  readonly crashes: number
}

/** One assignment of a partition. */
export interface PartitionSnapshot extends TopicPartition {
  /** 0 for the main topic; else the first tier whose records wait in the topic. */
  readonly tier: number
  /** Index of the consumer that owns it. */
  readonly consumer: number
  readonly generation: number
  /** The first offset that is not finished. */
  readonly position: bigint
  /** Undefined before the first commit of the group. */
  readonly committed: bigint | undefined
  /** One past the last offset that can be read: as of the last fetch, or at most half a minute old where nothing is fetched. */
  readonly logEnd: bigint
  /** `logEnd - position`, never negative: offsets that are not finished. */
  readonly lag: bigint
  /** What holds its fetching. */
  readonly pauses: ReadonlyArray<PauseReason>
  /** Records that have begun and are not finished. */
  readonly inFlight: number
  /** Records that are fetched and not done with, those in flight included. */
  readonly buffered: number
  readonly bufferedBytes: number
  /** For how long the position has not moved although there is lag, in milliseconds, `WatchInterval` too little at most. 0 without lag. */
  readonly waitingMillis: number
  /** For how long the cluster has had records that no fetch brings, although nothing holds the partition, in milliseconds, 20 seconds too little at most. */
  readonly unfetchedMillis: number
  /** For how long a record has waited for what its serde prepares (`Serde.prepare`), such as a schema that cannot be fetched, in milliseconds. 0 when none does. */
  readonly preparingMillis: number
}

export interface OngoingFailure {
  readonly error: BrokerError
  readonly sinceMillis: number
}

/** Copies that wait because their topic takes none. */
export interface Unpublished {
  readonly topic: string
  /** Of the last attempt. */
  readonly error: BrokerError
  readonly sinceMillis: number
  /** Copies that wait. */
  readonly copies: number
}
