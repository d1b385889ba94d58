/**
 * Consumers with promise handlers: what a group does with the records of a topic.
 *
 * ```ts
 * import { consumer, deadLetter, on, Serde } from "@eventbus/node"
 *
 * class CardDeclined extends Error {}
 * declare const charge: (order: string, options: { readonly signal: AbortSignal }) => Promise<void>
 *
 * export const orders = consumer({
 *   topic: "orders",
 *   groupId: "billing",
 *   value: Serde.string,
 *   handler: ({ value }, { signal }) => charge(value, { signal }),
 *   onError: [on(CardDeclined, deadLetter("card declined"))],
 *   retry: { tiers: ["1m", "5m", "12m"] }
 * })
 * ```
 */
import { type BindingSettings, Handler } from "@eventbus/config"
import { Binding, CurrentTransaction, type Delivery, type IdempotencyStore } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type {
  BatchConsumerOptions,
  CommonOptions,
  ConsumerOptions,
  HandlerContext,
  Settles,
  TransactionalConsumerOptions
} from "./ConsumerOptions.ts"
import type { ErrorRule } from "./ErrorRule.ts"
import * as HandlerCode from "./internal/handlerCode.ts"
import * as PlainSettings from "./internal/plainSettings.ts"
import * as PromiseCall from "./internal/promiseCall.ts"
import * as TransactionProducer from "./internal/transactionProducer.ts"

type Bytes = Uint8Array | null

/** A consumer, described. A bus that is given it under a name runs it. */
export interface Consumer {
  /** Its settings, as a configuration file has them. */
  readonly settings: { readonly [key: string]: unknown }
  /** Its rules for errors. */
  readonly rules: ReadonlyArray<ErrorRule>
  /** Whether it needs an idempotency store. */
  readonly isIdempotent: boolean
  /** Its code, under the name that the bus gives it. */
  readonly handler: (name: string) => Handler.Handler<IdempotencyStore.IdempotencyStore>
}

/** Describes a consumer whose handler gets one record at a time. Nothing is checked before `start` of the bus. */
export const consumer = <V = Bytes, K = Bytes>(options: ConsumerOptions<K, V>): Consumer =>
  described("record", options, {}, (name, settings) => {
    const handler = callOf<Delivery.Delivery<K, V>>(name, settings, options.handler)
    const code = { ...HandlerCode.of(name, settings, options), handler }
    const idempotency = HandlerCode.idempotencyOf(options)
    return idempotency === undefined ? Handler.make(code) : Handler.idempotent({ ...code, idempotency })
  })

/** Describes a consumer whose handler gets whole batches. */
export const batchConsumer = <V = Bytes, K = Bytes>(options: BatchConsumerOptions<K, V>): Consumer =>
  described("batch", options, { listenerType: "BATCH" }, (name, settings) => {
    const handleBatch = callOf<Delivery.Batch<K, V>>(name, settings, options.handleBatch)
    const code = { ...HandlerCode.of(name, settings, options), handleBatch }
    const idempotency = HandlerCode.idempotencyOf(options)
    return idempotency === undefined ? Handler.batch(code) : Handler.idempotentBatch({ ...code, idempotency })
  })

/** Describes a consumer that consumes, transforms and produces exactly once: what its handler publishes by `context.producer` commits together with the offset of its record. */
export const transactionalConsumer = <V = Bytes, K = Bytes>(options: TransactionalConsumerOptions<K, V>): Consumer =>
  described("transaction", options, {}, (name, settings) => {
    const call = PromiseCall.bounded(HandlerCode.handlerOf(name), HandlerCode.endMillis(settings))
    const handler = Effect.fnUntraced(function* (delivery: Delivery.Delivery<K, V>) {
      const transaction = yield* CurrentTransaction.CurrentTransaction
      const context = yield* Effect.context()
      return yield* call(({ signal }) =>
        TransactionProducer.use(transaction, context, signal, (producer) =>
          options.handler(delivery, { signal, producer })
        )
      )
    })
    return Handler.transactional({ ...HandlerCode.of(name, settings, options), handler })
  })

/** A handler as core has it. */
const callOf = <D>(
  name: string,
  settings: BindingSettings.BindingSettings,
  handler: (input: D, context: HandlerContext) => Settles
) => {
  const call = PromiseCall.bounded(HandlerCode.handlerOf(name), HandlerCode.endMillis(settings))
  return (input: D) => call((context) => handler(input, context))
}

type Requirement = IdempotencyStore.IdempotencyStore

const described = <K, V>(
  kind: Handler.Handler<never>["kind"],
  options: Partial<CommonOptions<K, V>>,
  fixed: { readonly [key: string]: unknown },
  handlerOf: (name: string, settings: BindingSettings.BindingSettings) => Handler.Handler<Requirement>
): Consumer => ({
  settings: { ...PlainSettings.of(options), ...fixed },
  rules: options.onError ?? [],
  isIdempotent: options.idempotency !== undefined,
  handler: (name) => ({
    kind,
    errors: undefined,
    hasOnDeadLetter: options.deadLetter?.onDeadLetter !== undefined,
    bind: (settings) => {
      const binding = handlerOf(name, settings).bind(settings)
      return options.rehearsable === true ? Binding.rehearsable(binding, Layer.empty) : binding
    }
  })
})
