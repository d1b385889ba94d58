/** Names of events and aggregates, given as text or as an object with a name. */

/** The kind of an event, such as `OrderPlaced`. */
export interface EventType {
  /** 1 to 128 characters. */
  readonly name: string
}

/** The kind of thing that an event is about, such as `order`. */
export interface AggregateType {
  /** 1 to 64 characters. */
  readonly name: string
}

/** A type, given as its bare name or as an object with a name. */
export type TypeName = string | EventType | AggregateType

/** The bare name of a type. */
export const nameOf = (type: TypeName): string => (typeof type === "string" ? type : type.name)

/** The stored aggregate type of events that name none. */
export const anyAggregateTypeName = "__GLOBAL__"
