/**
 * The handlers of a program by name, for the bindings of a configuration.
 *
 * ```ts
 * const handlers = Handlers.make({
 *   charge: Handler.make({ value: Serde.json(Order), handler: ({ value }) => Billing.use((billing) => billing.charge(value)) }),
 *   count: ({ record }) => Metrics.use((metrics) => metrics.seen(record.topic))
 * })
 * ```
 */
import type { Delivery } from "@eventbus/core"
import { type Effect, Predicate } from "effect"
import * as Handler from "./Handler.ts"

/** `R` is what they require together. */
export interface Handlers<out R> {
  readonly byName: ReadonlyMap<string, Handler.Handler<R>>
}

/**
 * A handler, or a plain function that gets keys and values as bytes and returns an Effect. Not `Handler<unknown>`: one that is made in its place would take
 * `unknown` for what it requires.
 */
export type Input =
  | Pick<Handler.Handler<never>, "kind" | "errors" | "hasOnDeadLetter">
  | ((delivery: Delivery.Delivery<Uint8Array | null, Uint8Array | null>) => object)

/** Of a function that returns no Effect, something that nobody can provide. */
type Requirements<I> =
  I extends Handler.Handler<infer R>
    ? R
    : I extends (...args: Array<never>) => Effect.Effect<unknown, unknown, infer R>
      ? R
      : "a handler is a function that returns an Effect"

/** By the names that a configuration uses. */
export const make = <const H extends { readonly [name: string]: Input }>(
  handlers: H
): Handlers<Requirements<H[keyof H]>> => {
  type R = Requirements<H[keyof H]>
  return {
    byName: new Map(
      Object.entries<Input>(handlers).map(([name, input]) => [
        name,
        // What H says of each, taken together.
        (Predicate.isFunction(input) ? Handler.fromFunction(input as PlainFunction<R>) : input) as Handler.Handler<R>
      ])
    )
  }
}

type PlainFunction<R> = Parameters<typeof Handler.fromFunction<unknown, R>>[0]
