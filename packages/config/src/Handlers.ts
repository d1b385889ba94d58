/**
 * The handlers of a program by name, for the bindings of a configuration.
 *
 * ```ts
 * import { Handler, Handlers } from "@eventbus/config"
 * import { Serde } from "@eventbus/core"
 * import { Effect, Schema } from "effect"
 *
 * const Order = Schema.Struct({ id: Schema.String })
 *
 * export const handlers = Handlers.make({
 *   charge: Handler.make({ value: Serde.json(Order), handler: ({ value }) => Effect.log(value.id) }),
 *   count: ({ record }) => Effect.log(record.topic)
 * })
 * ```
 */
import { Binding, type Delivery, type IdempotencyStore } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Handler from "./Handler.ts"

/** Handlers by name. `R` is their common requirement. */
export interface Handlers<out R> {
  /** Handler of each name. */
  readonly byName: ReadonlyMap<string, Handler.Handler<R>>
}

/**
 * A handler, or a plain function that receives keys and values as bytes and returns an Effect.
 *
 * It is not `Handler<unknown>`: TypeScript would infer `unknown` as the requirement of a handler that is made inline.
 */
export type Input =
  | Pick<Handler.Handler<never>, "kind" | "errors" | "hasOnDeadLetter">
  | ((delivery: Delivery.Delivery<Uint8Array | null, Uint8Array | null>) => object)

/** A function that returns no Effect requires something that nobody can provide, so it does not compile. */
type Requirements<I> =
  I extends Handler.Handler<infer R>
    ? R
    : I extends (...args: Array<never>) => Effect.Effect<unknown, unknown, infer R>
      ? R
      : "a handler is a function that returns an Effect"

/** Makes handlers by the names that a configuration uses. Plain functions become handlers. */
export const make = <const H extends { readonly [name: string]: Input }>(
  handlers: H
): Handlers<Requirements<H[keyof H]>> => {
  type R = Requirements<H[keyof H]>
  return {
    byName: new Map(
      Object.entries<Input>(handlers).map(([name, input]) => [
        name,
        // The type parameter H holds the requirement of each handler.
        (Predicate.isFunction(input) ? Handler.fromFunction(input as PlainFunction<R>) : input) as Handler.Handler<R>
      ])
    )
  }
}

/**
 * The same handlers, whose bindings have the services of this layer in a rehearsal of dead letters, as `Binding.rehearsable` gives them. The layer provides everything that
 * the handlers require but an `IdempotencyStore`.
 */
export const rehearsable = <R, E, RI>(
  handlers: Handlers<R>,
  dryRun: Layer.Layer<NoInfer<Exclude<R, IdempotencyStore.IdempotencyStore>>, E, RI>
): Handlers<R | RI> => ({
  byName: new Map(
    Array.from(handlers.byName, ([name, handler]): [string, Handler.Handler<R | RI>] => [
      name,
      { ...handler, bind: (settings) => Binding.rehearsable(handler.bind(settings), dryRun) }
    ])
  )
})

type PlainFunction<R> = Parameters<typeof Handler.fromFunction<unknown, R>>[0]
