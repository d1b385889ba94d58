/**
 * Handlers of events, one for each type, and the consumer that gives each event to its handler.
 *
 * ```ts
 * import { EventHandler, EventTopic, EventType } from "@eventbus/messaging"
 * import { Effect, Schema } from "effect"
 *
 * const passwordChanged = EventType.make("PasswordChanged", Schema.Struct({ email: Schema.String }))
 * const users = EventTopic.make("users", [passwordChanged])
 *
 * export const listener = EventHandler.consumer(users, [EventHandler.make(passwordChanged, ({ email }) => Effect.log(email))], {
 *   groupId: "user-events-group"
 * })
 * ```
 */
import * as Kinds from "@eventbus/core/Kinds"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as BaseEvent from "./BaseEvent.ts"
import type { EventTopic } from "./EventTopic.ts"
import * as EventType from "./EventType.ts"
import type { ReceivedMessage } from "./Message.ts"
import * as MessageConsumer from "./MessageConsumer.ts"

/** Handles the events of one type. */
export interface EventHandler<Name extends string, in T, out E = never, out R = never> {
  /** The type of its events. */
  readonly eventType: Name
  /** Handles one event. A failure, a defect or a thrown error is one failed try. */
  readonly handleEvent: (payload: T, event: BaseEvent.EventMetadata) => Effect.Effect<unknown, E, R>
}

/** Any handler of events that fails with `E` and requires `R`. */
export interface Any<out E = unknown, out R = unknown> {
  /** The type of its events. */
  readonly eventType: string
  /** Handles one event. */
  readonly handleEvent: (payload: never, event: BaseEvent.EventMetadata) => Effect.Effect<unknown, E, R>
}

/** No handler has this type of events: its message is dead-lettered, and not tried again. */
export class UnknownEventType extends Schema.TaggedError<UnknownEventType>()("UnknownEventType", {
  /** The type of the event. */
  eventType: Schema.String,
  /** The types that have a handler. */
  known: Schema.Array(Schema.String)
}) {
  /** Repeating cannot help. */
  readonly retryable = false
  override get message(): string {
    return `No handler has event type '${this.eventType}'. Handlers have: ${this.known.join(", ") || "none"}.`
  }
}

/** A handler for a type of events. */
export const make = <Name extends string, T, E = never, R = never>(
  type: EventType.EventType<Name, T>,
  handleEvent: (payload: T, event: BaseEvent.EventMetadata) => Effect.Effect<unknown, E, R>
): EventHandler<Name, T, E, R> => {
  Kinds.refuse(Kinds.func("EventHandler.make: handleEvent", handleEvent))
  return { eventType: type.name, handleEvent }
}

/** Handlers by type. A look-up takes the same time however many there are. */
export interface Registry<E, R> {
  /** The handler of a type, with or without the suffix `Event`. Undefined where there is none. */
  readonly get: (eventType: string) => Any<E, R> | undefined
  /** The types that have a handler. */
  readonly eventTypes: ReadonlyArray<string>
}

/** A map of handlers by type. Throws `ConfigurationValidation` where two handlers have types whose names match. */
export const registry = <E, R>(handlers: ReadonlyArray<Any<E, R>>): Registry<E, R> => {
  const byType = new Map(handlers.map((handler) => [EventType.normalise(handler.eventType), handler]))
  const twice = handlers.filter((handler) => byType.get(EventType.normalise(handler.eventType)) !== handler)
  const allowed = "one handler for each type"
  Kinds.refuse(
    twice.map(({ eventType }) => ({ path: "EventHandler.registry", found: `two for ${eventType}`, allowed }))
  )
  return {
    get: (eventType) => byType.get(EventType.normalise(eventType)),
    eventTypes: handlers.map(({ eventType }) => eventType)
  }
}

/** Gives an event to the handler of its type. Fails with `UnknownEventType` where there is none. */
export const dispatch = <E, R>(
  handlers: Registry<E, R>,
  event: { readonly metadata: BaseEvent.EventMetadata; readonly payload: unknown }
): Effect.Effect<unknown, E | UnknownEventType, R> => {
  const { eventType } = event.metadata
  const handler = handlers.get(eventType)
  return handler === undefined
    ? Effect.fail(new UnknownEventType({ eventType, known: handlers.eventTypes }))
    : handler.handleEvent(event.payload as never, event.metadata)
}

type ErrorOf<H> = H extends Any<infer E, unknown> ? E : never
type ServicesOf<H> = H extends Any<unknown, infer R> ? R : never
type Unhandled<T extends EventType.Any, H extends Any> = Exclude<T["name"], H["eventType"]>

/** The compile error for a topic with types that no handler has shows this name, with the names of the types. */
export interface NoHandlerFor<out Names extends string> {
  /** The types without a handler. */
  readonly noHandlerFor: Names
}

/**
 * A consumer of a topic of events. Its handlers must have every type of the topic, or it does not compile. An event without `correlation-id` or `event-timestamp`, as other
 * publishers send it, has the key and the time of its message.
 */
export const consumer = <T extends EventType.Any, H extends HandlerOf<T>>(
  topic: EventTopic<T>,
  handlers: ReadonlyArray<H> & ([Unhandled<T, H>] extends [never] ? unknown : NoHandlerFor<Unhandled<T, H>>),
  settings: Omit<MessageConsumer.Settings<BaseEvent.Of<T>, ErrorOf<H> | UnknownEventType>, "topics">
): MessageConsumer.MessageConsumer<BaseEvent.Of<T>, ErrorOf<H> | UnknownEventType, ServicesOf<H>> => {
  const all = registry(handlers as ReadonlyArray<Any<ErrorOf<H>, ServicesOf<H>>>)
  return MessageConsumer.make({
    ...settings,
    topics: [topic],
    handle: (message: ReceivedMessage<BaseEvent.Of<T>>) => dispatch(all, whole(message.payload, message))
  })
}

/** A handler of one of the types, with the payload of that type. */
export type HandlerOf<T extends EventType.Any> =
  T extends EventType.EventType<infer Name, infer A> ? EventHandler<Name, A, unknown, unknown> : never

const whole = (
  event: BaseEvent.BaseEvent<string, unknown>,
  { key, timestamp }: Pick<ReceivedMessage<unknown>, "key" | "timestamp">
) => {
  const { correlationId, eventTimestamp, ...metadata } = event.metadata
  return {
    payload: event.payload,
    metadata: {
      ...metadata,
      correlationId: correlationId === "" ? (key ?? "") : correlationId,
      eventTimestamp: eventTimestamp === 0 ? timestamp : eventTimestamp
    }
  }
}
