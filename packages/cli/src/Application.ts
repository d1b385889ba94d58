/**
 * The export of a module for `eventbus run --handlers`: handlers for the bindings of a file, and the services that they require.
 *
 * ```ts
 * export default Application.make({ handlers: Handlers.make({ charge }), layer: Billing.layer })
 * ```
 */
import type { Handlers } from "@eventbus/config"
import { Layer, Predicate } from "effect"

const TypeId = "~@eventbus/cli/Application"

/** Handlers with nothing left to provide but what the layer gives. */
export interface Application {
  readonly [TypeId]: typeof TypeId
  readonly handlers: Handlers.Handlers<never>
  readonly layer: Layer.Layer<never, unknown>
}

/** A requirement of a handler that the layer does not give is a compile error. */
export const make = <R = never>(options: {
  readonly handlers: Handlers.Handlers<R>
  /** The services that the handlers require. Default: none. */
  readonly layer?: Layer.Layer<NoInfer<R>, unknown>
}): Application => ({
  [TypeId]: TypeId,
  // The layer gives what the handlers require, and only with the layer can they run.
  handlers: options.handlers as Handlers.Handlers<never>,
  layer: options.layer ?? Layer.empty
})

export const isApplication = (value: unknown): value is Application => Predicate.hasProperty(value, TypeId)
