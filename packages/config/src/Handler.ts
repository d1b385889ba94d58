/**
 * The code of a binding that a file describes. The file refers to it by `handler: charge`, or by the binding's own name.
 */
import {
  type Binding,
  type CurrentTransaction,
  type Delivery,
  type EventBusError,
  type IdempotencyStore,
  Serde
} from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { BindingSettings } from "./BindingSettings.ts"
import type { Options } from "./HandlerOptions.ts"
import {
  idempotent as idempotentOnce,
  idempotentBatch as idempotentPerBatch,
  perBatch,
  perRecord,
  transactional as perTransaction
} from "./internal/assemble/bindingOf.ts"

export type { Options }

/** A handler of any kind. `R` is its requirement. */
export interface Handler<out R> {
  /** Input of the handler: one record, a batch, or one record in a transaction. */
  readonly kind: "record" | "batch" | "transaction"
  /** The handler's error tags, each with the names that a file may use for it. Undefined when the handler does not declare its errors. */
  readonly errors: ReadonlyMap<string, ReadonlyArray<string>> | undefined
  /** Whether the handler has `onDeadLetter`. */
  readonly hasOnDeadLetter: boolean
  /** Makes a binding of these settings that runs the handler. Throws `InvalidRetryPolicy` for tiers that contradict each other. */
  readonly bind: (settings: BindingSettings) => Binding.Binding<R>
}

/** A handler that receives one record at a time. */
export const make = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, E, P> & {
    readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<unknown, E, R>
  }
): Handler<R | P> => ({ ...summaryOf("record", options), bind: (settings) => perRecord(settings, options) })

/** A handler that receives each record once: an `IdempotencyStore` remembers handled records. `idempotency: {}` has the store's defaults. */
export const idempotent = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, E, P> & {
    readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<unknown, E, R>
    readonly idempotency: IdempotencyStore.Options<K, V>
  }
): Handler<R | P | IdempotencyStore.IdempotencyStore> => ({
  ...summaryOf("record", options),
  bind: (settings) => idempotentOnce(settings, options)
})

/** A handler that receives whole batches; for `listenerType: BATCH`. */
export const batch = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, Exclude<E, EventBusError.BatchProcessing>, P> & {
    readonly handleBatch: (batch: Delivery.Batch<K, V>) => Effect.Effect<unknown, E, R>
  }
): Handler<R | P> => ({ ...summaryOf("batch", options), bind: (settings) => perBatch(settings, options) })

/** A handler that receives batches, and each record once; for `listenerType: BATCH`. `idempotency: {}` has the store's defaults. */
export const idempotentBatch = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, Exclude<E, EventBusError.BatchProcessing>, P> & {
    readonly handleBatch: (batch: Delivery.Batch<K, V>) => Effect.Effect<unknown, E, R>
    readonly idempotency: IdempotencyStore.Options<K, V>
  }
): Handler<R | P | IdempotencyStore.IdempotencyStore> => ({
  ...summaryOf("batch", options),
  bind: (settings) => idempotentPerBatch(settings, options)
})

/** A handler in a Kafka transaction: records that it publishes through `CurrentTransaction`, and the offset of its record, commit together. */
export const transactional = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, E, P> & {
    readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<unknown, E, R>
  }
): Handler<Exclude<R, CurrentTransaction.CurrentTransaction> | P> => ({
  ...summaryOf("transaction", options),
  bind: (settings) => perTransaction(settings, options)
})

/** A handler from a plain function that receives keys and values as bytes. */
export const fromFunction = <E, R>(
  handler: (delivery: Delivery.Delivery<Uint8Array | null, Uint8Array | null>) => Effect.Effect<unknown, E, R>
): Handler<R> => make({ value: Serde.bytes, handler })

const summaryOf = (
  kind: Handler<never>["kind"],
  options: {
    readonly errors?: { readonly [tag: string]: ReadonlyArray<string> } | undefined
    readonly onDeadLetter?: unknown
  }
): Omit<Handler<never>, "bind"> => ({
  kind,
  errors: options.errors === undefined ? undefined : new Map(Object.entries(options.errors)),
  hasOnDeadLetter: options.onDeadLetter !== undefined
})
