/**
 * The options of a consumer: the settings of the core as plain values, and async functions in place of effects.
 *
 * Names and defaults are those of the configuration files, without the `Ms` of a duration.
 */
import type {
  BindingOptions,
  CircuitBreaker,
  Classifier,
  DeadLetter,
  DeadLetterRecord,
  Delivery,
  IdempotencyStore,
  Interceptor,
  LetterTransform,
  RetryPolicy,
  Serde,
  TopicName
} from "@eventbus/core"
import type { ErrorRule } from "./ErrorRule.ts"
import type { DurationValue, Plain } from "./PlainValues.ts"
import type { TransactionProducer } from "./TransactionProducer.ts"

/** The second argument of a handler. */
export interface HandlerContext {
  /**
   * Aborted when the handler should end: its partition was given up in a rebalance and the drain is over, the process stops and the drain is over, or the processing budget (70 % of
   * `maxPollInterval`) is used up. The record then counts as not handled, whatever the promise says. The connector waits for the promise to settle, for the rest of
   * `maxPollInterval` at most, before another delivery of the partition begins.
   */
  readonly signal: AbortSignal
}

/** The second argument of a transactional handler. */
export interface TransactionContext extends HandlerContext {
  /** Publishes within the transaction of the record. */
  readonly producer: TransactionProducer
}

/** A promise of whatever value, which is not looked at. A function that returns nothing has ended when it returns. */
export type Settles =
  | PromiseLike<unknown>
  // biome-ignore lint/suspicious/noConfusingVoidType: the result of a function without a result
  | void

/** Runs around each call of a handler. `next` calls the handler, or the next interceptor, once; its promise rejects as the handler's does. */
export type PromiseInterceptor = (call: Interceptor.Call, next: () => Promise<void>) => Settles

/** Settings of one retry topic. */
export interface TierOptions extends Plain<Omit<RetryPolicy.TierOptions, "delay">> {
  /** How long a record waits before each delivery in this tier, or before the first one with a `multiplier`. 0 or more. */
  readonly delay: DurationValue
}

/** Attempts in place and retry topics. */
export interface RetryOptions
  extends Plain<Omit<RetryPolicy.TieredOptions, "blocking" | "tiers" | "skipToTierMapping">> {
  /** Attempts inside each delivery. Default: 3. */
  readonly blocking?: Plain<RetryPolicy.BlockingOptions>
  /** Retry topics, by their delay or in full. Default: 10 seconds, 1 minute, 5 minutes, three deliveries each. An empty list means none. */
  readonly tiers?: ReadonlyArray<DurationValue | TierOptions>
  /** Name of an error to the retry topic (from 1) that follows the attempts in place. Default: none. */
  readonly skipToTierMapping?: { readonly [pattern: string]: number }
}

/** The circuit breaker. It is on where this section stands, unless `enabled` is false. */
export interface CircuitBreakerOptions extends Plain<Omit<CircuitBreaker.Options, "name" | "openBackoff" | "probe">> {
  /** Whether the consumer has a circuit breaker. Default true. */
  readonly enabled?: boolean
  /** Each reopening waits longer. Default: no. */
  readonly openBackoff?: Plain<NonNullable<CircuitBreaker.Options["openBackoff"]>>
  /** Asked when the wait is over, before any call is: only when its promise fulfils, within `probeTimeout`, the breaker half-opens. Default: none. */
  readonly probe?: (context: HandlerContext) => Settles
}

/** The strategy for dead letters, and how they look. */
export interface DeadLetterOptions {
  /** The full name of the dead letter topic. Default: what `naming` says, `{topic}.DLT`. */
  readonly topic?: string
  /** The name behind `{topic}.`. Default: what `naming` says. */
  readonly topicSuffix?: string
  /** `ALERT_AND_STORE` and `CUSTOM` need `onDeadLetter`. Default `ALERT_AND_STORE` with `onDeadLetter`, else `STORE_ONLY`. */
  readonly strategy?: "STORE_ONLY" | "ALERT_AND_STORE" | "SCHEDULED_REPLAY" | "CUSTOM"
  /** How long an alert may take. Default 30 seconds. */
  readonly alertTimeout?: DurationValue
  /** Replays: `maxReplays` and `origins` of every strategy, the others of `SCHEDULED_REPLAY`. */
  readonly replay?: {
    /** A record that was replayed so often stays. Default 3. */
    readonly maxReplays?: number
    /** Records younger than this wait. Default 1 hour. */
    readonly cooldown?: DurationValue
    /** Most records of one run. Default 100. */
    readonly batchSize?: number
    /** Further topics that replays may publish to. Default: none. */
    readonly origins?: ReadonlyArray<string>
  }
  /** Headers of other systems beside the connector's. Default: none. */
  readonly headers?: DeadLetter.HeaderSets
  /** Called with each dead letter under `ALERT_AND_STORE` and `CUSTOM`. */
  readonly onDeadLetter?: (letter: DeadLetterRecord.DeadLetterRecord, context: HandlerContext) => Settles
  /** Another topic for some failures. Default: all go to the dead letter topic. */
  readonly topicFor?: NonNullable<DeadLetter.Settings["topicFor"]>
  /** Groups dead letters by a text of your own. Default: class of the error, location in the application, and topic. */
  readonly fingerprint?: NonNullable<DeadLetter.Settings["fingerprint"]>
}

type Code = "key" | "value" | "classifier" | "interceptors" | "enrich" | "transforms" | "naming"

/** Settings that all consumers may share: `EventBusOptions.defaults` takes them, and each consumer's own win. */
export interface SharedSettings
  extends Plain<Omit<BindingOptions.Settings<unknown, unknown>, Code | "topic" | "groupId" | "perKey" | "retry">> {
  /** `BATCH`: offsets are acknowledged per batch; the handler still gets record by record. Default `SINGLE`; `batchConsumer` has `BATCH`. */
  readonly listenerType?: "SINGLE" | "BATCH"
  /** For `BATCH`: the fate of a batch when a record used up its attempts, as in `BindingOptions.Options`. Default `SEEK_TO_FAILED`. */
  readonly batchFailureStrategy?: "SEEK_TO_FAILED" | "DLQ_AND_CONTINUE"
  /** How `orderingMode: "PER_KEY"` treats waiting keys. Refused with another `orderingMode`. Default: the defaults of `BindingOptions.PerKey`. */
  readonly perKey?: Plain<BindingOptions.PerKey>
  /** How a failing record is tried again. Default: 3 attempts in place, then retry topics of 10 seconds, 1 minute and 5 minutes. */
  readonly retry?: RetryOptions
}

/** The options of every kind of consumer, beside its handler. */
export interface CommonOptions<K, V> extends SharedSettings {
  /** The Kafka topic to read, or a list of one or more topics for one handler: each has retry topics and a dead letter topic of its own. */
  readonly topic: string | ReadonlyArray<string>
  /** The consumer group. Kafka: `group.id`. */
  readonly groupId: string
  /** How to read keys. Default `Serde.bytes`: as they are. */
  readonly key?: Serde.Serde<K>
  /** How to read values. Default `Serde.bytes`: as they are. A value that cannot be read goes to the dead letter topic; the handler never sees it. */
  readonly value?: Serde.Serde<V>
  /** Routes of thrown errors by class; the first rule that is about an error counts. Default: every error is `retry`. */
  readonly onError?: ReadonlyArray<ErrorRule>
  /** Decides about errors without a rule in `onError`, before the exception lists of `retry`. Default: none. */
  readonly classifier?: Classifier.ExceptionClassifier
  /** Stops handling while a dependency is down. Default: none. */
  readonly circuitBreaker?: CircuitBreakerOptions
  /** The strategy for dead letters. Default: they are stored. */
  readonly deadLetter?: DeadLetterOptions
  /** Remembers which records were handled, in the bus's `idempotencyStore`. `{}` has the defaults. Default: nothing is remembered. */
  readonly idempotency?: Plain<IdempotencyStore.Options<K, V>>
  /** Interceptors around each call of the handler, the outermost first. Default: none. */
  readonly interceptors?: ReadonlyArray<PromiseInterceptor>
  /** Headers that the handler sees in `delivery.headers` beside those of the record. Default: none. */
  readonly enrich?: NonNullable<BindingOptions.Settings<K, V>["enrich"]>
  /** Async functions that repair dead letters, by name. One that rejects leaves the dead letter as it is. Default: none. */
  readonly transforms?: {
    readonly [name: string]: (
      letter: DeadLetterRecord.DeadLetterRecord
    ) => PromiseLike<LetterTransform.Transformed<K, V>>
  }
  /** The names of retry and dead letter topics, or functions that make them. Default `standard`: `{topic}.retry-{n}` and `{topic}.DLT`. */
  readonly naming?: "standard" | "dotted" | "dashed" | "perGroup" | TopicName.NamingStrategy
  /** Whether a rehearsal of dead letters may call the handler: true only where a call has no effect that lasts. Default false. */
  readonly rehearsable?: boolean
}

/** A record as a handler gets it: `Delivery` of the core. Default: key and value are bytes. */
export type KafkaDelivery<V = Uint8Array | null, K = Uint8Array | null> = Delivery.Delivery<K, V>

/** A batch as a handler gets it: `Batch` of the core. Default: keys and values are bytes. */
export type KafkaBatch<V = Uint8Array | null, K = Uint8Array | null> = Delivery.Batch<K, V>

/** The types ask for a serde of values where bytes are not what the handler expects. */
export type Readable<V> = [Uint8Array | null] extends [V]
  ? unknown
  : {
      /** How to read values. */
      readonly value: Serde.Serde<V>
    }

/** A consumer whose handler gets one record at a time. */
export type ConsumerOptions<K, V> = CommonOptions<K, V> & {
  /** Handles one record. A promise that fulfils means handled. A throw or a rejection is one failed attempt, and `onError` says where the record goes. */
  readonly handler: (delivery: KafkaDelivery<V, K>, context: HandlerContext) => Settles
} & Readable<V>

/** A consumer whose handler gets whole batches: up to `maxPollRecords` consecutive records of one partition. */
export type BatchConsumerOptions<K, V> = Omit<CommonOptions<K, V>, "listenerType"> & {
  /**
   * Handles a batch. A rejection with `EventBusError.BatchProcessing.from` or `.these` says which records failed. Every other one means that no record of the batch is known to be
   * done; when its attempts are used up, the handler gets the records one by one, to find the one that fails.
   */
  readonly handleBatch: (batch: KafkaBatch<V, K>, context: HandlerContext) => Settles
} & Readable<V>

/** The options of a transactional consumer beside its handler. `ackMode`, `commitInterval`, `processingOrder` and `idempotency` do not apply. */
export type TransactionalSettings<K, V> = Omit<
  CommonOptions<K, V>,
  "ackMode" | "commitInterval" | "processingOrder" | "idempotency" | "listenerType" | "batchFailureStrategy"
>

/** A consumer whose publishes and offsets form one Kafka transaction. */
export type TransactionalConsumerOptions<K, V> = TransactionalSettings<K, V> & {
  /** Handles one record within the transaction. A failed attempt aborts it and leaves nothing behind. */
  readonly handler: (delivery: KafkaDelivery<V, K>, context: TransactionContext) => Settles
} & Readable<V>
