/**
 * What a binding takes: its settings, with default, unit and range of each, and the handler.
 */
import type { Duration, Effect } from "effect"
import type * as CircuitBreaker from "./CircuitBreaker.ts"
import type { ExceptionClassifier } from "./Classifier.ts"
import type { ConsumerRecord, Header } from "./ConsumerRecord.ts"
import type { DeadLetter } from "./DeadLetter.ts"
import type { Batch, Delivery } from "./Delivery.ts"
import type { BatchProcessing } from "./EventBusError.ts"
import type { Interceptor } from "./Interceptor.ts"
import type { RetryPolicy } from "./RetryPolicy.ts"
import type { Route } from "./Route.ts"
import type { Serde } from "./Serde.ts"
import type { NamingStrategy } from "./TopicName.ts"

/** Settings that every binding takes. Only `topic` and `groupId` have no default. */
export interface Settings<K, V> {
  /** The Kafka topic to read. */
  readonly topic: string
  /** The consumer group. */
  readonly groupId: string
  /** The alias of the Kafka cluster, one of `Clusters`. Everything of the binding happens there. Default `default`. */
  readonly cluster?: string
  /** How to read keys. Default `Serde.bytes`: as they are. */
  readonly key?: Serde<K>
  /** How to read values. A value that cannot be read goes to the dead letter topic with its bytes; the handler never sees it. */
  readonly value: Serde<V>
  /**
   * `MANUAL_IMMEDIATE` (default): a record's offset is committed before the next record of its partition starts.
   * While a copy is on its way to a retry or dead letter topic, what is handled behind it waits for it with its commit, 10 000 records of a partition at
   * most: a crash would repeat them.
   * `MANUAL`: commits are merged and sent in the background, every `commitInterval`, and flushed on revoke, pause and stop.
   */
  readonly ackMode?: "MANUAL_IMMEDIATE" | "MANUAL"
  /** How long `MANUAL` gathers finished offsets before it commits. Default 200 millis. */
  readonly commitInterval?: Duration.Input
  /** Consumer sessions (group members) of this binding in this process, 1 or more. Default 1. */
  readonly concurrency?: number
  /** Most records of one batch (`max.poll.records`), 1 or more. Default 50 for single, 200 for batch handlers. */
  readonly maxPollRecords?: number
  /** `max.poll.interval.ms`: 70 % of it is what handling one record (or batch) may take, backoff included. Default 10 minutes. */
  readonly maxPollInterval?: Duration.Input
  /** `session.timeout.ms`; at least three times `heartbeatInterval`. Default 45 seconds. */
  readonly sessionTimeout?: Duration.Input
  /** `heartbeat.interval.ms`. Default 10 seconds. */
  readonly heartbeatInterval?: Duration.Input
  /** `rebalance.timeout.ms`: how long giving up a partition may take. Default 60 seconds. */
  readonly rebalanceTimeout?: Duration.Input
  /**
   * `fetch.max.wait.ms`, while a partition may be resumed: what that waits for at most. Shorter just after a pause, 500 millis at least while nothing is paused.
   * Default 100 millis.
   */
  readonly fetchMaxWait?: Duration.Input
  /** `max.partition.fetch.bytes`. Default 1 MiB. For retry topics at most 256 KiB, since what waits there is held in memory. */
  readonly maxPartitionFetchBytes?: number
  /** Sets `group.instance.id` to `{binding}-{hostname}-{index}` (KIP-345): a quick restart then causes no rebalance. Default false. */
  readonly staticMembership?: boolean
  /** Where a group without a committed offset starts. Default `earliest`. An offset that is out of range always resumes at the earliest. */
  readonly autoOffsetReset?: "earliest" | "latest"
  /** `isolation.level`. Default `read_committed`. */
  readonly isolationLevel?: "read_committed" | "read_uncommitted"
  /**
   * What may overlap inside a partition. `partition` (default): nothing, one record at a time. `key`: records of different keys;
   * the order per key is kept. `unordered`: everything. Offsets are committed by contiguous prefix in all three.
   */
  readonly processingOrder?: "partition" | "key" | "unordered"
  /** Handlers running at once over the whole binding in this process, 1 or more. Default: no bound for `partition`, 16 for the others. */
  readonly maxInFlight?: number
  /** Records that a consumer may hold fetched but not handled, over all its partitions. Default 50 000. Fetching pauses there. */
  readonly maxBufferedRecords?: number
  /** The same in bytes. Default 16 MiB. */
  readonly maxBufferedBytes?: number
  /**
   * How a failing record is tried again, and which errors are (its exception lists). Default `RetryPolicy.tiered()`: 3 attempts in place and the seed's three
   * retry topics, 10 seconds, 1 minute and 5 minutes (connector seed §4.1), as in a file. With `orderingMode: "STRICT"` the default is `RetryPolicy.blocking()`, which has
   * attempts in place only.
   */
  readonly retry?: RetryPolicy
  /** What errors without a rule in `onError` mean, defects included. It is asked before the exception lists of `retry`. Default: none. */
  readonly classifier?: ExceptionClassifier
  /** `STRICT` promises that no record overtakes another of its partition, ever: no tiers; see `onExhausted`. Default `RELAXED_IN_RETRY`. */
  readonly orderingMode?: "RELAXED_IN_RETRY" | "STRICT"
  /**
   * What happens to a record whose attempts, in all tiers, are used up. `dead-letter` (default) publishes it to the dead letter topic.
   * `halt` (STRICT only) keeps it: the partition is paused for reason `operator` until the binding is resumed, then it is tried again.
   */
  readonly onExhausted?: "dead-letter" | "halt"
  /** What runs around each call of the handler, the outermost first, within those of the program (`Interceptor.layer`). Default: nothing. */
  readonly interceptors?: ReadonlyArray<Interceptor>
  /**
   * Headers that the handler sees beside those of the record, in `delivery.headers`: they replace ones of the same name, except for the connector's own three. The
   * record, and copies of it, stay as they are. Called when the handler first looks at the headers; what it throws is a failure of the record. Default: none.
   */
  readonly enrich?: (record: ConsumerRecord) => ReadonlyArray<Header>
  /** How derived topics are called. Default `TopicName.standard`: `{topic}.retry-{n}` and `{topic}.DLT`. */
  readonly naming?: NamingStrategy
  /**
   * `create` (default) makes missing retry and dead letter topics, with the source's partition count and replication; `wait` keeps the record until
   * somebody else makes them; `require` checks at the start that they are there, and reads nothing before.
   */
  readonly missingTopics?: "create" | "wait" | "require"
  /** How long `stop`, and closing the layer, wait for running handlers before they interrupt them. Default 30 seconds. */
  readonly shutdownTimeout?: Duration.Input
  /** Default true: building the layer starts the binding. */
  readonly autoStartup?: boolean
}

/** Settings with code of the user's in them, whose requirements `P` and `D` become the binding's. */
export interface FailureOptions<P, D> {
  /** Stops handling while a dependency is down, instead of using up retries: see `CircuitBreaker`. Default: none. */
  readonly circuitBreaker?: CircuitBreaker.Options<P>
  /** What becomes of dead letters, and how they look. Default `DeadLetter.storeOnly`. */
  readonly deadLetter?: DeadLetter<D>
}

/** The tags of an error type. */
type Tags<E> = E extends { readonly _tag: infer T extends string } ? T : never

/** A rule for every tag of `E`: a missing one is a compile error that names it. For errors without tags, a function. */
export type OnError<E> =
  | { readonly [T in Tags<E>]: Route | ((error: Extract<E, { readonly _tag: T }>) => Route) }
  | ((error: E) => Route)

/** What to do with the errors of the handler: demanded as soon as it can fail. */
type Routed<E> = { readonly onError?: OnError<E> } & ([E] extends [never] ? unknown : { readonly onError: object })

/** A handler that gets one record at a time. */
export type Options<K, V, E, R> = Settings<K, V> & {
  /**
   * `SINGLE` (default): offsets are acknowledged record by record. `BATCH`: up to `maxPollRecords` records of a partition form a batch;
   * the handler still gets them one by one, offsets are acknowledged per batch.
   */
  readonly listenerType?: "SINGLE" | "BATCH"
  /**
   * For `BATCH`: when a record has used up its attempts. `SEEK_TO_FAILED` (default): what is finished is committed, the record takes
   * its route, the rest is delivered as a new batch. `DLQ_AND_CONTINUE`: it is dead-lettered at once and the batch goes on.
   */
  readonly batchFailureStrategy?: "SEEK_TO_FAILED" | "DLQ_AND_CONTINUE"
  readonly handler: (delivery: Delivery<K, V>) => Effect.Effect<unknown, E, R>
} & Routed<E>

/**
 * A handler that gets a whole batch per call. Failing with `BatchProcessing.from` or `.these` says which records failed; any other
 * failure means that none of the batch is known to be done, and when its attempts are used up the records are handed over one by one,
 * to find the one that fails.
 */
export type BatchOptions<K, V, E, R> = Settings<K, V> & {
  readonly handleBatch: (batch: Batch<K, V>) => Effect.Effect<unknown, E | BatchProcessing, R>
} & Routed<Exclude<E, BatchProcessing>>

/**
 * A handler whose publishes (through `CurrentTransaction`) and the offsets of the records that it handled form one Kafka transaction. Up to
 * `maxPollRecords` records of a partition share one. `ackMode`, `commitInterval` and `processingOrder` do not apply.
 */
export type TransactionalOptions<K, V, E, R> = Omit<
  Settings<K, V>,
  "ackMode" | "commitInterval" | "processingOrder"
> & {
  readonly handler: (delivery: Delivery<K, V>) => Effect.Effect<unknown, E, R>
} & Routed<E>
