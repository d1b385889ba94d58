/**
 * Everything that happens, as one tagged union. Logs, metrics, snapshots and tests all read these events. They are plain data, except for the source record. The
 * connector builds them only while somebody listens, so they cost nothing otherwise.
 */
import type { RequiredAcl, UnreadableBatch } from "./Broker.ts"
import type { BrokerError, InstanceFenced } from "./BrokerError.ts"
import type * as CircuitBreaker from "./CircuitBreaker.ts"
import type { RecordPosition, RetryProgress } from "./ConsumerRecord.ts"
import type { DeadLetterRecord } from "./DeadLetterRecord.ts"
import type { ContainerState, DltPublish } from "./EventBusError.ts"
import type { DeadLetterReason, Failure } from "./Failure.ts"
import type { BehindKeys, LocksGone, RetentionUnknown, UnitWaits } from "./internal/observe/behindKeys.ts"
import type { DecisionEvent } from "./internal/observe/decisionEvent.ts"
import type { OfBinding, OfConsumer, OfPartition, OfRecord } from "./internal/observe/eventSubjects.ts"
import type { UnreadableEvent } from "./internal/observe/unreadableEvent.ts"
import type { Report } from "./Replay.ts"
import type { PauseReason } from "./Snapshot.ts"

export type { BehindKeys, KeyBehind, LocksGone, RetentionUnknown, UnitWaits } from "./internal/observe/behindKeys.ts"
export type { DecisionEvent } from "./internal/observe/decisionEvent.ts"
export type { UnreadableEvent } from "./internal/observe/unreadableEvent.ts"

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
  /** The retry or dead letter topic. */
  readonly topic: string
  /** Set for a retry topic: the tier, from 1. */
  readonly tier?: number
  /** Set for a retry topic: which delivery in the tier comes next, from 1. */
  readonly attempt?: number
  /** Set for a dead letter topic: why. */
  readonly reason?: DeadLetterReason
  /** Set when the record waits in the retry topic for an operator, and its key behind it (`perKey.onDeadLetter: "hold"`): its place in the source, by which a decision names it. */
  readonly heldAt?: RecordPosition
}

/** A retry or dead letter topic that other groups use, too. */
export interface SharedTopic {
  /** The topic. */
  readonly topic: string
  /** The other groups. */
  readonly groups: ReadonlyArray<string>
}

/** The outcome of a strategy for dead letters. No event of it changes the fate of a record that is stored. */
export type StrategyEvent =
  /** The alert handler failed or died, or it was interrupted after its timeout. */
  | {
      readonly _tag: "AlertFailed"
      /** The stored dead letter that the alert was about. */
      readonly letter: DeadLetterRecord
      /** The failure of the handler. */
      readonly failure: Failure
    }
  /** The queue of alerts is full, and this alert was dropped. */
  | { readonly _tag: "AlertDropped" }
  /** The custom handler failed or died. The record stays in the topic, and the next one follows. */
  | { readonly _tag: "LetterHandlerFailed"; readonly letter: DeadLetterRecord; readonly failure: Failure }
  /** The custom handler's consumer left out dead letters of another group. Once a minute at most. */
  | {
      readonly _tag: "ForeignLettersPassedOver"
      /** The dead letter topic. */
      readonly topic: string
      /** The group that the dead letters belong to. */
      readonly owner: string
      /** How many since the last such event. */
      readonly records: number
    }
  /** An operator passed a batch of dead letters that the custom handler's consumer could not read: the handler gets none of them. */
  | {
      readonly _tag: "UnreadableLettersSkipped"
      /** The batch. */
      readonly batch: UnreadableBatch
      /** Why it was passed. */
      readonly reason: string
    }
  /** A scheduled replay dealt with at least one record. */
  | {
      readonly _tag: "ScheduledReplay"
      /** The counts of the replay. */
      readonly report: Report
    }
  /** A scheduled replay, or the consumer of a custom handler, failed and retries. */
  | {
      readonly _tag: "StrategyFailed"
      /** Why it failed. */
      readonly error: BrokerError
      /** When it tries again, in milliseconds from now. */
      readonly retryInMillis: number
    }

/** One event. Every event names its cluster and binding; most name the consumer, the partition or the record that they are about. */
export type EventBusEvent =
  /** A lifecycle command, or a pause by the breaker or an operator, changed what the binding shows. */
  | (OfBinding & {
      readonly _tag: "StateChanged"
      /** The state before. */
      readonly from: ContainerState
      /** The state now. */
      readonly to: ContainerState
      /** The owners of a pause of the binding; empty when nothing pauses it. */
      readonly reasons: ReadonlyArray<PauseReason>
    })
  /** The consumer has a session with the cluster. */
  | (OfConsumer & { readonly _tag: "SessionStarted" })
  /** The client died. The connector starts it again. */
  | (OfConsumer & {
      readonly _tag: "SessionCrashed"
      /** Why it died. */
      readonly error: BrokerError
      /** Which crash this is, from 1, since the last session that held for a minute. */
      readonly attempt: number
      /** When the next session starts, in milliseconds from now. */
      readonly restartInMillis: number
    })
  /** Another process joined the group under the static member's name. The consumer stays stopped: it does not take the name back. */
  | (OfConsumer & {
      readonly _tag: "ConsumerFenced"
      /** Names the group and the `group.instance.id`. */
      readonly error: InstanceFenced
    })
  /** The consumer left its group, because the binding stopped. */
  | (OfConsumer & { readonly _tag: "SessionClosed" })
  /** Code that does not yield kept the whole process from running, heartbeats included: the group may have reassigned the partitions. */
  | (OfConsumer & {
      readonly _tag: "EventLoopBlocked"
      /** How long nothing ran, in milliseconds. */
      readonly blockedMillis: number
      /** `sessionTimeout`, in milliseconds: after so long without a heartbeat the group reassigns the partitions. */
      readonly sessionTimeoutMillis: number
    })
  /** The topic cannot be read. The session waits for it, and goes on by itself when it can be read. */
  | (OfConsumer & {
      readonly _tag: "TopicUnavailable"
      /** The topic. */
      readonly topic: string
      /** Why it cannot be read. */
      readonly error: BrokerError
    })
  /** ACLs deny operations that the binding will need, as far as the cluster says. The binding goes on until it needs them; granting them is enough. */
  | (OfConsumer & {
      readonly _tag: "AclsMissing"
      /** Every ACL that is missing. */
      readonly acls: ReadonlyArray<RequiredAcl>
    })
  /** Other groups use the retry or dead letter topics of the binding, as the newest copies in them say. Each group handles its own copies only. */
  | (OfConsumer & {
      readonly _tag: "TopicsShared"
      /** The topics, each with the other groups. */
      readonly shared: ReadonlyArray<SharedTopic>
    })
  /** The retention of a source cannot be read, and order per key needs it: no key is given up before the records behind it are deleted. Once, until it can be read. */
  | (OfConsumer & RetentionUnknown)
  /** There are more consumers than partitions: the other consumers get nothing. */
  | (OfConsumer & {
      readonly _tag: "ConsumersIdle"
      /** The main topic. */
      readonly topic: string
      /** The consumers of the binding in this process. */
      readonly concurrency: number
      /** The partitions of the topic. */
      readonly partitions: number
    })
  /** The consumer left out records of another group: replays for it in the main topic, or its copies in a shared retry topic. Once a minute at most. */
  | (OfConsumer & {
      readonly _tag: "ForeignRecordsPassedOver"
      /** The main topic or the retry topic. */
      readonly topic: string
      /** The group that the records belong to. */
      readonly owner: string
      /** `replay`: replayed for that group. `copy`: published by that group because it could not handle them. */
      readonly kind: "replay" | "copy"
      /** How many since the last such event. */
      readonly records: number
    })
  /** The consumer owns the partition now. */
  | (OfPartition & {
      readonly _tag: "PartitionAssigned"
      /** The offset where reading starts. */
      readonly position: bigint
    })
  /** The consumer has to give the partition up; it drains work in progress first. */
  | (OfPartition & { readonly _tag: "PartitionRevoked" })
  /** The consumer drained the partition and gave it up. */
  | (OfPartition & {
      readonly _tag: "PartitionReleased"
      /** The committed offset, where the next owner starts. */
      readonly committed: bigint
    })
  /** Another member may own the partition already; running handlers were interrupted and nothing is committed. */
  | (OfPartition & { readonly _tag: "PartitionLost" })
  /** Offsets are not in the log any more, or the log is not the one that was read. After a deleted topic the partition is assigned no more, and the event comes within 10 seconds. */
  | (OfPartition &
      Partial<BehindKeys> & {
        readonly _tag: "RecordsGone"
        /** The first offset that is gone. */
        readonly from: bigint
        /** The offset behind the last one that is gone, where reading continues; for a deleted topic the last known end of the log. */
        readonly to: bigint
        /** How many records were never read; undefined when that cannot be known. */
        readonly gone: bigint | undefined
        /** True when more may be gone: the topic was made again, and it cannot be told which topic the rest of the last known log belonged to. */
        readonly isLowerBound?: boolean
        /** Why: the topic's retention, a newer record of the key in a compacted topic, a new topic under the same name, a committed offset that never existed, or a topic that was deleted, or deleted and made again, while records waited in it. */
        readonly cause: "retention" | "compaction" | "log-replaced" | "invalid-commit" | "topic-deleted"
      })
  | (OfPartition & (UnitWaits | LocksGone))
  /** A record batch cannot be read, or an operator passed it. */
  | (OfPartition & UnreadableEvent)
  /** The partition is not fetched from now. */
  | (OfPartition & { readonly _tag: "FetchPaused"; readonly reasons: ReadonlyArray<PauseReason> })
  /** The partition is fetched from again. */
  | (OfPartition & { readonly _tag: "FetchResumed" })
  /** The delivery of a record began. */
  | (OfRecord & { readonly _tag: "Started" })
  /** A call of the handler failed. */
  | (OfRecord & {
      readonly _tag: "AttemptFailed"
      /** Which call of this delivery, from 1. */
      readonly attempt: number
      /** Why it failed. */
      readonly failure: Failure
      /** When the next attempt in place starts, in milliseconds from now; undefined when there is none. */
      readonly retryInMillis: number | undefined
    })
  /** The delivery of a record ended. */
  | (OfRecord &
      Partial<RetryProgress> & {
        readonly _tag: "Settled"
        /** How it ended. */
        readonly settlement: Settlement
        /** Handler calls of this delivery. */
        readonly attempts: number
        /** The last failure; undefined when the handler succeeded or was not called. */
        readonly failure: Failure | undefined
        /** Where the copy went. Set when the record was routed or dead-lettered. */
        readonly target: Target | undefined
      })
  /** The strategy for dead letters did something, or could not. */
  | (OfBinding & StrategyEvent)
  /** An operator decided about a record that holds its partition, or its key. */
  | (OfBinding & DecisionEvent)
  /** The circuit breaker changed its state. */
  | (OfBinding & {
      readonly _tag: "BreakerChanged"
      /** The state before. */
      readonly from: CircuitBreaker.State
      /** The state now. */
      readonly to: CircuitBreaker.State
      /** The new state, with the counts that led to the change. */
      readonly snapshot: CircuitBreaker.Snapshot
    })
  /** The broker refused a copy for a retry or dead letter topic. The record stays unfinished, and the publish is repeated. */
  | (OfRecord & {
      readonly _tag: "PublishFailed"
      /** The topic of the copy. */
      readonly topic: string
      /** Why the broker refused it. */
      readonly error: BrokerError
      /** Which attempt to publish this copy, from 1. */
      readonly attempt: number
      /** Set for a dead letter topic: the refusal as an error of the connector, which names the record. Its cause is `error`. */
      readonly deadLetter: DltPublish | undefined
    })
  /** The group's offset of the partition moved. */
  | (OfPartition & {
      readonly _tag: "Committed"
      /** The committed offset: the next one to read. */
      readonly offset: bigint
    })
  /** A transaction failed. The partition goes on from the committed offset, with a new producer. */
  | (OfPartition & { readonly _tag: "TransactionFailed"; readonly error: BrokerError })
  /** A commit failed. It is repeated when that can help. */
  | (OfConsumer & {
      readonly _tag: "CommitFailed"
      readonly error: BrokerError
      /** Which attempt to commit, from 1. */
      readonly attempt: number
    })
  /** A batch or a handler took 70 % of `maxPollInterval` and was cut short (`eventbus.poll.interval.safety.triggered`). */
  | (OfPartition & { readonly _tag: "ProcessingBudgetReached" })
  /** Handlers did not end, or copies were not acknowledged, within the drain's part of `shutdownTimeout`, and were given up; their records stay unfinished. */
  | (OfPartition & {
      readonly _tag: "DrainTimedOut"
      /** Records that were in work, or whose copies were on their way. */
      readonly unfinished: number
    })
