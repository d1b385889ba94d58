/**
 * The log annotations that name a binding: on every line that is written on its behalf, the broker client's included.
 */
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type { BindingDefinition } from "./bindingDefinition.ts"
import type * as BindingKey from "./bindingKey.ts"

/** `cluster` and `bindingName`. */
export const ofKey = ({ cluster, name }: BindingKey.Named) => ({ cluster, bindingName: name })

/** `cluster`, `bindingName` and `consumerGroup`. */
export const of = (definition: BindingDefinition<unknown>) => ({
  ...ofKey(definition),
  consumerGroup: definition.groupId
})

/** Annotates the lines of an effect with the binding alone, whatever record its caller is about. */
export const only = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  definition: BindingDefinition<unknown>
): Effect.Effect<A, E, R> => Effect.updateService(effect, References.CurrentLogAnnotations, () => of(definition))
