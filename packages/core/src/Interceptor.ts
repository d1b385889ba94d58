/**
 * Interceptors run around every call of a handler: to time it, to limit it, to give it services or log annotations, to check something first.
 *
 * An interceptor gets the call as an effect, and answers with one of the same result. So it can run things before and after, repeat nothing by itself, fail by a
 * defect, and is not able to invent a success. Its own work counts as the handler's: for the breaker, the processing budget, and retries, each of which calls
 * it anew. It stands outside of the idempotency store: it sees records that the store then skips.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ConsumerRecord } from "./ConsumerRecord.ts"
import * as Kinds from "./Kinds.ts"

/** A call of a handler. */
export interface Call {
  /** The alias of the binding's cluster. */
  readonly cluster: string
  /** The name of the binding. */
  readonly binding: string
  /** The topic of the records. */
  readonly topic: string
  /** The partition of the records. */
  readonly partition: number
  /** 0 on the main topic, else the first tier of the retry topic. */
  readonly tier: number
  /** One for handlers that get records, one or more for those that get batches. As fetched. */
  readonly records: ReadonlyArray<ConsumerRecord>
}

/** Wraps a call of a handler: it runs `handle`, and may do something before and after it. */
export type Interceptor = <A, E, R>(handle: Effect.Effect<A, E, R>, call: Call) => Effect.Effect<A, E, R>

/** Those of every binding, the outermost first. Read when a partition begins to be handled. A binding's own (`interceptors`) are within them. Default: none. */
export const Interceptors = Context.Reference<ReadonlyArray<Interceptor>>("@eventbus/core/Interceptors", {
  defaultValue: () => []
})

/**
 * Adds an interceptor, within those that are there already, for the bindings that the layer is provided to. Building it throws `ConfigurationValidation` for what is no
 * function.
 */
export const layer = (interceptor: Interceptor): Layer.Layer<never> =>
  Layer.effect(
    Interceptors,
    Effect.map(Interceptors, (outer) => {
      Kinds.refuse(Kinds.func("Interceptor.layer", interceptor))
      return [...outer, interceptor]
    })
  )
