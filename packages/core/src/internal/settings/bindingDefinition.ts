/**
 * A binding's settings with defaults applied and the types of keys, values and errors erased: what the runtime works on.
 */
import { Duration, Effect } from "effect"
import type { BatchOptions, FailureOptions, Options, Settings, TransactionalOptions } from "../../BindingOptions.ts"
import type { Producer } from "../../Broker.ts"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { ExceptionLists } from "../../Classifier.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import { CurrentTransaction } from "../../CurrentTransaction.ts"
import * as DeadLetter from "../../DeadLetter.ts"
import type { Delivery } from "../../Delivery.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as IdempotencyStore from "../../IdempotencyStore.ts"
import * as Outcome from "../../Outcome.ts"
import * as RetryPolicy from "../../RetryPolicy.ts"
import * as Serde from "../../Serde.ts"
import * as TopicName from "../../TopicName.ts"
import * as Classification from "../failure/classification.ts"
import { decode, type Receiver, Undecodable } from "../record/decoding.ts"
import { isForAnotherGroup } from "../record/replayHeaders.ts"
import * as Tiers from "../retry/tiers.ts"
import { defaultCluster } from "./bindingKey.ts"
import { idempotent, nothingToDo } from "./idempotent.ts"
import * as RenamedSettings from "./renamedSettings.ts"

/** A batch whose records are decoded: the readable ones can be run, in any selection. */
export interface OpenBatch<out R> {
  /** By index in the batch. */
  readonly undecodable: ReadonlyMap<number, Undecodable>
  /** Records that are none of this group's business, by index. */
  readonly skipped: ReadonlySet<number>
  /** Hands the deliveries of these (readable) indices to the user's code, in one call. */
  readonly run: (indices: ReadonlyArray<number>) => Effect.Effect<unknown, unknown, R>
}

/** The user's code. `receivedMillis` is when the chunk arrived. */
export type Handler<R> =
  | {
      readonly _tag: "PerRecord"
      readonly invoke: (
        record: ConsumerRecord,
        receiver: Receiver,
        receivedMillis: number
      ) => Effect.Effect<unknown, unknown, R> | Undecodable
    }
  | {
      readonly _tag: "PerBatch"
      readonly open: (
        records: ReadonlyArray<ConsumerRecord>,
        receiver: Receiver,
        receivedMillis: number
      ) => OpenBatch<R>
    }
  | {
      readonly _tag: "Transactional"
      readonly invoke: (
        transaction: Producer,
        record: ConsumerRecord,
        receiver: Receiver,
        receivedMillis: number
      ) => Effect.Effect<unknown, unknown, R> | Undecodable
    }

type Plain = Required<
  Omit<
    Settings<never, never>,
    | "key"
    | "value"
    | "commitInterval"
    | "maxPollInterval"
    | "sessionTimeout"
    | "heartbeatInterval"
    | "rebalanceTimeout"
    | "fetchMaxWait"
    | "shutdownTimeout"
    | "classifier"
    | "exceptions"
  >
>

export interface BindingDefinition<out R> extends Plain {
  readonly name: string
  readonly listenerType: "SINGLE" | "BATCH"
  readonly batchFailureStrategy: "SEEK_TO_FAILED" | "DLQ_AND_CONTINUE"
  readonly handler: Handler<R>
  /** For whoever writes or reads records of the topic outside of the handler, such as tests. */
  readonly serdes: { readonly key: Serde.Any; readonly value: Serde.Any }
  /** Decides what a failure in a tier means, before attempts are counted. */
  readonly classify: Classification.Classify
  readonly tiers: Tiers.Tiers
  readonly deadLetterTopic: string
  readonly circuitBreaker: CircuitBreaker.Options<R> | undefined
  readonly deadLetter: DeadLetter.DeadLetter<R>
  readonly exceptions: ExceptionLists | undefined
  readonly idempotency?: Pick<IdempotencyStore.Options<never, never>, "lease" | "retention"> | undefined
  readonly commitIntervalMillis: number
  readonly maxPollIntervalMillis: number
  readonly sessionTimeoutMillis: number
  readonly heartbeatIntervalMillis: number
  readonly rebalanceTimeoutMillis: number
  readonly fetchMaxWaitMillis: number
  readonly shutdownTimeoutMillis: number
  /** Settings that were given under a former name. Validation refuses them. */
  readonly renamedSettings: ReadonlyArray<ConfigurationIssue>
}

/** A named definition: what can be registered. */
export interface Described<out R> {
  readonly name: string
  readonly definition: BindingDefinition<R>
}

/** The group that reads a topic of the binding: retry topics may have one of their own (`consumer: "separate"`). */
export const groupOf = ({ groupId, retry, tiers }: BindingDefinition<unknown>, topic: string): string =>
  retry.consumer === "separate" && tiers.ofTopic(topic) !== undefined ? TopicName.retryGroup(groupId) : groupId

/** The budget of one delivery (or batch): 70 % of `maxPollInterval` (ruling 18). */
export const budgetMillis = (definition: BindingDefinition<unknown>): number => definition.maxPollIntervalMillis * 0.7

export const definePerRecord = <K, V, E, R, P, D>(
  name: string,
  options: Options<K, V, E, R> &
    FailureOptions<P, D> & { readonly idempotency?: IdempotencyStore.Options<K, V> | undefined }
): BindingDefinition<R | P | D | IdempotencyStore.IdempotencyStore> => {
  const key = keySerde(options)
  const handler = onceHandler(options)
  const listenerType = options.listenerType ?? "SINGLE"
  return {
    ...settings(name, options, listenerType),
    ...protection(options),
    listenerType,
    batchFailureStrategy: options.batchFailureStrategy ?? "SEEK_TO_FAILED",
    serdes: { key, value: options.value },
    classify: Classification.make(options),
    idempotency: options.idempotency,
    handler: {
      _tag: "PerRecord",
      invoke: (record, receiver, receivedMillis) => {
        if (isForAnotherGroup(record, options.groupId)) return nothingToDo
        const delivery = decode(key, options.value, record, receiver, receivedMillis)
        return delivery instanceof Undecodable ? delivery : handler(delivery)
      }
    }
  }
}

const protection = <P, D>(
  options: FailureOptions<P, D> & Pick<Settings<never, never>, "topic" | "groupId" | "naming">
): Pick<BindingDefinition<P | D>, "circuitBreaker" | "deadLetter" | "deadLetterTopic"> => {
  const { topic, groupId, naming = TopicName.standard, deadLetter = DeadLetter.storeOnly } = options
  const { topicSuffix } = deadLetter.settings
  return {
    circuitBreaker: options.circuitBreaker,
    deadLetter,
    deadLetterTopic:
      topicSuffix === undefined ? naming.deadLetter({ topic, groupId }) : TopicName.withSuffix(topic, topicSuffix)
  }
}

/** The handler, behind the store when there is one: what it answers is read first, so that a failed result is not taken for done. */
const onceHandler = <K, V, E, R>(
  options: Options<K, V, E, R> & { readonly idempotency?: IdempotencyStore.Options<K, V> | undefined }
): ((delivery: Delivery<K, V>) => Effect.Effect<unknown, unknown, R | IdempotencyStore.IdempotencyStore>) => {
  const { idempotency, groupId, cluster = defaultCluster } = options
  const handler = (delivery: Delivery<K, V>) => Effect.flatMap(checked(options.handler(delivery)), Outcome.toEffect)
  if (idempotency === undefined) return handler
  // The same topic on another cluster holds other records under the same offsets.
  const scope = cluster === defaultCluster ? groupId : `${cluster}/${groupId}`
  return (delivery) =>
    IdempotencyStore.IdempotencyStore.use((store) =>
      idempotent({ ...idempotency, groupId: scope }, store, handler)(delivery)
    )
}

export const defineTransactional = <K, V, E, R, P, D>(
  name: string,
  options: TransactionalOptions<K, V, E, R> & FailureOptions<P, D>
): BindingDefinition<Exclude<R, CurrentTransaction> | P | D> => {
  const key = keySerde(options)
  return {
    ...settings(name, options, "SINGLE"),
    ...protection(options),
    listenerType: "SINGLE",
    batchFailureStrategy: "SEEK_TO_FAILED",
    serdes: { key, value: options.value },
    classify: Classification.make(options),
    handler: {
      _tag: "Transactional",
      invoke: (transaction, record, receiver, receivedMillis) => {
        if (isForAnotherGroup(record, options.groupId)) return nothingToDo
        const delivery = decode(key, options.value, record, receiver, receivedMillis)
        if (delivery instanceof Undecodable) return delivery
        const handled = Effect.flatMap(checked(options.handler(delivery)), Outcome.toEffect)
        return Effect.provideService(handled, CurrentTransaction, transaction)
      }
    }
  }
}

export const definePerBatch = <K, V, E, R, P, D>(
  name: string,
  options: BatchOptions<K, V, E, R> & FailureOptions<P, D>
): BindingDefinition<R | P | D> => {
  const key = keySerde(options)
  return {
    ...settings(name, options, "BATCH"),
    ...protection(options),
    listenerType: "BATCH",
    batchFailureStrategy: "SEEK_TO_FAILED",
    serdes: { key, value: options.value },
    classify: Classification.make(options),
    handler: {
      _tag: "PerBatch",
      open: (records, receiver, receivedMillis) => {
        const undecodable = new Map<number, Undecodable>()
        const skipped = new Set<number>()
        const deliveries = new Map<number, Delivery<K, V>>()
        for (const [index, record] of records.entries()) {
          if (isForAnotherGroup(record, options.groupId)) {
            skipped.add(index)
            continue
          }
          const delivery = decode(key, options.value, record, receiver, receivedMillis)
          if (delivery instanceof Undecodable) undecodable.set(index, delivery)
          else deliveries.set(index, delivery)
        }
        return {
          undecodable,
          skipped,
          run: (indices) =>
            checked(
              options.handleBatch({
                topic: options.topic,
                partition: records[0]?.partition ?? 0,
                deliveries: indices.flatMap((index) => deliveries.get(index) ?? [])
              })
            )
        }
      }
    }
  }
}

/** A fiber that meets what is no Effect ends without its finalizers. */
const checked = <A, E, R>(returned: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.isEffect(returned) ? returned : Effect.die(new TypeError(`the handler returned no Effect: ${typeof returned}`))

/** K comes from `key`; without one it is its default in `Binding.make`, `Uint8Array | null`, which is what `Serde.bytes` reads. */
function keySerde<K>(options: { readonly key?: Serde.Serde<K> }): Serde.Serde<K>
function keySerde(options: { readonly key?: unknown }): unknown {
  return options.key ?? Serde.bytes
}

const noHeaders = () => []

const settings = (
  name: string,
  options: Omit<Settings<unknown, unknown>, "key" | "value">,
  listenerType: "SINGLE" | "BATCH"
) => {
  const processingOrder = options.processingOrder ?? "partition"
  const { topic, groupId, naming = TopicName.standard, retry = RetryPolicy.blocking() } = options
  return {
    name,
    topic,
    groupId,
    cluster: options.cluster ?? defaultCluster,
    naming,
    retry,
    tiers: Tiers.make({ topic, groupId }, naming, retry.tiers),
    exceptions: options.exceptions,
    ackMode: options.ackMode ?? "MANUAL_IMMEDIATE",
    processingOrder,
    orderingMode: options.orderingMode ?? "RELAXED_IN_RETRY",
    onExhausted: options.onExhausted ?? "dead-letter",
    interceptors: options.interceptors ?? [],
    enrich: options.enrich ?? noHeaders,
    missingTopics: options.missingTopics ?? "create",
    membership: options.membership ?? "dynamic",
    autoOffsetReset: options.autoOffsetReset ?? "earliest",
    isolationLevel: options.isolationLevel ?? "read_committed",
    autoStartup: options.autoStartup ?? true,
    concurrency: options.concurrency ?? 1,
    maxPollRecords: options.maxPollRecords ?? (listenerType === "BATCH" ? 200 : 50),
    maxInFlight: options.maxInFlight ?? (processingOrder === "partition" ? Number.POSITIVE_INFINITY : 16),
    maxBufferedRecords: options.maxBufferedRecords ?? 50_000,
    maxBufferedBytes: options.maxBufferedBytes ?? 16 * 1024 * 1024,
    maxPartitionFetchBytes: options.maxPartitionFetchBytes ?? 1024 * 1024,
    commitIntervalMillis: millis(options.commitInterval, 200),
    maxPollIntervalMillis: millis(options.maxPollInterval, 600_000),
    sessionTimeoutMillis: millis(options.sessionTimeout, 45_000),
    heartbeatIntervalMillis: millis(options.heartbeatInterval, 10_000),
    rebalanceTimeoutMillis: millis(options.rebalanceTimeout, 60_000),
    fetchMaxWaitMillis: millis(options.fetchMaxWait, 100),
    shutdownTimeoutMillis: millis(options.shutdownTimeout, 30_000),
    renamedSettings: RenamedSettings.issues(options, RenamedSettings.ofBinding)
  } as const
}

/** A duration that cannot be read becomes NaN, which validation reports with all the other mistakes. */
export const millis = (input: Duration.Input | undefined, fallback: number): number => {
  if (input === undefined) return fallback
  const duration = Duration.fromInput(input)
  return duration._tag === "Some" ? Duration.toMillis(duration.value) : Number.NaN
}
