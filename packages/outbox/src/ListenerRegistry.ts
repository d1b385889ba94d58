/**
 * The listeners of events: exactly one per `aggregateType:eventType` (outbox seed §11). Use an interceptor for cross-cutting work.
 *
 * The registry is filled at start and only read afterwards.
 */
import { Kinds, UserFunction } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { EventEnvelope } from "./EventEnvelope.ts"
import type { TypeName } from "./EventType.ts"
import { typeName } from "./internal/base/optionKinds.ts"
import { refuse } from "./internal/base/options.ts"
import { anyAggregateTypeName, nameOf } from "./internal/base/typeName.ts"
import { DuplicateListener } from "./OutboxError.ts"

/**
 * Reacts to one event. Delivery is at least once: the same `eventId` may come again after a crash. A listener that fails or dies sends
 * the event to RETRY, or to DEAD after `maxAttempts`. `PoisonEvent` sends it to DEAD at once; `DownstreamUnavailable` counts no attempt.
 */
export type EventListener<R = never> = (event: EventEnvelope) => Effect.Effect<unknown, unknown, R>

/** A listener and its key. `on` builds it. */
export interface Registration<R = never> {
  /** The aggregate type of its events; `__GLOBAL__` for events that name none. */
  readonly aggregateType: string
  /** The type of its events. */
  readonly eventType: string
  /** The listener. */
  readonly listener: EventListener<R>
}

/** The registry of one outbox. */
export class ListenerRegistry extends Context.Service<
  ListenerRegistry,
  {
    /** Adds a listener. Fails with `DuplicateListener` when the key has one already. */
    readonly register: (registration: Registration) => Effect.Effect<void, DuplicateListener>
    /** The listener of the key; undefined when there is none, and then the event is DEAD at once. */
    readonly listenerFor: (aggregateType: string, eventType: string) => EventListener | undefined
  }
>()("@eventbus/outbox/ListenerRegistry") {}

/**
 * A registration. With two arguments: an event type, for events that name no aggregate type (`__GLOBAL__`). With three: an aggregate
 * type and an event type. Throws `InvalidOutboxConfig` for a type that is no name, and a listener that is no function.
 */
export const on: {
  <R = never>(eventType: TypeName, listener: EventListener<R>): Registration<R>
  <R = never>(aggregateType: TypeName, eventType: TypeName, listener: EventListener<R>): Registration<R>
} = <R>(...args: readonly [TypeName, EventListener<R>] | readonly [TypeName, TypeName, EventListener<R>]) => {
  const [aggregateType, eventType, listener] = args.length === 2 ? [anyAggregateTypeName, ...args] : args
  const types = [...typeName("aggregateType", aggregateType), ...typeName("eventType", eventType)]
  refuse("ListenerRegistry", types, Kinds.func("listener", listener))
  return { aggregateType: nameOf(aggregateType), eventType: nameOf(eventType), listener }
}

const registrationKind = Kinds.struct(
  {},
  { aggregateType: Kinds.string, eventType: Kinds.string, listener: Kinds.func },
  "a registration, as `ListenerRegistry.on` makes it"
)

const keyOf = (aggregateType: string, eventType: string): string => `${aggregateType}:${eventType}`

const makeEmpty = Effect.sync(() => {
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
 * Provides listeners with what they require. The fibers that deliver share one context, so it is merged with the listeners' context
 * once, and not for every event.
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
      Effect.updateContext(
        UserFunction.callEffect(`listener ${keyOf(event.aggregateType, event.eventType)}`, () => listener(event)),
        merge
      )
}

/**
 * A registry with these listeners. The layer requires what they require, and fails when two have one key. Throws `InvalidOutboxConfig` for what is no list of
 * registrations.
 */
export const layer = <R = never>(
  registrations: ReadonlyArray<Registration<R>>
): Layer.Layer<ListenerRegistry, DuplicateListener, R> => {
  refuse("ListenerRegistry", Kinds.listOf(registrationKind, "a list of registrations")("registrations", registrations))
  return Layer.effect(
    ListenerRegistry,
    Effect.gen(function* () {
      const registry = yield* makeEmpty
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
}

/** A registry with one listener for every event, such as a relay to a broker. Throws `InvalidOutboxConfig` for a listener that is no function. */
export const layerAll = <R = never>(listener: EventListener<R>): Layer.Layer<ListenerRegistry, never, R> => {
  refuse("ListenerRegistry", Kinds.func("listener", listener))
  return Layer.effect(
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
}
