/**
 * The registered bindings, by `{cluster}:{binding}` (connector seed §4.2).
 */
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { AmbiguousBinding, BindingNotFound } from "../../EventBusError.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import type { Container } from "./container.ts"

export interface Registered {
  readonly container: Container
  /** The scope of the binding. It outlives the consumers: it holds the producer of copies. */
  readonly scope: Scope.Closeable
  /** Done once nothing of the binding is left. */
  readonly removed: Deferred.Deferred<void>
}

interface Named {
  readonly container: { readonly definition: BindingKey.Named }
}

export interface Registry<R extends Named = Registered> {
  readonly get: (key: string) => R | undefined
  /** Finds a binding by key, or by its plain name when only one binding has that name. */
  readonly find: (name: string) => Effect.Effect<R, BindingNotFound | AmbiguousBinding>
  readonly list: () => ReadonlyArray<R>
  readonly add: (registered: R) => void
  readonly remove: (registered: R) => void
}

export const make = <R extends Named = Registered>(): Registry<R> => {
  const byKey = new Map<string, R>()
  const list = () => Array.from(byKey.values())
  const keyOf = ({ container }: R) => BindingKey.of(container.definition)
  const find = (name: string) => {
    const exact = byKey.get(name)
    if (exact !== undefined) return Effect.succeed(exact)
    const [found, ...others] = list().filter(({ container }) => container.definition.name === name)
    if (found === undefined) {
      const known = list().map(({ container }) => BindingKey.label(container.definition))
      return Effect.fail(new BindingNotFound({ binding: name, known }))
    }
    return others.length === 0
      ? Effect.succeed(found)
      : Effect.fail(new AmbiguousBinding({ binding: name, keys: [found, ...others].map(keyOf) }))
  }
  return {
    get: (key) => byKey.get(key),
    find: (name) => Effect.suspend((): ReturnType<Registry<R>["find"]> => find(name)),
    list,
    add: (registered) => byKey.set(keyOf(registered), registered),
    remove: (registered) => byKey.delete(keyOf(registered))
  }
}
