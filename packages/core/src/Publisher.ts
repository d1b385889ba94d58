/**
 * A topic to publish to, with the types of its keys and values. A value of another type does not compile, and one that its serde refuses is an `EncodeFailure` that names what
 * to pass; nothing is sent then.
 *
 * ```ts
 * import { Publisher, Serde } from "@eventbus/core"
 * import { KafkaJs } from "@eventbus/kafkajs"
 * import { Effect, Layer, Schema } from "effect"
 *
 * class Order extends Schema.Class<Order>("Order")({ id: Schema.String, cents: Schema.Int }) {}
 *
 * const orders = Publisher.make({ topic: "orders", key: Serde.string, value: Serde.json(Order) })
 *
 * export const publish = orders.publish({ key: "ann", value: new Order({ id: "o-1", cents: 1250 }) })
 *
 * export const Producers = Publisher.layer().pipe(Layer.provide(KafkaJs.layer({ brokers: ["localhost:9092"] })))
 * export const program = publish.pipe(Effect.provide(Producers))
 * ```
 *
 * All publishers of a program share one producer for each cluster, which batches their records. A record carries the trace that it was published in, and no header of the
 * connector (ruling 70).
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Adapter from "./Adapter.ts"
import type { Broker, Producer, ProducerOptions } from "./Broker.ts"
import { type BrokerError, RecordRejected, UnexpectedBrokerError } from "./BrokerError.ts"
import * as Choices from "./Choices.ts"
import * as Clusters from "./Clusters.ts"
import type { Compression, ProducerRecord, RecordMetadata } from "./ConsumerRecord.ts"
import { CurrentTransaction } from "./CurrentTransaction.ts"
import * as EncodedMessage from "./internal/publishers/encodedMessage.ts"
import { partitioned } from "./internal/publishers/partitionedRecord.ts"
import * as SharedProducers from "./internal/publishers/sharedProducers.ts"
import { defaultCluster } from "./internal/settings/bindingKey.ts"
import { TransactionCluster } from "./internal/settings/transactionCluster.ts"
import * as Kinds from "./Kinds.ts"
import * as Serde from "./Serde.ts"

/** Headers by name, as text (UTF-8) or bytes; or a list, such as the headers of another record, in which a name may repeat and a value may be null. */
export type Headers = EncodedMessage.GivenHeaders

/** A message to publish: a key, where the key's serde requires one, and a value. */
export type Message<K, V> = KeyOf<K> & {
  /** The value. `null` publishes a tombstone, where the serde takes it (`Serde.nullable`). */
  readonly value: V
  /** Headers of this record. They replace those of the publisher that have the same name. Default: none. */
  readonly headers?: Headers
  /** The partition, from 0. Default: the one that the publisher's partitioner answers, or Kafka's own: by the key, and spread where there is none. */
  readonly partition?: number
  /** Epoch milliseconds. Default: the time of publishing. */
  readonly timestamp?: number
}

/** The key of a message may be left out where its serde takes null: it then has no key. */
export type KeyOf<K> = null extends K
  ? {
      /** Chooses the partition, and so the order. Default null: records are spread over the partitions. */
      readonly key?: K
    }
  : {
      /** Chooses the partition, and so the order: records of one key stay in order. */
      readonly key: K
    }

/** The settings of a publisher. Only `topic` has no default. */
export interface Options<K, V> {
  /** The topic to publish to. It must exist; the publisher creates none. */
  readonly topic: string
  /** The alias of the Kafka cluster, one of `Clusters`. Default `default`. */
  readonly cluster?: string
  /** How to write keys. Default `Serde.bytes`: as they are. */
  readonly key?: Serde.Serde<K>
  /** How to write values. Default `Serde.bytes`: as they are. */
  readonly value?: Serde.Serde<V>
  /**
   * Chooses the partition of a message that names none, from 0 to `partitions` - 1; undefined leaves the choice to Kafka's own partitioner. Any other answer, and a throw, is
   * `RecordRejected`. The partition count is asked of the cluster once a minute. Default: Kafka's partitioner, murmur2 of the key.
   */
  readonly partitioner?: (message: Message<K, V>, partitions: number) => number | undefined
  /** Kafka: `compression.type` of these records. Default: that of the producer (`layer`). */
  readonly compression?: Compression
  /** Headers of every record, such as a content type. Default: none. */
  readonly headers?: Headers
}

/** The failures of a publish: each has `retryable`, which says whether the same call may succeed later. */
export type PublishFailure = Serde.EncodeFailure | BrokerError

/** The ways to publish to a topic. `R` is what they require. */
export interface Operations<K, in V, out R> {
  /** The topic that it publishes to. */
  readonly topic: string
  /** The alias of its cluster. */
  readonly cluster: string
  /**
   * Publishes a message, and answers partition and offset of its record when the broker has acknowledged it. Fails with `EncodeFailure` for a key or value that the serde
   * refuses, and with the broker's error otherwise. A cluster that is away is waited for, up to the producer's `deliveryTimeout`.
   */
  readonly publish: (message: Message<K, V>) => Effect.Effect<RecordMetadata, PublishFailure, R>
  /**
   * Publishes messages in order, in as few requests as their partitions and the producer's limits allow, and answers when all are acknowledged. All are encoded first: when one
   * cannot be, none is sent. After a broker's error, which is that of the first message that failed, others may have been written.
   */
  readonly publishAll: (
    messages: ReadonlyArray<Message<K, V>>
  ) => Effect.Effect<ReadonlyArray<RecordMetadata>, PublishFailure, R>
}

/** Publishes to one topic by the shared producers. */
export interface Publisher<K, in V> extends Operations<K, V, Producers> {
  /**
   * The same within a handler of `Binding.makeTransactional`: the records become visible together with the offset of the record that is being handled, or never. Fails with
   * `RecordRejected` when the publisher's cluster is not that of the binding, since no transaction spans two clusters. The shared producers are asked only for the partition
   * counts that a partitioner needs.
   */
  readonly inTransaction: Operations<K, V, CurrentTransaction | Producers>
}

/** The producers of a program: one for each cluster that a publisher names, made with its first record. `layer` gives them. */
export class Producers extends Context.Service<
  Producers,
  {
    /** The producer of a cluster. Fails with `UnexpectedBrokerError`, code `UnknownCluster`, for an alias that no cluster has. */
    readonly producer: (cluster: string) => Effect.Effect<Producer, BrokerError>
    /** How many partitions a topic has, for partitioners. */
    readonly partitions: (cluster: string, topic: string) => Effect.Effect<number, BrokerError>
  }
>()("@eventbus/core/Publisher/Producers") {}

/**
 * The producers that publishers share. Provide it once: each use of the function is a producer of its own. Nothing is connected before the first record. Closing the layer
 * sends what is waiting, for `closeTimeout` at most. Fails with `UnexpectedBrokerError`, code `INVALID_CONFIG`, for an option of another kind or out of its range.
 */
export const layer = (options: ProducerOptions = {}): Layer.Layer<Producers, UnexpectedBrokerError, Broker> =>
  Layer.effect(
    Producers,
    Effect.gen(function* () {
      yield* Adapter.checkOptions("producer", options)
      const scope = yield* Effect.scope
      const context = yield* Effect.context<Broker>()
      const known = new Map<string, SharedProducers.Cluster>()
      const clusterOf = Effect.fnUntraced(function* (alias: string) {
        const broker = yield* Effect.mapError(Effect.provideContext(Clusters.get(alias), context), unknownCluster)
        const cluster = known.get(alias) ?? SharedProducers.make(broker, options, scope, context)
        known.set(alias, cluster)
        return cluster
      })
      return {
        // Asked for with each record: a cluster that is known costs a look-up.
        producer: (alias) => known.get(alias)?.producer ?? Effect.flatMap(clusterOf(alias), ({ producer }) => producer),
        partitions: (alias, topic) => Effect.flatMap(clusterOf(alias), ({ partitions }) => partitions(topic))
      }
    })
  )

const unknownCluster = ({ message }: Error): UnexpectedBrokerError =>
  new UnexpectedBrokerError({ operation: "publish", code: "UnknownCluster", detail: message, retryable: false })

/** Describes a publisher; nothing is connected. Throws `ConfigurationValidation` for settings of another kind. */
export const make = <V = Uint8Array | null, K = Uint8Array | null>(options: Options<K, V>): Publisher<K, V> => {
  Kinds.refuse(optionKinds("Publisher.make", options))
  const { topic, cluster = defaultCluster } = options
  const shared = Producers.use(({ producer }) => producer(cluster))
  const transaction = Effect.flatMap(TransactionCluster, (own) => {
    if (own === undefined || own === cluster) return CurrentTransaction
    const detail = `its publisher's cluster is '${cluster}', and the transaction is one of '${own}'`
    return Effect.fail(new RecordRejected({ topic, detail }))
  })
  const records = recordsOf(options, cluster)
  return {
    ...operations(topic, cluster, records, shared),
    inTransaction: operations(topic, cluster, records, transaction)
  }
}

/**
 * The publisher of producers that are at hand, such as those of a scope of your own: it requires nothing, and publishes a little faster. Throws `ConfigurationValidation` for
 * settings of another kind.
 */
export const makeBound = <V = Uint8Array | null, K = Uint8Array | null>(
  options: Options<K, V>,
  producers: Producers["Service"]
): Operations<K, V, never> => {
  Kinds.refuse(optionKinds("Publisher.makeBound", options))
  const { topic, cluster = defaultCluster, partitioner } = options
  const records = recordsOf(options, cluster)
  const shared = Effect.suspend(() => producers.producer(cluster))
  const bound: Operations<K, V, never> = operations(
    topic,
    cluster,
    (messages: ReadonlyArray<Message<K, V>>, of: "single" | "batch") =>
      Effect.provideService(records(messages, of), Producers, producers),
    shared
  )
  return partitioner === undefined ? { ...bound, publish: publishDirectly(targetOf(options), shared) } : bound
}

/** Without a partitioner, and with a producer that is connected, a message costs the effect of the producer alone. */
const publishDirectly = <K, V>(
  target: EncodedMessage.Target<K, V>,
  shared: Effect.Effect<Producer, BrokerError>
): Operations<K, V, never>["publish"] => {
  let open: Producer | undefined
  return (message) =>
    Effect.suspend((): Effect.Effect<RecordMetadata, PublishFailure> => {
      const record = recordOf(target, message, undefined)
      if (Result.isFailure(record)) return Effect.fail(record.failure)
      if (open !== undefined) return open.send(record.success)
      return Effect.flatMap(shared, (producer) => {
        open = producer
        return producer.send(record.success)
      })
    })
}

const optionKinds = Kinds.struct(
  {
    cluster: Kinds.name,
    key: Kinds.serde,
    value: Kinds.serde,
    partitioner: Kinds.func,
    compression: Kinds.oneOf(Choices.compression),
    headers: Kinds.object
  },
  { topic: Kinds.name }
)

/** The records of messages. Those of a batch are named by their index when they are refused. */
type Records<K, V, R = Producers> = (
  messages: ReadonlyArray<Message<K, V>>,
  of: "single" | "batch"
) => Effect.Effect<ReadonlyArray<ProducerRecord>, PublishFailure, R>

const operations = <K, V, R, RI>(
  topic: string,
  cluster: string,
  records: Records<K, V, RI>,
  producer: Effect.Effect<Producer, BrokerError, R>
): Operations<K, V, R | RI> => ({
  topic,
  cluster,
  publish: (message) =>
    Effect.flatMap(records([message], "single"), (all) => Effect.flatMap(producer, ({ send }) => send(all[0]!))),
  publishAll: (messages) =>
    messages.length === 0
      ? Effect.succeed([])
      : Effect.flatMap(records(messages, "batch"), (all) => Effect.flatMap(producer, ({ sendAll }) => sendAll(all)))
})

const targetOf = <K, V>({
  topic,
  compression,
  headers = {},
  ...options
}: Options<K, V>): EncodedMessage.Target<K, V> => ({
  ...{ topic, compression, headers: EncodedMessage.listed(headers) },
  key: serdeOf(options.key),
  value: serdeOf(options.value)
})

/** A key that is left out is null, which its serde takes: the types say so. */
const recordOf = <K, V>(target: EncodedMessage.Target<K, V>, message: Message<K, V>, index: number | undefined) =>
  EncodedMessage.recordOf(target, message, (message as { readonly key?: K }).key ?? (null as K), index)

const recordsOf = <K, V>(options: Options<K, V>, cluster: string): Records<K, V> => {
  const { topic, partitioner } = options
  const target = targetOf(options)
  const encoded: Records<K, V> = (messages, of) =>
    Effect.suspend(() => {
      const records: Array<ProducerRecord> = []
      for (const [index, message] of messages.entries()) {
        const result = recordOf(target, message, of === "batch" ? index : undefined)
        if (Result.isFailure(result)) return Effect.fail(result.failure)
        records.push(result.success)
      }
      return Effect.succeed(records)
    })
  if (partitioner === undefined) return encoded
  return (messages, of) =>
    Effect.flatMap(encoded(messages, of), (records) => {
      if (records.every(({ partition }) => partition !== undefined)) return Effect.succeed(records)
      const place = (partitions: number) =>
        records.map((record, index) =>
          record.partition === undefined
            ? partitioned(record, partitions, (count) => partitioner(messages[index]!, count))
            : Result.succeed(record)
        )
      const counted = Producers.use(({ partitions }) => partitions(cluster, topic))
      return Effect.flatMap(counted, (partitions) => Effect.fromResult(Result.all(place(partitions))))
    })
}

/** The type of a key or value without a serde is its default in `make`, which is what `Serde.bytes` reads and writes. */
const serdeOf = <A>(serde: Serde.Serde<A> | undefined): Serde.Serde<A> =>
  serde ?? (Serde.bytes as unknown as Serde.Serde<A>)
