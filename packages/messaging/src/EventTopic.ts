/**
 * A topic of events of several types. Header `event-type` of each message names the type of its payload; the value is the payload alone.
 *
 * ```ts
 * import { EventTopic, EventType } from "@eventbus/messaging"
 * import { Schema } from "effect"
 *
 * export const passwordChanged = EventType.make("PasswordChanged", Schema.Struct({ email: Schema.String }))
 * export const userDeleted = EventType.make("UserDeleted", Schema.Struct({ userId: Schema.String }))
 * export const users = EventTopic.make("users", [passwordChanged, userDeleted])
 * ```
 *
 * The header is input: it chooses among the types of the topic. A message of another type, or of none, cannot be read: it is dead-lettered and not tried again.
 */
import type { Header } from "@eventbus/core/ConsumerRecord"
import * as Kinds from "@eventbus/core/Kinds"
import * as Serde from "@eventbus/core/Serde"
import * as Result from "effect/Result"
import type * as BaseEvent from "./BaseEvent.ts"
import * as EventType from "./EventType.ts"
import * as Topic from "./Topic.ts"

/** A topic of events. `T` are its types. */
export interface EventTopic<T extends EventType.Any> extends Topic.Topic<BaseEvent.Of<T>> {
  /** The types of its events. */
  readonly types: ReadonlyArray<T>
}

/** The headers of an event. */
export const headers = {
  /** The name of its type. */
  type: "event-type",
  /** The part of the program that published it. */
  source: "event-source",
  /** When it was published, in epoch milliseconds. */
  timestamp: "event-timestamp",
  /** The id that ties it to other events. */
  correlationId: "correlation-id"
} as const

/** A topic of events. Throws `ConfigurationValidation` for an empty name, for no type, and for two types whose names match. */
export const make = <const Types extends readonly [EventType.Any, ...ReadonlyArray<EventType.Any>]>(
  name: string,
  types: Types
): EventTopic<Types[number]> => {
  const all: ReadonlyArray<Types[number]> = types
  const byName = new Map(all.map((type) => [EventType.normalise(type.name), type]))
  const twice = all.filter((type) => byName.get(EventType.normalise(type.name)) !== type)
  const allowed = "types whose names differ, without the suffix Event"
  Kinds.refuse(twice.map((type) => ({ path: "EventTopic.make: types", found: `${type.name} twice`, allowed })))
  return { ...Topic.make(name, serdeOf(byName)), types: all }
}

const serdeName = "event"

type TypesByName<T extends EventType.Any> = ReadonlyMap<string, T>

const serdeOf = <T extends EventType.Any>(types: TypesByName<T>): Serde.Serde<BaseEvent.Of<T>> => {
  const known = Array.from(types.values(), ({ name }) => name).join(", ")
  const refusal = (name: string | undefined) => {
    const found = name === undefined ? "is missing" : `is '${name}', which is no type of this topic`
    return { serde: serdeName, path: "", detail: `header ${headers.type} ${found}; its types are ${known}` }
  }
  const typeOf = (name: string | undefined) => (name === undefined ? undefined : types.get(EventType.normalise(name)))
  return {
    name: serdeName,
    encode: ({ metadata, payload }) =>
      typeOf(metadata.eventType)?.payload.encode(payload) ??
      Result.fail(new Serde.EncodeFailure(refusal(metadata.eventType))),
    headers: ({ metadata, payload }) => [
      ...(typeOf(metadata.eventType)?.payload.headers?.(payload) ?? []),
      header(headers.type, metadata.eventType),
      header(headers.source, metadata.eventSource),
      header(headers.timestamp, String(metadata.eventTimestamp)),
      header(headers.correlationId, metadata.correlationId)
    ],
    decode: (bytes, source) => {
      const texts = textsOf(source)
      const type = typeOf(texts(headers.type))
      if (type === undefined) return Result.fail(new Serde.DecodeFailure(refusal(texts(headers.type))))
      return Result.map(type.payload.decode(bytes, source), (payload) => {
        const metadata = {
          eventType: type.name,
          eventSource: texts(headers.source) ?? "",
          eventTimestamp: millisOf(texts(headers.timestamp)),
          correlationId: texts(headers.correlationId) ?? ""
        }
        return { metadata, payload } as BaseEvent.Of<T>
      })
    }
  }
}

const header = (key: string, text: string): Header => ({ key, value: encoder.encode(text) })

/** The last header of a name, as text. */
const textsOf =
  (source: Serde.Source | undefined) =>
  (name: string): string | undefined => {
    const found = source?.headers.findLast(({ key }) => key === name)?.value
    return found === undefined || found === null ? undefined : decoder.decode(found)
  }

/** 0 where there is none: the message's own time stands in for it. */
const millisOf = (text: string | undefined): number =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : 0

const encoder = new TextEncoder()
const decoder = new TextDecoder()
