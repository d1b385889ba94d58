/**
 * Names of events and aggregates. A type needs only a name: a string, a typed constant, or an object from `of`.
 */

/** The kind of an event, such as `OrderPlaced`. */
export interface EventType {
  readonly name: string
}

/** The kind of thing an event is about, such as `order`. */
export interface AggregateType {
  readonly name: string
}

/** A type given as an object with a name or as its bare name. */
export type TypeName = string | EventType | AggregateType

/** The bare name of a type. */
export const nameOf = (type: TypeName): string => (typeof type === "string" ? type : type.name)

/** A type whose name is known only at run time (the seed's `StringEventType`, `StringAggregateType`). */
export const of = <const Name extends string>(name: Name): { readonly name: Name } => Object.freeze({ name })

/**
 * Several types at once, as constants: `const OrderEvents = EventType.all("OrderPlaced", "OrderPaid")`, then `OrderEvents.OrderPaid`.
 */
export const all = <const Names extends ReadonlyArray<string>>(
  ...names: Names
): { readonly [Name in Names[number]]: { readonly name: Name } } =>
  Object.freeze(Object.fromEntries(names.map((name) => [name, of(name)]))) as {
    readonly [Name in Names[number]]: { readonly name: Name }
  }

/** The aggregate type of events that name none. */
export const anyAggregateType = of("__GLOBAL__")
