/**
 * One process of the application under test: its own connector with all bindings, and clients with recognisable ids.
 */
import { type Binding, Broker, EventBusConnector } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { EventRecorder } from "../trail/eventRecorder.ts"

export interface Process {
  readonly connector: EventBusConnector.EventBusConnector["Service"]
  /** Client ids of a binding's open sessions, in the order in which they were opened. */
  readonly sessions: (binding: string) => ReadonlyArray<string>
  /** Whether the process owns a partition. */
  readonly hasPartitions: Effect.Effect<boolean>
  /** A graceful shutdown. */
  readonly close: Effect.Effect<void>
}

interface ProcessOptions {
  /** Prefix of all client ids. */
  readonly name: string
  /** Seed of random choices, such as jitter. */
  readonly seed: number
  readonly recorder: EventRecorder
}

/** Starts a process that lives until it is closed, or as long as the scope. */
export const start = Effect.fnUntraced(function* <R>(
  bindings: ReadonlyArray<Binding.Binding<R>>,
  options: ProcessOptions
): Effect.fn.Return<
  Process,
  Effect.Error<ReturnType<EventBusConnector.EventBusConnector["Service"]["register"]>>,
  R | Broker.Broker | Scope.Scope
> {
  const broker = yield* Broker.Broker
  const scope = yield* Scope.fork(yield* Effect.scope)
  const context = yield* Layer.buildWithScope(EventBusConnector.layer, scope)
  const connector = Context.get(context, EventBusConnector.EventBusConnector)
  let assigned = 0
  const listen = connector.subscribe((event) => {
    if (event._tag === "PartitionAssigned") assigned++
    options.recorder.record(event)
  })
  yield* Scope.provide(listen, scope)
  const open = new Map<string, Set<string>>()
  for (const binding of bindings) {
    const sessions = new Set<string>()
    open.set(binding.name, sessions)
    yield* connector
      .register(binding)
      .pipe(
        Effect.provideService(Broker.Broker, named(broker, `${options.name}-${binding.name}`, sessions)),
        Random.withSeed(options.seed)
      )
  }
  return {
    connector,
    sessions: (binding) => Array.from(open.get(binding) ?? []),
    hasPartitions: Effect.sync(() => assigned > 0),
    close: Scope.close(scope, Exit.void)
  }
})

/** The broker, with client ids that begin with `name`. */
const named = (broker: Broker.Broker["Service"], name: string, sessions: Set<string>): Broker.Broker["Service"] => {
  let opened = 0
  return {
    ...broker,
    consumer: (options) =>
      Effect.suspend(() => {
        const clientId = `${name}-consumer-${++opened}`
        const noted = Effect.acquireRelease(
          Effect.sync(() => sessions.add(clientId)),
          () => Effect.sync(() => sessions.delete(clientId))
        )
        return Effect.andThen(noted, broker.consumer({ ...options, clientId }))
      }),
    producer: (options) => broker.producer({ ...options, clientId: `${name}-producer` }),
    reader: (options) => broker.reader({ ...options, clientId: `${name}-reader` })
  }
}
