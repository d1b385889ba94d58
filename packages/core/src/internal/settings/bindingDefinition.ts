/**
 * A binding's settings with defaults applied and the types of keys, values and errors erased: what the runtime works on.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type {
  BatchOptions,
  FailureOptions,
  OnError,
  Options,
  Settings,
  TransactionalOptions
} from "../../BindingOptions.ts"
import type { Producer } from "../../Broker.ts"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"
import { CurrentTransaction } from "../../CurrentTransaction.ts"
import * as Defaults from "../../Defaults.ts"
import type { Delivery } from "../../Delivery.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as IdempotencyStore from "../../IdempotencyStore.ts"
import type { LetterTransform } from "../../LetterTransform.ts"
import * as Serde from "../../Serde.ts"
import * as Classification from "../failure/classification.ts"
import { decode, type Receiver, Undecodable } from "../record/decoding.ts"
import * as BareHandlers from "./bareHandlers.ts"
import * as GivenOptions from "./givenOptions.ts"
import { idempotent } from "./idempotent.ts"
import { idempotentBatch } from "./idempotentBatch.ts"
import * as RehearsedHandler from "./rehearsedHandler.ts"
import * as SourceSettings from "./sourceSettings.ts"
import { TransactionCluster } from "./transactionCluster.ts"

/** A batch whose records are decoded: the readable ones can be run, in any selection. */
export interface OpenBatch<out R> {
  /** By index in the batch. */
  readonly undecodable: ReadonlyMap<number, Undecodable>
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

export interface BindingDefinition<out R> extends SourceSettings.SourceSettings<R> {
  readonly listenerType: "SINGLE" | "BATCH"
  readonly batchFailureStrategy: "SEEK_TO_FAILED" | "DLQ_AND_CONTINUE"
  readonly handler: Handler<R>
  readonly rehearsed: RehearsedHandler.RehearsedHandler<R>
  /** Provides everything that the handler requires in a rehearsal. Undefined where none is given, and then no rehearsal calls the handler. */
  readonly dryRun?: Layer.Layer<never, unknown, R> | undefined
  /** For whoever writes or reads records of the topic outside of the handler, such as tests. */
  readonly serdes: { readonly key: Serde.Any; readonly value: Serde.Any }
  /** The functions that repair dead letters, by name. */
  readonly transforms: ReadonlyMap<string, LetterTransform<unknown, unknown>>
  /** Decides what a failure in a tier means, before attempts are counted. */
  readonly classify: Classification.Classify
  readonly idempotency?: IdempotencyStore.Options<never, never> | undefined
  /** The options that are refused. Validation reports them; their replacements here are never started. */
  readonly refused: ReadonlyArray<ConfigurationIssue>
}

/** A named definition: what can be registered. */
export interface Described<out R> {
  readonly name: string
  readonly definition: BindingDefinition<R>
}

/** The budget of one delivery (or batch): 70 % of `maxPollInterval` (ruling 18). */
export const budgetMillis = (definition: BindingDefinition<unknown>): number => definition.maxPollIntervalMillis * 0.7

export const definePerRecord = <K, V, E, R, P, D>(
  givenName: string,
  given: Options<K, V, E, R> &
    FailureOptions<P, D> & { readonly idempotency?: IdempotencyStore.Options<K, V> | undefined }
): BindingDefinition<R | P | D | IdempotencyStore.IdempotencyStore> => {
  const { name, options, refused } = GivenOptions.check(givenName, given, "handler")
  const key = serdeOf(options.key)
  const value = serdeOf(options.value)
  const listenerType = options.listenerType ?? Defaults.binding.listenerType
  const settings = SourceSettings.make(name, options, listenerType)
  const handler = onceHandler(options, settings)
  return {
    ...settings,
    refused,
    listenerType,
    batchFailureStrategy: options.batchFailureStrategy ?? Defaults.binding.batchFailureStrategy,
    serdes: { key, value },
    transforms: transformsOf(options),
    classify: classificationOf(options),
    idempotency: options.idempotency,
    rehearsed: RehearsedHandler.make(key, value, BareHandlers.ofRecords(options)),
    handler: {
      _tag: "PerRecord",
      invoke: (record, receiver, receivedMillis) => {
        const delivery = decode(key, value, record, receiver, receivedMillis)
        return delivery instanceof Undecodable ? delivery : handler(delivery)
      }
    }
  }
}

const transformsOf = ({
  transforms = {}
}: {
  readonly transforms?: Readonly<Record<string, LetterTransform<unknown, unknown>>>
}) => new Map(Object.entries(transforms))

/** Whose work the keys of an idempotency store stand for. */
const workOf = (settings: SourceSettings.SourceSettings<unknown>) => {
  const { groupId, topic, cluster } = settings
  return { groupId, topic, cluster, otherTopics: SourceSettings.originsOfOthers(settings) }
}

/** The handler, behind the store when there is one. */
const onceHandler = <K, V, E, R>(
  options: Options<K, V, E, R> & { readonly idempotency?: IdempotencyStore.Options<K, V> | undefined },
  settings: SourceSettings.SourceSettings<unknown>
): ((delivery: Delivery<K, V>) => Effect.Effect<unknown, unknown, R | IdempotencyStore.IdempotencyStore>) => {
  const { idempotency } = options
  const handler = BareHandlers.ofRecords(options)
  if (idempotency === undefined) return handler
  return (delivery) =>
    IdempotencyStore.IdempotencyStore.use((store) =>
      idempotent({ ...idempotency, ...workOf(settings) }, store, handler)(delivery)
    )
}

export const defineTransactional = <K, V, E, R, P, D>(
  givenName: string,
  given: TransactionalOptions<K, V, E, R> & FailureOptions<P, D>
): BindingDefinition<Exclude<R, CurrentTransaction> | P | D> => {
  const { name, options, refused } = GivenOptions.check(givenName, given, "handler")
  const key = serdeOf(options.key)
  const value = serdeOf(options.value)
  const { cluster = Defaults.binding.cluster } = options
  const bare = BareHandlers.ofRecords(options)
  const handler = (delivery: Delivery<K, V>, transaction: Producer) =>
    Effect.provideContext(
      bare(delivery),
      Context.make(CurrentTransaction, transaction).pipe(Context.add(TransactionCluster, cluster))
    )
  return {
    ...SourceSettings.make(name, options, "SINGLE"),
    refused,
    listenerType: "SINGLE",
    batchFailureStrategy: "SEEK_TO_FAILED",
    serdes: { key, value },
    transforms: transformsOf(options),
    classify: classificationOf(options),
    rehearsed: RehearsedHandler.make(key, value, handler),
    handler: {
      _tag: "Transactional",
      invoke: (transaction, record, receiver, receivedMillis) => {
        const delivery = decode(key, value, record, receiver, receivedMillis)
        return delivery instanceof Undecodable ? delivery : handler(delivery, transaction)
      }
    }
  }
}

export const definePerBatch = <K, V, E, R, P, D>(
  givenName: string,
  given: BatchOptions<K, V, E, R> &
    FailureOptions<P, D> & { readonly idempotency?: IdempotencyStore.Options<K, V> | undefined }
): BindingDefinition<R | P | D | IdempotencyStore.IdempotencyStore> => {
  const { name, options, refused } = GivenOptions.check(givenName, given, "handleBatch")
  const key = serdeOf(options.key)
  const value = serdeOf(options.value)
  const settings = SourceSettings.make(name, options, "BATCH")
  const handler = onceBatchHandler(options, settings)
  const others = SourceSettings.originsOfOthers(settings)
  const sourceOf = ({ topic, partition }: TopicPartition) => ({ topic: others.get(topic) ?? settings.topic, partition })
  return {
    ...settings,
    refused,
    listenerType: "BATCH",
    batchFailureStrategy: "SEEK_TO_FAILED",
    serdes: { key, value },
    transforms: transformsOf(options),
    classify: classificationOf(options),
    idempotency: options.idempotency,
    // A batch of one, as a handler of batches gets it when it cannot say which record fails.
    rehearsed: RehearsedHandler.make(key, value, (delivery) =>
      BareHandlers.ofBatches(options, sourceOf(delivery.record))([delivery])
    ),
    handler: {
      _tag: "PerBatch",
      open: (records, receiver, receivedMillis) => {
        const undecodable = new Map<number, Undecodable>()
        const deliveries = new Map<number, Delivery<K, V>>()
        for (const [index, record] of records.entries()) {
          const delivery = decode(key, value, record, receiver, receivedMillis)
          if (delivery instanceof Undecodable) undecodable.set(index, delivery)
          else deliveries.set(index, delivery)
        }
        return {
          undecodable,
          run: (indices) =>
            handler(
              sourceOf(records[0] ?? { topic: settings.topic, partition: 0 }),
              indices.flatMap((index) => deliveries.get(index) ?? [])
            )
        }
      }
    }
  }
}

/** The handler of batches, behind the store when there is one. */
const onceBatchHandler = <K, V, E, R>(
  options: BatchOptions<K, V, E, R> & { readonly idempotency?: IdempotencyStore.Options<K, V> | undefined },
  settings: SourceSettings.SourceSettings<unknown>
) => {
  const { idempotency } = options
  type Deliveries = ReadonlyArray<Delivery<K, V>>
  type Handled = Effect.Effect<unknown, unknown, R | IdempotencyStore.IdempotencyStore>
  const handle = (at: TopicPartition) => BareHandlers.ofBatches(options, at)
  if (idempotency === undefined) return (at: TopicPartition, deliveries: Deliveries) => handle(at)(deliveries)
  return (at: TopicPartition, deliveries: Deliveries): Handled =>
    IdempotencyStore.IdempotencyStore.use((store) =>
      idempotentBatch({ ...idempotency, ...workOf(settings) }, store, handle(at))(deliveries)
    )
}

/** The type comes from the serde; without one it is its default in `Binding.make`, `Uint8Array | null`, which is what `Serde.bytes` reads. */
function serdeOf<A>(serde: Serde.Serde<A> | undefined): Serde.Serde<A>
function serdeOf(serde: unknown): unknown {
  return serde ?? Serde.bytes
}

/** The rules for errors: those of the binding, and the lists of its retry policy. */
const classificationOf = <E>({
  onError,
  classifier,
  retry
}: { readonly onError?: OnError<E> } & Pick<Settings<never, never>, "classifier" | "retry">) =>
  Classification.make({
    ...(onError === undefined ? {} : { onError }),
    ...(classifier === undefined ? {} : { classifier }),
    ...(retry === undefined ? {} : { exceptions: retry })
  })
