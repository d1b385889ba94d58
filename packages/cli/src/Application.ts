/**
 * The export of a module for `--handlers`: handlers for the bindings of a file, and the services that they require, when they run and in rehearsals of dead letters.
 *
 * ```ts
 * import { Application } from "@eventbus/cli"
 * import { Handlers } from "@eventbus/config"
 * import { Context, Effect, Layer } from "effect"
 *
 * class Billing extends Context.Service<Billing, { readonly charge: (offset: bigint) => Effect.Effect<void> }>()("Billing") {
 *   static readonly layer = Layer.succeed(Billing, Billing.of({ charge: (offset) => Effect.log(`charged ${offset}`) }))
 * }
 *
 * export default Application.make({
 *   handlers: Handlers.make({ charge: ({ record }) => Billing.use((billing) => billing.charge(record.offset)) }),
 *   layer: Billing.layer
 * })
 * ```
 */
import { Handlers } from "@eventbus/config"
import type { IdempotencyStore } from "@eventbus/core"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"

const TypeId = "~@eventbus/cli/Application"

/** Handlers together with the layer that provides everything they require. */
export interface Application {
  readonly [TypeId]: typeof TypeId
  /** Handlers of the bindings, by name. */
  readonly handlers: Handlers.Handlers<never>
  /** Layer of the services that the handlers require. */
  readonly layer: Layer.Layer<never, unknown>
}

/** Makes an application. A requirement of a handler that the layer does not provide is a compile error. */
export const make = <R = never>(options: {
  readonly handlers: Handlers.Handlers<R>
  /** Layer of the services that the handlers require. Default: none. */
  readonly layer?: Layer.Layer<NoInfer<R>, unknown>
  /**
   * Layer of the services that the handlers have in a rehearsal of dead letters, without any effect that lasts. `Layer.empty` for handlers that require nothing and may be called at any time.
   * Default: none, so that a rehearsal decodes records and calls no handler.
   */
  readonly dryRun?: Layer.Layer<NoInfer<Exclude<R, IdempotencyStore.IdempotencyStore>>, unknown>
}): Application => ({
  [TypeId]: TypeId,
  // The layer provides the requirements of the handlers, and both are only used together.
  handlers: (options.dryRun === undefined
    ? options.handlers
    : Handlers.rehearsable(options.handlers, options.dryRun)) as Handlers.Handlers<never>,
  layer: options.layer ?? Layer.empty
})

/** Whether a value was made by `make`. */
export const isApplication = (value: unknown): value is Application => Predicate.hasProperty(value, TypeId)
