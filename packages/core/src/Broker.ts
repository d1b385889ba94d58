/**
 * The Broker port: the only door to Kafka. `@eventbus/kafkajs` opens it on a real cluster, `@eventbus/testkit` in memory; one
 * contract suite holds both to these docstrings.
 *
 * Three rules run through all of it:
 *
 * - **Fetching never waits for handling.** A session hands over chunks; the consumer steers with `pause`, `resume` and `seek`.
 * - **An assignment has an identity.** Each assigned partition carries the generation in which it was assigned. Chunks and
 *   commits name it, so that a late result of an old assignment has nothing that it could move.
 * - **A session ends loudly.** When the client under it dies, the events queue fails with the reason; a new session is the remedy.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { BrokerError } from "./BrokerError.ts"
import type { Compression, ProducerRecord, RecordMetadata, TopicPartition } from "./ConsumerRecord.ts"
import type { Admin, CommittedOffset } from "./internal/port/admin.ts"
import type { ConsumerOptions } from "./internal/port/consumerOptions.ts"
import type { Assignment, ConsumerGroupMetadata } from "./internal/port/groupMetadata.ts"
import type { FetchedRecords, FetchOptions, MissingPosition, Reader } from "./internal/port/reader.ts"
import type { UnreadableBatch } from "./internal/port/unreadableBatch.ts"

export type {
  AclOperation,
  Admin,
  AuthorizedOperations,
  ClusterDescription,
  ClusterNode,
  CommittedOffset,
  GroupDescription,
  NewTopic,
  PartitionOffsets,
  RequiredAcl,
  TopicDescription
} from "./internal/port/admin.ts"
export { type AssignmentStrategy, names as assignmentStrategies } from "./internal/port/assignmentStrategy.ts"
export type { ConsumerOptions } from "./internal/port/consumerOptions.ts"
export type { Assignment, ConsumerGroupMetadata } from "./internal/port/groupMetadata.ts"
export type { GroupProtocol } from "./internal/port/groupProtocol.ts"
export type { FetchedRecords, FetchOptions, MissingPosition, Reader, ReadResult } from "./internal/port/reader.ts"
export type { UnreadableBatch } from "./internal/port/unreadableBatch.ts"

/** A partition that this session now owns, with what the cluster knows of it at that moment. */
export interface AssignedPartition extends TopicPartition {
  /** The id that the cluster gave the topic when it was made: a topic that is made again has another one. Undefined when the cluster gives none (Kafka before 2.8). */
  readonly topicId: string | undefined
  /** The group's committed offset exactly as the broker keeps it: undefined when there is none; may be negative or outside the log. */
  readonly committed: bigint | undefined
  /** First offset that is still there. */
  readonly logStart: bigint
  /** One past the last offset (the last stable offset under `read_committed`). */
  readonly logEnd: bigint
}

/** Records of an assigned partition. Commit their `nextOffset`, or lag never reaches 0. */
export interface RecordChunk extends FetchedRecords {
  /** The generation in which the partition was assigned. */
  readonly generation: number
}

/**
 * The events of a session, in the order in which they happened.
 *
 * - `Assigned`: partitions that are new to this session, and what the group has committed in their topics. Nothing is fetched from them until `seek` gives a position.
 *   A partition that stays over a rebalance is not mentioned: it goes on without a repeated or missing record. The first one says that the session has become
 *   a member of its group, and names none where it got none.
 * - `Revoked`: partitions to give up. Nothing more arrives for them. They still belong to this session (commits are accepted)
 *   until `release` has run or the rebalance timeout has passed, whichever comes first; only then may another member get them.
 *   When the timeout passes first, `Lost` follows for the same partitions.
 * - `Lost`: partitions that another member may own already (session expired, fenced), or whose topic was deleted. Commits for them are refused.
 *   After a topic was deleted and made again, at once or later, its partitions are `Lost` or `Revoked`, and `Assigned` anew with another `topicId`.
 * - `Fetched`: a chunk.
 * - `Unreadable`: a batch at the position cannot be read. Nothing is fetched from the partition until `seek`; other partitions go on (ruling 79).
 * - `OutOfRange`: the position does not exist (retention or `deleteRecords` overtook it). Nothing is fetched from the partition until `seek`.
 */
export type ConsumerEvent =
  | {
      readonly _tag: "Assigned"
      /** The generation of the assignment. */
      readonly generation: number
      /** The new partitions. */
      readonly partitions: ReadonlyArray<AssignedPartition>
      /** All that the group has committed in the topics of these partitions at that moment, by whichever member. */
      readonly commits: ReadonlyArray<CommittedOffset>
    }
  | {
      readonly _tag: "Revoked"
      /** The generation of the assignment. */
      readonly generation: number
      /** The partitions that this is about. */
      readonly partitions: ReadonlyArray<TopicPartition>
      /** Gives the partitions to their next owners. Called once, after the last commit. */
      readonly release: Effect.Effect<void>
    }
  | { readonly _tag: "Lost"; readonly generation: number; readonly partitions: ReadonlyArray<TopicPartition> }
  | {
      readonly _tag: "Fetched"
      /** The records. */
      readonly chunk: RecordChunk
    }
  | ({
      readonly _tag: "Unreadable"
      /** The generation of the assignment. */
      readonly generation: number
    } & UnreadableBatch)
  | ({
      readonly _tag: "OutOfRange"
      /** The generation of the assignment. */
      readonly generation: number
    } & MissingPosition)

/** An offset to commit: the next one to read, for the assignment that it belongs to. */
export interface OffsetCommit extends Assignment {
  /** The next offset to read. */
  readonly offset: bigint
  /** Text kept beside the offset. Default empty. */
  readonly metadata?: string
}

/**
 * A member of a consumer group. Closing its scope leaves the group (unless it is a static member) without committing anything.
 * Heartbeats go on by themselves, whatever the consumer does, for as long as the event loop runs.
 */
export interface ConsumerSession {
  /** Events in order. Fails when the session is dead; closing the session shuts the queue down, which interrupts whoever takes from it. */
  readonly events: Queue.Dequeue<ConsumerEvent, BrokerError>
  /** The id of the cluster, as in `Admin`. */
  readonly clusterId: string
  /** Stops fetching from partitions. Events that are already in `events` stay there; at most one chunk per partition may still arrive. Unknown partitions are ignored. */
  readonly pause: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /** Fetches again from partitions, from behind the last chunk handed over: nothing is skipped, nothing repeated. Unknown partitions are ignored. */
  readonly resume: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /** Sets the position of an owned partition. Chunks fetched from the old position may not arrive after `seek` has returned. Unknown partitions are ignored. */
  readonly seek: (partition: TopicPartition, offset: bigint) => Effect.Effect<void>
  /**
   * Commits in one request; all or nothing. Not retried here. Fails with `StaleAssignment` (naming the partitions, nothing sent) when an
   * entry's assignment is over, and with `RebalanceInProgress` when it may be repeated later.
   */
  readonly commit: (offsets: ReadonlyArray<OffsetCommit>) => Effect.Effect<void, BrokerError>
  /**
   * The member under which the coordinator takes offsets of these assignments in a transaction. Fails with `StaleAssignment` when one of them is over. `refused` is the
   * metadata that a coordinator has refused: the session then asks it, and waits for its next generation; it fails with `RebalanceInProgress` when that takes too long.
   */
  readonly groupMetadata: (
    assignments: ReadonlyArray<Assignment>,
    refused?: ConsumerGroupMetadata
  ) => Effect.Effect<ConsumerGroupMetadata, BrokerError>
  /**
   * Whether the group may have given the partitions to others without this session knowing: it has heard nothing of the group for a session timeout, as after the process
   * was suspended. The next heartbeat tells.
   */
  readonly isUnconfirmed: () => boolean
}

/** How to publish. */
export interface ProducerOptions {
  /** Shown in broker logs and quotas (Kafka: `client.id`). Default: the adapter's. */
  readonly clientId?: string
  /** `acks`. Default `all`. */
  readonly acks?: "all" | "leader"
  /** `enable.idempotence`: the broker drops what a resend repeats, and order per partition survives resends. Needs acks `all`. Default true. */
  readonly idempotent?: boolean
  /** `compression.type`: the codec of what is published, unless a record names its own. Records of one codec travel together. Default `none`. */
  readonly compression?: Compression
  /** `linger.ms`: how long a record may wait for company. Default 0: records that are waiting while a request is out travel together. */
  readonly linger?: Duration.Input
  /** Most records in one request. Default 1000. */
  readonly maxBatchRecords?: number
  /** Most bytes of keys, values and headers in one request. Default 512 KiB. A single larger record travels alone. */
  readonly maxBatchBytes?: number
  /** `delivery.timeout.ms`: after this long an unacknowledged record fails with `RequestTimedOut`. Default 120 seconds. */
  readonly deliveryTimeout?: Duration.Input
  /** How long closing may take to send what is waiting; what is not acknowledged by then is given up. Default: the delivery timeout. */
  readonly closeTimeout?: Duration.Input
}

/** How to publish in transactions. */
export interface TransactionalProducerOptions extends ProducerOptions {
  /** `transactional.id`. */
  readonly transactionalId: string
  /** `transaction.timeout.ms`. Default: the adapter's. */
  readonly transactionTimeout?: Duration.Input
  /**
   * Former transactional ids of this producer, such as those of the first version. Older producers of these ids are fenced, and their open transactions aborted, before
   * this producer is made. An id that may not be used is passed over. Default: none.
   */
  readonly fences?: ReadonlyArray<string>
}

/** Publishes records. Closing its scope sends what is waiting, bounded by the close timeout. */
export interface Producer {
  /**
   * Succeeds when the broker has acknowledged this record. Batched underneath, so call it concurrently. Records for one partition
   * are written in the order in which `send` was called. One bad record never fails its neighbours.
   */
  readonly send: (record: ProducerRecord) => Effect.Effect<RecordMetadata, BrokerError>
  /** Publishes records as `send` would, in order; succeeds when all are acknowledged, and fails with the first failure otherwise. */
  readonly sendAll: (
    records: ReadonlyArray<ProducerRecord>
  ) => Effect.Effect<ReadonlyArray<RecordMetadata>, BrokerError>
  /**
   * Publishes records as `send` would, in order, and tells of each by its index, once, as soon as its own answer is there. Succeeds when all are
   * answered; when it is interrupted, nothing more is told, and what is not on its way yet is given up. For many records at once: there is no
   * effect, and no fiber, for each of them. `onAnswer` must not throw.
   */
  readonly sendEach: (records: ReadonlyArray<ProducerRecord>, onAnswer: OnAnswer) => Effect.Effect<void>
}

/** Told of one of the records of `sendEach`. */
export type OnAnswer = (index: number, answer: Result.Result<RecordMetadata, BrokerError>) => void

/**
 * A Kafka transaction: records and group offsets become visible together, or never. A record whose sending is interrupted may be in it or not: then the transaction is
 * aborted, also when its program goes on and succeeds.
 */
export interface Transaction extends Producer {
  /**
   * Commits offsets of a group within the transaction. With the metadata of a member (KIP-447), the group refuses a member that it has put out (`StaleAssignment`,
   * `InstanceFenced`) and one of an older generation (`RebalanceInProgress`: the member may send them again with new metadata). A transaction whose last offsets were refused
   * is aborted, also when its program succeeds. With the id of the group alone, and by brokers before 2.5, nobody is refused.
   */
  readonly sendOffsets: (
    group: string | ConsumerGroupMetadata,
    offsets: ReadonlyArray<TopicPartition & { readonly offset: bigint; readonly metadata?: string }>
  ) => Effect.Effect<void, BrokerError>
}

/**
 * A producer with a `transactional.id`. Making it fences every older producer of the same id and aborts what that left open.
 */
export interface TransactionalProducer {
  /** Runs `use` in one transaction: committed when it succeeds, aborted when it fails, dies or is interrupted. One at a time. */
  readonly transaction: <A, E, R>(
    use: (transaction: Transaction) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | BrokerError, R>
}

/** One Kafka cluster. */
export class Broker extends Context.Service<
  Broker,
  {
    /** Joins a group. The effect succeeds once the client is connected; assignments arrive as events. */
    readonly consumer: (options: ConsumerOptions) => Effect.Effect<ConsumerSession, BrokerError, Scope.Scope>
    /** A producer without transactions. */
    readonly producer: (options?: ProducerOptions) => Effect.Effect<Producer, BrokerError, Scope.Scope>
    /** A producer with a `transactional.id`. */
    readonly transactionalProducer: (
      options: TransactionalProducerOptions
    ) => Effect.Effect<TransactionalProducer, BrokerError, Scope.Scope>
    /** A reader of partitions, without a group. */
    readonly reader: (options?: FetchOptions) => Effect.Effect<Reader, BrokerError, Scope.Scope>
    /** The administration of the cluster. */
    readonly admin: Effect.Effect<Admin, BrokerError, Scope.Scope>
  }
>()("@eventbus/core/Broker") {}
