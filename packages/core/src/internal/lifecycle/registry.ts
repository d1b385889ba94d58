/**
 * The bindings that are registered, by `{cluster}:{binding}` (connector seed §4.2). Owns who is in it.
 */
import type { Deferred, Scope } from "effect"
import { Effect } from "effect"
import { AmbiguousBinding, BindingNotFound } from "../../EventBusError.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import type { Container } from "./container.ts"

export interface Registered {
  readonly container: Container
  /** What outlives the consumers: the dead letter producer. */
  readonly scope: Scope.Closeable
  /** Nothing of it is left. */
  readonly removed: Deferred.Deferred<void>
}

export interface Registry {
  readonly get: (key: string) => Registered | undefined
  /** By key, or by the plain name where that is one binding's. */
  readonly find: (name: string) => Effect.Effect<Registered, BindingNotFound | AmbiguousBinding>
  readonly list: () => ReadonlyArray<Registered>
  readonly add: (registered: Registered) => void
  readonly remove: (registered: Registered) => void
}

export const make = (): Registry => {
  const byKey = new Map<string, Registered>()
  const list = () => Array.from(byKey.values())
  const keyOf = ({ container }: Registered) => BindingKey.of(container.definition)
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
    find: (name) => Effect.suspend((): ReturnType<Registry["find"]> => find(name)),
    list,
    add: (registered) => byKey.set(keyOf(registered), registered),
    remove: (registered) => byKey.delete(keyOf(registered))
  }
}
