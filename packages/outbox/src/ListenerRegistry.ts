/**
 * Which listener gets which event: exactly one per `aggregateType:eventType`. Cross-cutting work belongs into an interceptor.
 *
 * Owns the map of listeners; it is filled at start and read from then on.
 */
import { Context, Effect, Layer } from "effect"
import type { EventEnvelope } from "./EventEnvelope.ts"
import { anyAggregateType, nameOf, type TypeName } from "./EventType.ts"
import { DuplicateListener } from "./OutboxError.ts"

/**
 * Reacts to one event. At least once: the same `eventId` may come again after a crash. Failing (or dying) sends the event to RETRY,
 * or to DEAD after `maxAttempts`; `PoisonEvent` sends it to DEAD at once.
 */
export type EventListener<R = never> = (event: EventEnvelope) => Effect.Effect<unknown, unknown, R>

/** A listener and what it listens to. */
export interface Registration<R = never> {
  readonly aggregateType: string
  readonly eventType: string
  readonly listener: EventListener<R>
}

export class ListenerRegistry extends Context.Service<
  ListenerRegistry,
  {
    /** Fails with `DuplicateListener` when the key has one already. */
    readonly register: (registration: Registration) => Effect.Effect<void, DuplicateListener>
    readonly listenerFor: (aggregateType: string, eventType: string) => EventListener | undefined
  }
>()("@eventbus/outbox/ListenerRegistry") {}

export type Shape = ListenerRegistry["Service"]

/** A registration for an event type of any aggregate type that names none (`__GLOBAL__`), or of the given one. */
export const on: {
  <R = never>(eventType: TypeName, listener: EventListener<R>): Registration<R>
  <R = never>(aggregateType: TypeName, eventType: TypeName, listener: EventListener<R>): Registration<R>
} = <R>(...args: readonly [TypeName, EventListener<R>] | readonly [TypeName, TypeName, EventListener<R>]) =>
  args.length === 2
    ? { aggregateType: anyAggregateType.name, eventType: nameOf(args[0]), listener: args[1] }
    : { aggregateType: nameOf(args[0]), eventType: nameOf(args[1]), listener: args[2] }

const keyOf = (aggregateType: string, eventType: string): string => `${aggregateType}:${eventType}`

/** An empty registry. */
export const make: Effect.Effect<Shape> = Effect.sync(() => {
  const listeners = new Map<string, EventListener>()
  return ListenerRegistry.of({
    register: ({ aggregateType, eventType, listener }) =>
      Effect.suspend(() => {
        const key = keyOf(aggregateType, eventType)
        if (listeners.has(key)) return Effect.fail(new DuplicateListener({ key }))
        listeners.set(key, listener)
        return Effect.void
      }),
    listenerFor: (aggregateType, eventType) => listeners.get(keyOf(aggregateType, eventType))
  })
})

/**
 * Gives listeners what they require. The fibers that deliver share one context, so merging it with the listeners' is done once and
 * not for every event.
 */
const providing = <R>(context: Context.Context<R>) => {
  let from: Context.Context<never> | undefined
  let merged = context
  const merge = (current: Context.Context<never>): Context.Context<R> => {
    if (current !== from) {
      from = current
      merged = Context.merge(current, context)
    }
    return merged
  }
  return (listener: EventListener<R>): EventListener =>
    (event) =>
      Effect.updateContext(listener(event), merge)
}

/** A registry with these listeners; what they require is required of the layer. */
export const layer = <R = never>(
  registrations: ReadonlyArray<Registration<R>>
): Layer.Layer<ListenerRegistry, DuplicateListener, R> =>
  Layer.effect(
    ListenerRegistry,
    Effect.gen(function* () {
      const registry = yield* make
      const provide = providing(yield* Effect.context<R>())
      for (const { listener, ...key } of registrations) {
        yield* registry.register({
          ...key,
          listener: provide(listener)
        })
      }
      return registry
    })
  )

/** One listener for everything, such as a relay to a broker. */
export const layerAll = <R = never>(listener: EventListener<R>): Layer.Layer<ListenerRegistry, never, R> =>
  Layer.effect(
    ListenerRegistry,
    Effect.map(Effect.context<R>(), (context) => {
      const provided = providing(context)(listener)
      return ListenerRegistry.of({
        register: ({ aggregateType, eventType }) =>
          Effect.fail(new DuplicateListener({ key: keyOf(aggregateType, eventType) })),
        listenerFor: () => provided
      })
    })
  )
