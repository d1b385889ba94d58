/**
 * Methods of providers and controllers as handlers.
 *
 * ```ts
 * import { KafkaHandler } from "@eventbus/nestjs"
 * import { deadLetter, type KafkaDelivery, on, Serde } from "@eventbus/node"
 * import { Injectable } from "@nestjs/common"
 *
 * class CardDeclined extends Error {}
 *
 * @Injectable()
 * export class Billing {
 *   @KafkaHandler({ topic: "orders", groupId: "billing", value: Serde.string, onError: [on(CardDeclined, deadLetter("declined"))] })
 *   async onOrder({ value }: KafkaDelivery<string>) {
 *     console.log(`charging ${value}`)
 *   }
 * }
 * ```
 *
 * Nest calls such a method on the one instance of its class. Pipes, guards, interceptors and exception filters are those of controllers and do not run: the options `value`,
 * `interceptors` and `onError` are in their place.
 */
import {
  batchConsumer,
  type CommonOptions,
  consumer,
  type HandlerContext,
  type KafkaBatch,
  type KafkaDelivery,
  type Readable,
  type Settles,
  type TransactionalSettings,
  type TransactionContext,
  transactionalConsumer
} from "@eventbus/node"
import { defaultName } from "./internal/busRuntime.ts"
import * as HandlerMethods from "./internal/handlerMethods.ts"

/** Where a handler belongs. */
interface Belonging {
  /** The name of the consumer in logs, metrics, health and commands. Default: `{class}.{method}`. */
  readonly name?: string
  /** The name of the bus, where the application has several. Default: the bus without a name. */
  readonly bus?: string
}

/** The options of a handler that gets one record at a time: all those of `consumer` of `@eventbus/node`. */
export type KafkaHandlerOptions<K, V> = Belonging & CommonOptions<K, V> & Readable<V>

/** The options of a handler that gets whole batches: all those of `batchConsumer` of `@eventbus/node`. */
export type KafkaBatchHandlerOptions<K, V> = Belonging & Omit<CommonOptions<K, V>, "listenerType"> & Readable<V>

/** The options of a handler in a transaction: all those of `transactionalConsumer` of `@eventbus/node`. */
export type KafkaTransactionHandlerOptions<K, V> = Belonging & TransactionalSettings<K, V> & Readable<V>

/** Decorates a method whose parameters the options fit. */
type Decorates<Input, Context> = <M extends (input: Input, context: Context) => Settles>(
  prototype: object,
  method: string | symbol,
  descriptor: TypedPropertyDescriptor<M>
) => void

type Bytes = Uint8Array | null

/** The method handles one record at a time. A promise that fulfils means handled; a throw is one failed attempt. */
export const KafkaHandler = <V = Bytes, K = Bytes>(
  options: KafkaHandlerOptions<K, V>
): Decorates<KafkaDelivery<V, K>, HandlerContext> => {
  const { name, bus = defaultName, ...rest } = options
  return HandlerMethods.decorator({
    name,
    bus,
    consumer: (handler) => consumer<unknown, unknown>({ ...rest, handler } as never)
  })
}

/** The method handles whole batches: up to `maxPollRecords` consecutive records of one partition. */
export const KafkaBatchHandler = <V = Bytes, K = Bytes>(
  options: KafkaBatchHandlerOptions<K, V>
): Decorates<KafkaBatch<V, K>, HandlerContext> => {
  const { name, bus = defaultName, ...rest } = options
  return HandlerMethods.decorator({
    name,
    bus,
    consumer: (handleBatch) => batchConsumer<unknown, unknown>({ ...rest, handleBatch } as never)
  })
}

/** The method handles one record within a Kafka transaction: what it publishes by `context.producer` commits together with the offset of its record. */
export const KafkaTransactionHandler = <V = Bytes, K = Bytes>(
  options: KafkaTransactionHandlerOptions<K, V>
): Decorates<KafkaDelivery<V, K>, TransactionContext> => {
  const { name, bus = defaultName, ...rest } = options
  return HandlerMethods.decorator({
    name,
    bus,
    consumer: (handler) => transactionalConsumer<unknown, unknown>({ ...rest, handler } as never)
  })
}
