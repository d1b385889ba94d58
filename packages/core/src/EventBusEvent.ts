/**
 * Everything that happens, as one tagged union. Logs, metrics, snapshots and tests all read these.
 *
 * Events are built only while somebody listens, so they cost nothing otherwise. They are plain data, except for the source record.
 */
import type { BrokerError } from "./BrokerError.ts"
import type * as CircuitBreaker from "./CircuitBreaker.ts"
import type { ConsumerRecord, TopicPartition } from "./ConsumerRecord.ts"
import type { ContainerState } from "./EventBusError.ts"
import type { Failure } from "./Failure.ts"
import type { RequiredAcl } from "./internal/checks/acls.ts"
import type { StrategyEvent } from "./internal/deadLetters/strategyEvents.ts"
import type { PauseReason } from "./internal/partition/pauseReasons.ts"
import type { DeadLetterReason } from "./internal/record/deadLetterHeaders.ts"

/**
 * How the delivery of a record ended.
 *
 * - `Handled`: the handler succeeded.
 * - `Routed`: a copy is acknowledged in a retry topic. `DeadLettered`: in the dead letter topic.
 * - `Skipped`: dropped on purpose.
 * - `Halted`: kept, until somebody resumes its partition. `HeldByBreaker`: kept, until the circuit breaker lets it be tried again.
 * - `Abandoned`: the partition was given up first; its next owner delivers the record again.
 */
export type Settlement = "Handled" | "Routed" | "DeadLettered" | "Skipped" | "Halted" | "HeldByBreaker" | "Abandoned"

/** Where the copy of a record went. */
export interface Target {
  readonly topic: string
  /** Set for a retry topic: the tier, and which delivery in it comes next, from 1. */
  readonly tier?: number
  readonly attempt?: number
  /** Set for a dead letter topic: why. */
  readonly reason?: DeadLetterReason
}

interface OfBinding {
  /** The alias of the binding's cluster. */
  readonly cluster: string
  readonly binding: string
}

interface OfConsumer extends OfBinding {
  /** Index of the consumer in its binding, from 0. */
  readonly consumer: number
}

interface OfPartition extends OfConsumer, TopicPartition {
  /** The generation in which the partition was assigned. */
  readonly generation: number
}

interface OfRecord extends OfPartition {
  readonly record: ConsumerRecord
}

export type EventBusEvent =
  /** A lifecycle command, or a pause by breaker or operator, changed what the binding shows. */
  | (OfBinding & {
      readonly _tag: "StateChanged"
      readonly from: ContainerState
      readonly to: ContainerState
      readonly reasons: ReadonlyArray<PauseReason>
    })
  | (OfConsumer & { readonly _tag: "SessionStarted" })
  /** The client died, for the `attempt`th time (from 1) since it last held for a minute. It is started again after `restartInMillis`. */
  | (OfConsumer & {
      readonly _tag: "SessionCrashed"
      readonly error: BrokerError
      readonly attempt: number
      readonly restartInMillis: number
    })
  | (OfConsumer & { readonly _tag: "SessionClosed" })
  /** Code that does not yield kept the whole process from running for so long, heartbeats included: the group may have given the partitions away. */
  | (OfConsumer & {
      readonly _tag: "EventLoopBlocked"
      readonly blockedMillis: number
      readonly sessionTimeoutMillis: number
    })
  /** The topic cannot be read as things stand. The session waits for it, and goes on by itself when it can be. */
  | (OfConsumer & { readonly _tag: "TopicUnavailable"; readonly topic: string; readonly error: BrokerError })
  /** ACLs deny what the binding will need, as far as the cluster says. It goes on without, until it needs it; granting heals it. */
  | (OfConsumer & { readonly _tag: "AclsMissing"; readonly acls: ReadonlyArray<RequiredAcl> })
  /** More consumers than partitions: the rest get nothing. */
  | (OfConsumer & {
      readonly _tag: "ConsumersIdle"
      readonly topic: string
      readonly concurrency: number
      readonly partitions: number
    })
  /** The partition is ours; reading starts at `position`. */
  | (OfPartition & { readonly _tag: "PartitionAssigned"; readonly position: bigint })
  /** The partition is to be given up; work in progress is drained. */
  | (OfPartition & { readonly _tag: "PartitionRevoked" })
  /** The partition was drained and given up; `committed` is where the next owner starts. */
  | (OfPartition & { readonly _tag: "PartitionReleased"; readonly committed: bigint })
  /** Somebody else may own the partition already; work in progress was cut off and nothing is committed. */
  | (OfPartition & { readonly _tag: "PartitionLost" })
  /** Offsets `from` (inclusive) to `to` (exclusive) are not in the log any more, or the log is not the one that was read: `gone` records were never seen (undefined: cannot be known). */
  | (OfPartition & {
      readonly _tag: "RecordsGone"
      readonly from: bigint
      readonly to: bigint
      readonly gone: bigint | undefined
      readonly cause: "retention" | "log-replaced" | "invalid-commit"
    })
  | (OfPartition & { readonly _tag: "FetchPaused"; readonly reasons: ReadonlyArray<PauseReason> })
  | (OfPartition & { readonly _tag: "FetchResumed" })
  | (OfRecord & { readonly _tag: "Started" })
  | (OfRecord & {
      readonly _tag: "AttemptFailed"
      readonly attempt: number
      readonly failure: Failure
      readonly retryInMillis: number | undefined
    })
  | (OfRecord & {
      readonly _tag: "Settled"
      readonly settlement: Settlement
      readonly attempts: number
      readonly failure: Failure | undefined
      /** Set when it was routed or dead-lettered. */
      readonly target: Target | undefined
    })
  /** What the strategy for dead letters did, or could not do. None of it changes the fate of a record that is stored. */
  | (OfBinding & StrategyEvent)
  /** The circuit breaker changed its state. */
  | (OfBinding & {
      readonly _tag: "BreakerChanged"
      readonly from: CircuitBreaker.State
      readonly to: CircuitBreaker.State
      readonly snapshot: CircuitBreaker.Snapshot
    })
  /** A copy could not be published to a retry or dead letter topic; the record stays unfinished, and the publish is repeated. */
  | (OfRecord & {
      readonly _tag: "PublishFailed"
      readonly topic: string
      readonly error: BrokerError
      readonly attempt: number
    })
  | (OfPartition & { readonly _tag: "Committed"; readonly offset: bigint })
  /** The machinery of a transaction failed; the partition goes on from what was committed, with a new producer. */
  | (OfPartition & { readonly _tag: "TransactionFailed"; readonly error: BrokerError })
  | (OfConsumer & { readonly _tag: "CommitFailed"; readonly error: BrokerError; readonly attempt: number })
  /** The 70 % valve cut a batch or a handler short (`eventbus.poll.interval.safety.triggered`). */
  | (OfPartition & { readonly _tag: "ProcessingBudgetReached" })
  /** A handler did not end within the drain bound and was interrupted; its record stays unfinished. */
  | (OfPartition & { readonly _tag: "DrainTimedOut"; readonly unfinished: number })
