/**
 * A type of events: its name, which travels in header `event-type`, and its payload.
 */
import * as Kinds from "@eventbus/core/Kinds"
import * as Serde from "@eventbus/core/Serde"
import type * as Schema from "effect/Schema"

/** A type of events. */
export interface EventType<Name extends string, in out T> {
  /** The name, such as `PasswordChanged`. */
  readonly name: Name
  /** Writes and reads the payload. */
  readonly payload: Serde.Serde<T>
}

/** Any type of events. Methods of the serde, so that every type is one. */
export interface Any {
  /** The name. */
  readonly name: string
  /** Writes and reads the payload. */
  readonly payload: Serde.Any
}

/** The payload of a type. */
export type Payload<T extends Any> = T extends EventType<string, infer A> ? A : never

/** A type whose payload is JSON, checked against a schema. Throws `ConfigurationValidation` for an empty name and for what is no schema. */
export const make = <const Name extends string, A, I>(name: Name, schema: Schema.Codec<A, I>): EventType<Name, A> => {
  Kinds.refuse(Kinds.name("EventType.make: name", name))
  return { name, payload: Serde.json(schema) }
}

/** The name by which types are matched: without blanks around it, and without the suffix `Event`, which is optional. `PasswordChangedEvent` is `PasswordChanged`. */
export const normalise = (name: string): string => {
  const trimmed = name.trim()
  return trimmed.length > suffix.length && trimmed.endsWith(suffix) ? trimmed.slice(0, -suffix.length) : trimmed
}

const suffix = "Event"
