/**
 * An event: its payload, and what is known about it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as EventType from "./EventType.ts"

/** The facts about an event. */
export interface EventMetadata<Name extends string = string> {
  /** The name of its type. */
  readonly eventType: Name
  /** The part of the program that published it, such as `ChangePassword`. Empty where the message does not say. */
  readonly eventSource: string
  /** When it was published, in epoch milliseconds. */
  readonly eventTimestamp: number
  /** Ties events together, and is the key of the message, so that they stay in order. A UUID by default. */
  readonly correlationId: string
}

/** An event of a type. */
export interface BaseEvent<Name extends string, out T> {
  /** The facts about it. */
  readonly metadata: EventMetadata<Name>
  /** Its content. */
  readonly payload: T
}

/** The events of one of several types: a union to match on `metadata.eventType`. */
export type Of<T extends EventType.Any> =
  T extends EventType.EventType<infer Name, infer A> ? BaseEvent<Name, A> : never

/** An event of now. `correlationId` is a generated UUID by default. */
export const make = <Name extends string, T>(
  type: EventType.EventType<Name, T>,
  payload: NoInfer<T>,
  about: { readonly eventSource: string; readonly correlationId?: string }
): Effect.Effect<BaseEvent<Name, T>> =>
  Effect.map(Clock.currentTimeMillis, (eventTimestamp) => {
    const { eventSource, correlationId = globalThis.crypto.randomUUID() } = about
    return { metadata: { eventType: type.name, eventSource, eventTimestamp, correlationId }, payload }
  })
