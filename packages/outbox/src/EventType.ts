/** Names of events and aggregates. A type needs only a name: text, a typed constant, or an object from `of` (outbox seed §6). */
import { anyAggregateTypeName } from "./internal/base/typeName.ts"

export type { AggregateType, EventType, TypeName } from "./internal/base/typeName.ts"

/** A type whose name is known only at run time (`StringEventType` and `StringAggregateType` in outbox seed §6). */
export const of = <const Name extends string>(name: Name): { readonly name: Name } => Object.freeze({ name })

/** Several types as constants: after `const OrderEvents = EventType.all("OrderPlaced", "OrderPaid")`, use `OrderEvents.OrderPaid`. */
export const all = <const Names extends ReadonlyArray<string>>(
  ...names: Names
): { readonly [Name in Names[number]]: { readonly name: Name } } =>
  Object.freeze(Object.fromEntries(names.map((name) => [name, of(name)]))) as {
    readonly [Name in Names[number]]: { readonly name: Name }
  }

/** The aggregate type of events that name none: `__GLOBAL__`. */
export const anyAggregateType: { readonly name: typeof anyAggregateTypeName } = of(anyAggregateTypeName)
