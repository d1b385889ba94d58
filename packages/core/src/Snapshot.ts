/**
 * A binding as it is at one moment: lists, health, metrics and commands of operators show it. Taking one asks no broker.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type { UnreadableBatch } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import type * as CircuitBreaker from "./CircuitBreaker.ts"
import type { RecordPosition, TopicPartition } from "./ConsumerRecord.ts"
import type { ContainerState } from "./EventBusError.ts"
import type { ErrorSummary, Failure } from "./Failure.ts"
import type { Hold } from "./FleetView.ts"
import type { Described } from "./internal/settings/bindingDefinition.ts"

/**
 * How often the lag poller asks the cluster for the log ends of partitions that are not fetched (paused, waiting, idle), so that lag and health are right. Read when the
 * connector is made. 1 to 2^31 - 1 ms; another value ends the layer with `ConfigurationValidation`. Default 10 seconds.
 */
export const LagPollInterval = Context.Reference<Duration.Input>("@eventbus/core/Snapshot/LagPollInterval", {
  defaultValue: () => "10 seconds"
})

/**
 * Why a binding or a partition is paused (ruling 9). Each reason is set and cleared by its own owner.
 *
 * - `operator`: somebody paused the binding, or a record halted it.
 * - `breaker`: the circuit breaker is open.
 * - `delay`: the next record of a tier is not due yet.
 * - `backpressure`: enough fetched records are waiting.
 * - `shutdown`: the binding is stopping.
 * - `unreadable`: the next batch cannot be read (`PartitionSnapshot.unreadable`). Records before it are handled.
 * - `fleet`: an operator holds it in all processes (`BindingSnapshot.fleetHolds`), or this process has not read yet whether one does.
 * - `order`: its unit does not run yet (`orderingMode: "PER_KEY"`): the same partition of a retry topic, or of the source, is elsewhere, or parked keys are being looked up
 *   (`PartitionSnapshot.awaitsUnit`).
 */
export type PauseReason =
  | "operator"
  | "breaker"
  | "delay"
  | "backpressure"
  | "shutdown"
  | "unreadable"
  | "fleet"
  | "order"

/** A binding at one moment. */
export interface BindingSnapshot {
  /** The name of the binding. */
  readonly name: string
  /** The alias of its cluster. */
  readonly cluster: string
  /** The topic that it reads; the first one of several. */
  readonly topic: string
  /** All topics that it reads, as its settings list them. Their retry topics are not among them. */
  readonly topics: ReadonlyArray<string>
  /** The consumer group (Kafka: `group.id`). */
  readonly groupId: string
  /** The binding as it was registered, all defaults applied. `Plan.make` describes it. */
  readonly binding: Described<unknown>
  /** The state of its container. */
  readonly state: ContainerState
  /** Since when it shows this state, epoch milliseconds. */
  readonly sinceMillis: number
  /** Records that hold their partition until an operator decides about them (`skip`, `deadLetter`) or resumes. */
  readonly held: ReadonlyArray<HeldRecord>
  /** The batches of its dead letter topic that cannot be read, each of which holds the custom handler's partition until an operator passes it (`skip`), or until it is gone. */
  readonly unreadableLetters: ReadonlyArray<HeldBatch>
  /** The reasons that hold it when the state is PAUSED: `operator`, `breaker`, `fleet`, or several of them. */
  readonly pausedBy: ReadonlyArray<PauseReason>
  /** The holds of its fleet on it and on its retry tiers, with owner and reason. Empty without a fleet. */
  readonly fleetHolds: ReadonlyArray<Hold>
  /** Whether this process has just started and has not read the holds of its fleet yet. Until then it fetches nothing. False without a fleet. */
  readonly readsHolds: boolean
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
  /** The records that wait for the circuit breaker or make a trial call. Undefined for a binding without one. */
  readonly trials: Trials | undefined
  /** Set while copies for a retry or dead letter topic cannot be published. */
  readonly unpublished: Unpublished | undefined
  /** Set while no broker of the cluster answers, as it was asked last. */
  readonly unreachable: OngoingFailure | undefined
  /** Set while a topic that it reads does not exist, may not be read, or has a partition that nobody leads. The topic that is so longest. */
  readonly unreadable: TopicFailure | undefined
  /** Set while the group's coordinator refuses commits, or does not answer them. Records are handled, and would be handled again after a restart. */
  readonly commits: OngoingFailure | undefined
  /** Set while a transactional binding gets no producer, or its transactions fail. Its records wait. */
  readonly transactions: OngoingFailure | undefined
  /** Set while the dead letter strategy cannot do its work. Dead letters are stored all the same. */
  readonly deadLetterStrategy: OngoingFailure | undefined
  /** The newest failed attempt of this process, whatever became of its record. Undefined while none has failed since the process started; a stop of the binding does not remove it. */
  readonly newestFailure: NewestFailure | undefined
  /** Keys that are parked in the partitions of this process. Undefined unless the order of each key is kept through retry topics (`orderingMode: "PER_KEY"`). */
  readonly parked: ParkedCounts | undefined
  /** A record (or batch) is done with within this: `maxPollInterval`, in milliseconds. */
  readonly maxPollIntervalMillis: number
}

/** Keys of which a record waits in a retry topic, and what follows it in the source. */
export interface ParkedCounts {
  /** Keys whose record waits for its delivery. */
  readonly waiting: number
  /** Keys whose followers are handled now. */
  readonly draining: number
  /** Keys whose record waits for an operator (`perKey.onDeadLetter: "hold"`). */
  readonly held: number
  /** Records that wait behind them, as far as they are known: after a restart they are counted while the source is read again. */
  readonly followers: number
  /** Since when the oldest of them is parked, epoch milliseconds; undefined without any. */
  readonly oldestSinceMillis: number | undefined
  /** The held key that has been parked for longest; undefined without any. */
  readonly oldestHeld: OldestHeldKey | undefined
}

/** The place in the source of the record that holds a key. */
export interface OldestHeldKey extends RecordPosition {
  /** Since when the key is parked, epoch milliseconds. */
  readonly sinceMillis: number
}

/** The records of a binding that wait for its circuit breaker. */
export interface Trials {
  /** How many records wait for the breaker or make a trial call: at most one for each partition or key lane. 0: a half-open breaker has nothing to try. */
  readonly candidates: number
  /** Set while the breaker does not close because one record fails and no other is there to try. */
  readonly only: OnlyCandidate | undefined
}

/** The only record that a half-open circuit breaker could try. Its trials fail, and the record stays where it is (ruling 72) until an operator decides about it (`skip`, `deadLetter`). */
export interface OnlyCandidate extends TopicPartition {
  /** Its offset. */
  readonly offset: bigint
  /** When its first trial failed while no other record was there, epoch milliseconds. */
  readonly sinceMillis: number
}

/** A record that holds its partition: its attempts are used up under `onExhausted: "halt"`, or its route is `Route.pause`. */
export interface HeldRecord extends RecordPosition {
  /** The failure of its last attempt. */
  readonly failure: Failure
  /** Since when it holds its partition, epoch milliseconds. */
  readonly sinceMillis: number
}

/** A record batch that cannot be read, and so holds its partition until an operator passes it. */
export interface HeldBatch extends UnreadableBatch {
  /** The remedy that an operator has, in a few words. */
  readonly remedy: string
  /** Since when it holds the partition, epoch milliseconds. */
  readonly sinceMillis: number
}

/** The decision of an operator about a held record, or about the only candidate of a half-open circuit breaker. */
export interface Decision {
  /** `skip`: the record is dropped. `dead-letter`: it goes to the dead letter topic. */
  readonly kind: "skip" | "dead-letter"
  /** Why. */
  readonly reason: string
}

/** The topics of a binding, or one of its retry tiers, under the name that it has in the seed's registry. */
export interface ContainerSnapshot {
  /** `eventbus-{binding}`, or `eventbus-{binding}-retry-{tier}`. Outside of cluster `default`, `{cluster}:{binding}` stands for the binding. No other container of the program has this name. */
  readonly name: string
  /** 0 for the main topic. */
  readonly tier: number
  /** The topic that it reads; the first one of several. */
  readonly topic: string
  /** All topics that it reads: those of the binding, or the retry topic of each of them. */
  readonly topics: ReadonlyArray<string>
  /** Its state. */
  readonly state: ContainerState
}

/** A member of the group. */
export interface ConsumerSnapshot {
  /** Its number among the consumers of the binding, from 0. */
  readonly index: number
  /** Whether its session is being made, runs, or has failed and is waiting to be made again. `fenced`: another process joined under its `group.instance.id`, and it stays stopped. */
  readonly status: "connecting" | "running" | "crashed" | "fenced"
  /** Since when it has this status, epoch milliseconds. */
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
  /** The generation of the group in which the partition was assigned. */
  readonly generation: number
  /** The first offset that is not finished. */
  readonly position: bigint
  /** Undefined before the first commit of the group. */
  readonly committed: bigint | undefined
  /** One past the last offset of the log: as of the last fetch, or at most `LagPollInterval` old where nothing is fetched. */
  readonly logEnd: bigint
  /**
   * Offsets that are not finished, never negative: `logEnd` less the position, or less the log's start where retention has passed the position and all that was fetched.
   * 0 is exact. Greater values are exact where the log is dense, and upper bounds where compaction or transaction markers leave holes. Records of open transactions count,
   * and so do fetched records that retention has taken meanwhile: they are handled. So do records that wait behind a parked key, although the committed offset is past them.
   */
  readonly lag: bigint
  /** Since when an open transaction holds the partition, epoch milliseconds; undefined while none does. Only under `read_committed`. */
  readonly openTransactionSinceMillis: number | undefined
  /** The reasons that hold its fetching. */
  readonly pauses: ReadonlyArray<PauseReason>
  /** The batch that holds the partition because it cannot be read (ruling 79); undefined while none does. `EventBusConnector.skip` passes it. */
  readonly unreadable: HeldBatch | undefined
  /** Records that have begun and are not finished. */
  readonly inFlight: number
  /** Records that are fetched and not done with. Those whose copies are on their way count in `inFlight` alone. */
  readonly buffered: number
  /** Bytes of keys, values and headers of the buffered records. */
  readonly bufferedBytes: number
  /** For how long the position has not moved although there is lag, in milliseconds, `LagPollInterval` too little at most. 0 without lag. */
  readonly waitingMillis: number
  /**
   * For how long the cluster has had records that no fetch brings, although nothing holds the partition, in milliseconds, twice `LagPollInterval` too little at most.
   * Time in which the process did not run does not count.
   */
  readonly unfetchedMillis: number
  /** For how long a record has waited for what its serde prepares (`Serde.prepare`), such as a schema that cannot be fetched, in milliseconds. 0 when none does. */
  readonly preparingMillis: number
  /** Set while the partition handles nothing because its unit does not run (`orderingMode: "PER_KEY"`). */
  readonly awaitsUnit: AwaitedUnit | undefined
}

/** Why a partition and its retry partitions do not run together yet. */
export interface AwaitedUnit {
  /** The part that is missing, or the failure of the last attempt to begin. */
  readonly problem: string
  /** Epoch milliseconds. */
  readonly sinceMillis: number
}

/** A failed attempt. The position is where the record was read: in a retry topic for a copy. */
export interface NewestFailure extends RecordPosition, ErrorSummary {
  /** Where the record was read first. */
  readonly origin: RecordPosition
  /** When the attempt failed, epoch milliseconds. */
  readonly atMillis: number
}

/** A failure that lasts. */
export interface OngoingFailure {
  /** The last error. */
  readonly error: BrokerError
  /** Since when it lasts, epoch milliseconds. */
  readonly sinceMillis: number
}

/** A failure of a topic that lasts. */
export interface TopicFailure extends OngoingFailure {
  /** The topic. */
  readonly topic: string
}

/** Copies that wait because their topic takes none. */
export interface Unpublished {
  /** The topic that takes no copies. */
  readonly topic: string
  /** The error of the last attempt. */
  readonly error: BrokerError
  /** Since when copies wait, epoch milliseconds. */
  readonly sinceMillis: number
  /** Copies that wait. */
  readonly copies: number
}
