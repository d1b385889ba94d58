/**
 * The options of a binding: its settings, each with unit, range and default, and its handler.
 *
 * A duration is a number of milliseconds or a text such as `"10 seconds"` or `"10s"` (`Time`). Names and defaults are those of the seed (connector seed §4.1), in code as in a file;
 * `Defaults` holds the values, `Ranges` the smallest and the largest number of each setting: 2^31 - 1 at most for counts and for what Kafka's protocol carries (24 days in
 * milliseconds), 2^53 - 1 for waits of the connector. Registering a binding refuses every setting that is out of range, all at once, with `ConfigurationValidation`.
 */
import type * as Effect from "effect/Effect"
import type { AssignmentStrategy, GroupProtocol } from "./Broker.ts"
import type * as CircuitBreaker from "./CircuitBreaker.ts"
import type { ExceptionClassifier } from "./Classifier.ts"
import type { Compression, ConsumerRecord, Header } from "./ConsumerRecord.ts"
import type { DeadLetter } from "./DeadLetter.ts"
import type { Batch, Delivery } from "./Delivery.ts"
import type { BatchProcessing } from "./EventBusError.ts"
import type { Interceptor } from "./Interceptor.ts"
import type { LetterTransform } from "./LetterTransform.ts"
import type { RetryPolicy } from "./RetryPolicy.ts"
import type { Route } from "./Route.ts"
import type { Serde } from "./Serde.ts"
import type { Time } from "./Time.ts"
import type { NamingStrategy } from "./TopicName.ts"

/**
 * The settings that have the types of keys and values. They stand apart from `CommonSettings` for the sake of compile errors: TypeScript infers nothing from a type of which a
 * required property is missing, so a misspelled `groupId` beside `value` would be reported as an error of `value`.
 */
export interface TypedSettings<K, V> {
  /** How to read keys. Default `Serde.bytes`: as they are. */
  readonly key?: Serde<K>
  /**
   * How to read values. Default `Serde.bytes`: as they are. A value that cannot be read goes to the dead letter topic with its bytes; the handler never sees it. The types
   * require a serde as soon as the handler expects anything but bytes.
   */
  readonly value?: Serde<V>
  /**
   * Functions that repair dead letters, by name: a plan may name one (`ReplayPlan`), and its run publishes what the function makes of each letter. Names are texts of 1 to 128
   * characters, and stand in a header. Default: none.
   */
  readonly transforms?: Readonly<Record<string, LetterTransform<NoInfer<K>, NoInfer<V>>>>
}

/** Settings of `orderingMode: "PER_KEY"`. A key waits while a record of it is in a retry topic. */
export interface PerKey {
  /**
   * The fate of a key whose record used up its attempts in all tiers. `continue` (default): the record is dead-lettered and the key goes on. `hold`: the record keeps its key
   * waiting until an operator retries or skips it, for at most `holdFor`.
   */
  readonly onDeadLetter?: "continue" | "hold"
  /**
   * The longest that `hold` keeps a key waiting. Then the record, and the records of its key that wait behind it, are dead-lettered in order for reason `KEY_BLOCKED`. 1 ms or
   * more, 2^53 - 1 ms at most. Default 12 hours.
   */
  readonly holdFor?: Time
  /** Keys that may wait at once in all partitions of one consumer, 1 or more. At the limit, its partitions of the source wait. About 500 bytes of memory each. Default 50 000. */
  readonly maxParkedKeys?: number
  /** Bytes of waiting records that one consumer keeps in memory, 1 or more. It reads further ones from the source topic again. Default 16 MiB. */
  readonly maxParkedBytes?: number
}

/** The settings that do not depend on the types of keys and values. Only `topic` and `groupId` have no default. */
export interface CommonSettings {
  /**
   * The Kafka topic to read: 1 to 249 of the characters a-z A-Z 0-9 . _ - Or a list of one or more topics, each once: one handler and one group read them all, with one circuit
   * breaker and one `maxInFlight`. Each topic has retry topics and a dead letter topic of its own, whose names follow from its name (`naming`, `topicSuffix`). No topic of the
   * list may have a name that is derived from another one.
   */
  readonly topic: string | ReadonlyArray<string>
  /** The consumer group (Kafka: `group.id`). Not empty. */
  readonly groupId: string
  /** The alias of the Kafka cluster, one of `Clusters`. Everything of the binding happens there (connector seed §9). Default `default`. */
  readonly cluster?: string
  /**
   * When offsets are committed. `MANUAL_IMMEDIATE` (default): before the next record of the partition starts. `MANUAL`: merged, in the background, every
   * `commitInterval`; also on revoke, pause and stop (connector seed §4.8).
   *
   * While a copy is on its way to a retry or dead letter topic, `MANUAL_IMMEDIATE` starts no record of the partition, until the copy is acknowledged and committed. A crash
   * repeats only what was in flight: one record, or one batch. With `processingOrder` `key` and `unordered` it repeats the records in flight, at most `maxInFlight`, and those
   * that have finished behind the oldest of them: about as many again while all take equally long, more behind one that takes long or waits for its next attempt, and at most
   * 10 000 of a partition. `MANUAL` goes ahead: the records behind the copy are handled and wait with their commit, at most 10 000 of a partition. A crash repeats them, and
   * so does an outage of the topic that outlasts a stop or a rebalance (ruling 73).
   */
  readonly ackMode?: "MANUAL_IMMEDIATE" | "MANUAL"
  /** How long `MANUAL` gathers finished offsets before it commits. 0 or more. Default 200 milliseconds. */
  readonly commitInterval?: Time
  /** Consumer sessions (group members) of this binding in this process, 1 or more. Default 1. */
  readonly concurrency?: number
  /** Most records of one batch (Kafka: `max.poll.records`), 1 or more. Default 50 for `SINGLE`, 200 for `BATCH`. */
  readonly maxPollRecords?: number
  /** Kafka: `max.poll.interval.ms`. Handling one record (or batch), waits between attempts included, may take 70 % of it (ruling 18). 1 ms or more. Default 10 minutes. */
  readonly maxPollInterval?: Time
  /** Kafka: `session.timeout.ms`. 1 second or more, at least three times `heartbeatInterval`. Default 45 seconds. */
  readonly sessionTimeout?: Time
  /** Kafka: `heartbeat.interval.ms`. 100 ms or more. Default 10 seconds. */
  readonly heartbeatInterval?: Time
  /** Kafka: `rebalance.timeout.ms`: the longest that giving up a partition may take. 1 ms or more. Default 60 seconds. */
  readonly rebalanceTimeout?: Time
  /**
   * Kafka: `fetch.max.wait.ms`: the longest that the broker may hold a fetch while a partition is paused, and so how late a resume can be. The wait is shorter
   * just after a pause, and 500 milliseconds or more while nothing is paused. 0 or more. Default 100 milliseconds.
   */
  readonly fetchMaxWait?: Time
  /** Kafka: `max.partition.fetch.bytes`, 1 or more. Retry topics get at most 256 KiB, since their waiting records are held in memory. Default 1 MiB. */
  readonly maxPartitionFetchBytes?: number
  /** Kafka: `group.protocol`. `consumer` (KIP-848, Apache Kafka 4.0): the broker assigns. It refuses `sessionTimeout`, `heartbeatInterval` and `partitionAssignmentStrategy`, which the group and the brokers configure then, and `orderingMode: "PER_KEY"`. Default `classic`. */
  readonly groupProtocol?: GroupProtocol
  /** True sets `group.instance.id` to `{binding}__{hostname}__{index}` (KIP-345): a quick restart then causes no rebalance. A member whose name another process takes stops for good, and says so in log, snapshot and health (ruling 81). Default false. */
  readonly staticMembership?: boolean
  /**
   * Kafka: `partition.assignment.strategy`: the assignment protocols that the members of this binding list, the preferred one first. Kafka takes one that all members of the
   * group list, so a group is shared with another client, or moved from it, by listing its protocol too: `RoundRobinAssigner` for kafkajs; `range`, `roundrobin`, `sticky` and
   * `cooperative-sticky` for Java and librdkafka. Retry topics then need `consumer: "separate"`; their group has the default always. A member that lists another protocol
   * than `eventbus-cooperative-sticky` and `cooperative-sticky` gives up all partitions in each rebalance; it, and the members beside it, send a heartbeat every second at
   * least, because it stands still until the last member has noticed (ruling 80). At least one. Default `["eventbus-cooperative-sticky"]`.
   */
  readonly partitionAssignmentStrategy?: ReadonlyArray<AssignmentStrategy>
  /**
   * Kafka: `auto.offset.reset`: where a partition starts that the group has no committed offset of. `latest` means: from when the group first read the topic, also in
   * partitions that are added later (ruling 85). An offset that is out of range always resumes at the earliest. Default `earliest`.
   */
  readonly autoOffsetReset?: "earliest" | "latest"
  /** Kafka: `isolation.level`. Default `read_committed`. */
  readonly isolationLevel?: "read_committed" | "read_uncommitted"
  /**
   * The records of a partition that may be handled at the same time. `partition` (default): one record at a time. `key`: records of different keys; each key
   * keeps its order. `unordered`: all. Offsets are committed up to the first unfinished record in all three.
   */
  readonly processingOrder?: "partition" | "key" | "unordered"
  /** Handlers that run at once over the whole binding in this process, 1 or more. Default: no limit for `partition`, 16 for `key` and `unordered`. */
  readonly maxInFlight?: number
  /** Records that a consumer may hold fetched but not handled, over all its partitions, 1 or more. Fetching pauses there. Default 50 000. */
  readonly maxBufferedRecords?: number
  /** Bytes that a consumer may hold fetched but not handled, over all its partitions, 1 or more. Fetching pauses there. Default 16 MiB. */
  readonly maxBufferedBytes?: number
  /**
   * The codec of copies in retry and dead letter topics; `source`: that of the batch that the record was read from. A copy that is too large for its topic is sent with
   * gzip. Default `source`.
   */
  readonly copyCompression?: Compression | "source"
  /**
   * How a failing record is tried again, and which errors are tried at all (its exception lists). Default `RetryPolicy.tiered()`: 3 attempts in place and the
   * seed's three retry topics, 10 seconds, 1 minute and 5 minutes, as in a file. With `orderingMode: "STRICT"` the default is `RetryPolicy.blocking()`, which has
   * attempts in place and no retry topics.
   */
  readonly retry?: RetryPolicy
  /** Decides about errors without a rule in `onError`, defects included. It is asked before the exception lists of `retry`. Default: none. */
  readonly classifier?: ExceptionClassifier
  /**
   * The order that the binding keeps when a record fails.
   *
   * `RELAXED_IN_RETRY` (default): a record in a retry topic is overtaken by the records behind it. `STRICT`: no record overtakes another of its partition, ever; it refuses
   * retry topics; see `onExhausted`.
   *
   * `PER_KEY` has a price: when a share f of a key's records fails and a retry waits d seconds, the key handles 1/(f*d) records per second. For it, no record overtakes another
   * of its key: while a record waits in a retry topic, the later records of its key wait in the source topic, and other keys go on. Records without a key are retried as with
   * `RELAXED_IN_RETRY`. A crash may repeat records and skips none. It requires retry topics, and refuses batches, transactions, `processingOrder: "unordered"`,
   * `consumer: "separate"`, tiers with growing waits and the assignment protocols of other clients. See `perKey`.
   */
  readonly orderingMode?: "RELAXED_IN_RETRY" | "STRICT" | "PER_KEY"
  /** How `orderingMode: "PER_KEY"` treats waiting keys. Refused with another `orderingMode`, where it has no effect. Default: the defaults of `PerKey`. */
  readonly perKey?: PerKey
  /**
   * The fate of a record that used up its attempts in all tiers. `dead-letter` (default) publishes it to the dead letter topic. `halt` (with `STRICT` only) keeps it:
   * the partition is paused for reason `operator` until somebody resumes the binding, then the record is tried again. With `PER_KEY`, `perKey.onDeadLetter` decides.
   */
  readonly onExhausted?: "dead-letter" | "halt"
  /** Interceptors around each call of the handler, the outermost first. Those of the program (`Interceptor.layer`) stand outside of them. Default: none. */
  readonly interceptors?: ReadonlyArray<Interceptor>
  /**
   * Headers that the handler sees in `delivery.headers` beside those of the record. They replace headers of the same name, except for the connector's own three. The
   * record and its copies stay as they are. It is called when the handler first looks at the headers; an error that it throws fails the record. Default: none.
   */
  readonly enrich?: (record: ConsumerRecord) => ReadonlyArray<Header>
  /**
   * Former names of the group: copies in the retry and dead letter topics that carry one of them belong to this binding, and so do replays for it. For a group that
   * was renamed. Copies of every other group are passed over. Committed offsets are not taken over: set those of the new group before its first start. Default: none.
   */
  readonly adopts?: ReadonlyArray<string>
  /** The names of derived topics. Default `TopicName.standard`: `{topic}.retry-{n}` and `{topic}.DLT`. */
  readonly naming?: NamingStrategy
  /**
   * How the connector deals with missing retry and dead letter topics. `create` (default) creates them, with the source's partition count and replication. `wait` keeps
   * their records until somebody creates them. `require` checks at the start that they exist, and reads nothing before.
   */
  readonly missingTopics?: "create" | "wait" | "require"
  /**
   * The longest that `stop`, and closing the layer, may take as a whole, also when no broker answers (ruling 83). 0 or more. Default 30 seconds (connector seed §4.11).
   *
   * Running handlers, and copies on their way to a retry or dead letter topic, get four fifths of it, and all but 5 seconds of a timeout above 25 seconds. Then they are
   * interrupted, and their records stay unfinished. The rest is for the last commit, leaving the group and closing the connections, which get half a second at least.
   */
  readonly shutdownTimeout?: Time
  /**
   * Whether log lines about a record that was not handled name its key, in the annotation `key`: as text, or in hexadecimal digits where it is no text, cut after 128
   * bytes. Keys may be personal data, so leave it off where they are. Values are never logged. Default false.
   */
  readonly logKeys?: boolean
  /** Whether building the layer, or registering, starts the binding. Default true. */
  readonly autoStartup?: boolean
}

/** Settings that every binding takes. Only `topic` and `groupId` have no default. */
export interface Settings<K, V> extends TypedSettings<K, V>, CommonSettings {}

/** Settings that hold code of the user. Its requirements, `P` and `D`, become the binding's. */
export interface FailureOptions<P, D> {
  /** Stops handling while a dependency is down, instead of using up retries: see `CircuitBreaker`. Default: none. */
  readonly circuitBreaker?: CircuitBreaker.Options<P>
  /** The strategy for dead letters, and how they look. Default `DeadLetter.storeOnly`. */
  readonly deadLetter?: DeadLetter<D>
}

/** The tags of an error type. */
type Tags<E> = E extends { readonly _tag: infer T extends string } ? T : never

/** The route of an error, or a function from the error to one. */
export type Rule<E> = Route | ((error: E) => Route)

/** A rule for every tag of `E`. A missing tag is a compile error that names it. */
export type RulePerTag<E> = { readonly [T in Tags<E>]: Rule<Extract<E, { readonly _tag: T }>> }

/** A rule for every tag of `E`, or a function from the error to a route, which errors without tags need. */
export type OnError<E> = RulePerTag<E> | ((error: E) => Route)

/** The types require `onError` as soon as the handler can fail. */
type Routed<E> = { readonly onError?: OnError<E> } & ([E] extends [never]
  ? unknown
  : { readonly onError: ARuleForEachOf<E> })

/**
 * Any object. The compile error for a handler that can fail beside no `onError` shows this name with the errors. (`OnError<E>` in its place would take their types from the
 * parameters of rules.)
 */
export interface ARuleForEachOf<E> extends Record<never, E> {}

/**
 * An Effect. The compile error for an async handler shows this name, which says what to write: `() => Effect.promise(async () => ...)`. It demands no more than Effect does,
 * because TypeScript would then no longer infer `E` of a handler that returns one of several effects.
 */
export interface AsyncGoesInto_Effect_promise<out E, out R> extends Effect.Effect<unknown, E, R> {}

/**
 * An Effect. The compile error for a handler that is a call of `Effect.fn` beside a rule that is a function shows this name: TypeScript infers no errors from such a call. Write
 * `(delivery) => handle(delivery)`, where `handle` is the result of `Effect.fn`.
 */
export interface EffectFnGoesInto_an_arrow_function<out E, out R> extends Effect.Effect<unknown, E, R> {}

/** The types require a serde of values where bytes are not what the handler expects. */
type Readable<V> = [Uint8Array | null] extends [V] ? unknown : { readonly value: Serde<V> }

/** A binding whose handler gets one record at a time. */
export type Options<K, V, E, R> = TypedSettings<K, V> & CommonSettings & PerRecord<K, V, E, R> & Routed<E> & Readable<V>

/** The settings of a binding whose handler gets one record at a time. */
export interface PerRecord<K, V, E, R> {
  /**
   * `SINGLE` (default): offsets are acknowledged record by record. `BATCH`: up to `maxPollRecords` records of a partition form a batch; the handler still gets
   * them one by one, and offsets are acknowledged per batch (connector seed §4.4).
   */
  readonly listenerType?: "SINGLE" | "BATCH"
  /**
   * For `BATCH`: the fate of a batch when a record used up its attempts. `SEEK_TO_FAILED` (default): finished records are committed, the record takes its route, and
   * the rest is delivered as a new batch. `DLQ_AND_CONTINUE`: the record is dead-lettered at once and the batch goes on.
   */
  readonly batchFailureStrategy?: "SEEK_TO_FAILED" | "DLQ_AND_CONTINUE"
  /** Handles one record. Its success is the record's; a failure, a defect or a thrown error is one failed attempt. */
  readonly handler: (
    delivery: Delivery<K, V>
  ) => Effect.Effect<unknown, E, R> | AsyncGoesInto_Effect_promise<E, R> | EffectFnGoesInto_an_arrow_function<E, R>
}

/** A binding whose handler gets a whole batch per call. */
export type BatchOptions<K, V, E, R> = TypedSettings<K, V> &
  CommonSettings & {
    /**
     * Handles up to `maxPollRecords` consecutive records of one partition. A failure with `BatchProcessing.from` or `.these` says which records failed. Every other
     * failure means that no record of the batch is known to be done; when its attempts are used up, the handler gets the records one by one, to find the one that fails.
     */
    readonly handleBatch: (
      batch: Batch<K, V>
    ) =>
      | Effect.Effect<unknown, E | BatchProcessing, R>
      | AsyncGoesInto_Effect_promise<E | BatchProcessing, R>
      | EffectFnGoesInto_an_arrow_function<E | BatchProcessing, R>
  } & Routed<Exclude<E, BatchProcessing>> &
  Readable<V>

/**
 * A binding whose publishes (through `CurrentTransaction`) and offsets form one Kafka transaction. Up to `maxPollRecords` records of a partition share one.
 * `ackMode`, `commitInterval` and `processingOrder` do not apply.
 */
export type TransactionalOptions<K, V, E, R> = TypedSettings<K, V> &
  Omit<CommonSettings, "ackMode" | "commitInterval" | "processingOrder"> & {
    /** Handles one record within the transaction. A failed attempt aborts it and leaves nothing behind. */
    readonly handler: (
      delivery: Delivery<K, V>
    ) => Effect.Effect<unknown, E, R> | AsyncGoesInto_Effect_promise<E, R> | EffectFnGoesInto_an_arrow_function<E, R>
  } & Routed<E> &
  Readable<V>
