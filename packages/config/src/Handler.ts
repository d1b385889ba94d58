/**
 * What a program gives to a binding that a file describes: the code. The file names it, `handler: charge`, or the binding's own name does.
 */
import {
  type Binding,
  type CurrentTransaction,
  type Delivery,
  type EventBusError,
  type IdempotencyStore,
  Serde
} from "@eventbus/core"
import type { Effect } from "effect"
import type { BindingSettings } from "./BindingSettings.ts"
import type { Options } from "./HandlerOptions.ts"
import {
  idempotent as idempotentOnce,
  perBatch,
  perRecord,
  transactional as perTransaction
} from "./internal/assemble/bindingOf.ts"

export type { Options }

/** Code of any kind. `R` is what it requires. */
export interface Handler<out R> {
  readonly kind: "record" | "batch" | "transaction"
  /** What an error may be called in the file, per tag, when the handler declares it. */
  readonly errors: ReadonlyMap<string, ReadonlyArray<string>> | undefined
  readonly hasOnDeadLetter: boolean
  /** A binding of these settings that runs the code. */
  readonly bind: (settings: BindingSettings) => Binding.Binding<R>
}

/** Gets one record at a time. */
export const make = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, E, P> & {
    readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<unknown, E, R>
  }
): Handler<R | P> => ({ ...facts("record", options), bind: (settings) => perRecord(settings, options) })

/** Gets one record at a time, and none that was handled before: see `IdempotencyStore`. `{}` takes its defaults. */
export const idempotent = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, E, P> & {
    readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<unknown, E, R>
    readonly idempotency: IdempotencyStore.Options<K, V>
  }
): Handler<R | P | IdempotencyStore.IdempotencyStore> => ({
  ...facts("record", options),
  bind: (settings) => idempotentOnce(settings, options)
})

/** Gets whole batches; for `listenerType: BATCH`. */
export const batch = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, Exclude<E, EventBusError.BatchProcessing>, P> & {
    readonly handleBatch: (batch: Delivery.Batch<K, V>) => Effect.Effect<unknown, E, R>
  }
): Handler<R | P> => ({ ...facts("batch", options), bind: (settings) => perBatch(settings, options) })

/** What it publishes through `CurrentTransaction` and the offset of the record are one Kafka transaction. */
export const transactional = <V, E = never, R = never, K = Uint8Array | null, P = never>(
  options: Options<K, V, E, P> & {
    readonly handler: (delivery: Delivery.Delivery<K, V>) => Effect.Effect<unknown, E, R>
  }
): Handler<Exclude<R, CurrentTransaction.CurrentTransaction> | P> => ({
  ...facts("transaction", options),
  bind: (settings) => perTransaction(settings, options)
})

/** A plain function: the value is bytes. */
export const fromFunction = <E, R>(
  handler: (delivery: Delivery.Delivery<Uint8Array | null, Uint8Array | null>) => Effect.Effect<unknown, E, R>
): Handler<R> => make({ value: Serde.bytes, handler })

const facts = (
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
