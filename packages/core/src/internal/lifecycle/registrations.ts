/**
 * Adds bindings to the registry and removes them: each registration is checked against all that were before it, and a binding that is removed has ended first.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Broker } from "../../Broker.ts"
import * as Clusters from "../../Clusters.ts"
import {
  type AmbiguousBinding,
  BindingAlreadyExists,
  type BindingNotFound,
  ConfigurationValidation,
  ConnectorClosed,
  InvalidContainerState
} from "../../EventBusError.ts"
import { Hostname } from "../../Hostname.ts"
import type { BindingSnapshot } from "../../Snapshot.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as Validation from "../checks/validation.ts"
import type { FleetProcess } from "../fleet/fleetProcess.ts"
import { CurrentHandler } from "../group/currentHandler.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type * as RetryTopics from "../publish/retryTopics.ts"
import type { Described } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Container from "./container.ts"
import type { Registered, Registry } from "./registry.ts"

type LookupError = BindingNotFound | AmbiguousBinding
type PreparationOf = ReturnType<typeof RetryTopics.perCluster>
/** The holds of the fleet on a binding by now; undefined without a fleet. */
type HoldsOf = FleetProcess["holdsOf"] | undefined

type RegistrationError = BindingAlreadyExists | ConfigurationValidation | ConnectorClosed

export interface Registrations {
  readonly register: <R>(binding: Described<R>) => Effect.Effect<void, RegistrationError, R | Broker>
  readonly unregister: (name: string) => Effect.Effect<BindingSnapshot, LookupError | InvalidContainerState>
  readonly destroy: (name: string) => Effect.Effect<void, LookupError | InvalidContainerState>
  /** Refuses new bindings from now on, ends all bindings side by side, and returns when nothing of them is left. */
  readonly close: Effect.Effect<void>
  readonly isClosed: () => boolean
  /** Whether a binding has been registered, whatever became of it. */
  readonly hasRegistered: () => boolean
}

export const make = (
  registry: Registry,
  hub: EventHub,
  preparationOf: PreparationOf,
  holdsOf: HoldsOf
): Registrations => {
  /** One registration at a time: each sees all that were before it. */
  const registering = Semaphore.makeUnsafe(1)
  let closed = false
  let hasRegistered = false

  const unregister = Effect.fnUntraced(function* (name: string) {
    const registered = yield* registry.find(name)
    const { container } = registered
    const current = container.state()
    if (current !== "CREATED" && current !== "STOPPED") {
      const binding = BindingKey.label(container.definition)
      const required = ["CREATED", "STOPPED"] as const
      return yield* new InvalidContainerState({ binding, operation: "unregister", current, required })
    }
    const last = yield* container.snapshot
    yield* end(registry, registered)
    return last
  })

  const close = registering
    .withPermits(1)(Effect.sync(() => (closed = true)))
    .pipe(
      Effect.andThen(
        Effect.suspend(() => {
          const remaining = registry.list()
          const endAll = Effect.forEach(remaining, (registered) => Effect.ignore(end(registry, registered)), {
            concurrency: "unbounded",
            discard: true
          })
          // Some may have been on their way out already.
          return Effect.andThen(
            endAll,
            Effect.forEach(remaining, ({ removed }) => Deferred.await(removed), { discard: true })
          )
        })
      )
    )

  return {
    register: <R>(binding: Described<R>) => {
      const admitted = Effect.suspend(
        (): Effect.Effect<void, RegistrationError, R | Broker> =>
          closed
            ? Effect.fail(new ConnectorClosed({ binding: binding.name }))
            : Effect.tap(admit(registry, hub, { preparationOf, holdsOf }, binding), () =>
                Effect.sync(() => (hasRegistered = true))
              )
      )
      return Effect.uninterruptible(registering.withPermits(1)(admitted))
    },
    unregister,
    destroy: (name) => Effect.flatMap(registry.find(name), (registered) => end(registry, registered)),
    close,
    isClosed: () => closed,
    hasRegistered: () => hasRegistered
  }
}

/** No I/O: the container joins its group in the background. */
const admit = Effect.fnUntraced(function* <R>(
  registry: Registry,
  hub: EventHub,
  { preparationOf, holdsOf }: { readonly preparationOf: PreparationOf; readonly holdsOf: HoldsOf },
  { name, definition }: Described<R>
) {
  const cluster = yield* Effect.result(Clusters.get(definition.cluster))
  const issues = [
    ...Validation.problems(definition),
    ...Validation.memberOnHost(definition, yield* Hostname),
    ...(Result.isFailure(cluster) ? [Validation.unknownCluster(cluster.failure)] : [])
  ]
  if (issues.length > 0 || Result.isFailure(cluster)) {
    return yield* new ConfigurationValidation({ binding: name, issues })
  }
  if (registry.get(BindingKey.of(definition)) !== undefined) {
    return yield* new BindingAlreadyExists({ binding: BindingKey.label(definition) })
  }
  const conflicts = Validation.conflicts(
    definition,
    registry.list().map(({ container }) => container.definition)
  )
  if (conflicts.length > 0) return yield* new ConfigurationValidation({ binding: name, issues: conflicts })
  const scope = yield* Scope.make()
  const broker = cluster.success
  const container = yield* Scope.provide(Container.make(definition, broker, hub, preparationOf(broker)), scope)
  registry.add({ container, scope, removed: Deferred.makeUnsafe() })
  if (holdsOf !== undefined) yield* container.hold(holdsOf(definition))
  if (definition.autoStartup) yield* Effect.orDie(container.start)
})

/**
 * Goes on when the caller does not wait: it may be interrupted, or run inside a handler of the binding. A broker that is away must not hold it up: the producer of copies
 * closes within what the stop has left.
 */
const remove = Effect.fnUntraced(function* (registry: Registry, registered: Registered) {
  const key = BindingKey.of(registered.container.definition)
  yield* awaitAtMost(Scope.close(registered.scope, Exit.void), registered.container.releaseMillis()).pipe(
    Effect.andThen(Effect.sync(() => registry.remove(registered))),
    Effect.andThen(Deferred.succeed(registered.removed, undefined)),
    Effect.uninterruptible,
    Effect.forkDetach({ startImmediately: true })
  )
  if ((yield* CurrentHandler) !== key) yield* Deferred.await(registered.removed)
})

const end = (registry: Registry, registered: Registered) =>
  Effect.onExit(registered.container.destroy, (exit) =>
    // It was refused because the binding is being destroyed already.
    Exit.isFailure(exit) && !Exit.hasInterrupts(exit) ? Effect.void : remove(registry, registered)
  )
