/** The admin API over bindings that other processes run. */
import { AdminWeb, type Authorizer, EventBusAdmin } from "@eventbus/admin"
import { type Binding, Broker, Fleet, Snapshot } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Exit, Layer, Logger, Scope } from "effect"
import { binding, callOf, everything } from "./api.ts"

interface Options {
  readonly bindings?: ReadonlyArray<Binding.Binding<never>>
  readonly fleet?: Fleet.Settings
  readonly authorizer?: Authorizer.Authorizer
}

/** A console beside the processes of this cluster. */
export const outsideOf = Effect.fnUntraced(function* (
  memory: MemoryBroker.Service,
  { bindings = [binding()], fleet, authorizer = everything }: Options = {}
) {
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
  const program = EventBusAdmin.layerOutside({ bindings }).pipe(
    Layer.provide(fleet === undefined ? Layer.empty : Fleet.layer(fleet)),
    Layer.provide(Layer.succeed(Broker.Broker, memory.broker)),
    Layer.provide(Layer.succeed(Snapshot.LagPollInterval, "200 millis")),
    Layer.provide(Logger.layer([]))
  )
  const context = yield* Layer.buildWithScope(program, scope)
  const web = yield* AdminWeb.make({ authorizer }).pipe(
    Effect.provideContext(context),
    Effect.provide(Logger.layer([]))
  )
  const admin = Context.get(context, EventBusAdmin.EventBusAdmin)
  return { admin, web, call: callOf(web), close: Scope.close(scope, Exit.void) }
})
