/**
 * The idempotency store of a run, which all processes share, as each of them reaches it: a killed process reaches nothing.
 */
import { IdempotencyStore } from "@eventbus/core"
import { Context, Effect, Layer } from "effect"
import type { History } from "../history/History.ts"

type Store = IdempotencyStore.IdempotencyStore["Service"]

export const make = Effect.map(
  Layer.build(Layer.fresh(IdempotencyStore.layerMemory())),
  (context): Store => Context.get(context, IdempotencyStore.IdempotencyStore)
)

/** `changeKey` plants a bug in the keys. */
export const ofProcess = (
  store: Store,
  history: History,
  process: string,
  changeKey: (key: string) => string = (key) => key
): Store => {
  const alive = <A>(operation: "begin" | "complete" | "abandon" | "renew", call: Effect.Effect<A, never>) =>
    Effect.suspend(
      (): Effect.Effect<A, IdempotencyStore.IdempotencyStoreError> =>
        history.isKilled(process)
          ? Effect.fail(
              new IdempotencyStore.IdempotencyStoreError({
                ...{ store: store.name, operation, retryable: false },
                cause: new Error("this process was killed")
              })
            )
          : call
    )
  return {
    name: store.name,
    begin: (key, options) => alive("begin", Effect.orDie(store.begin(changeKey(key), options))),
    lookUp: () => Effect.succeed({ _tag: "Free" }),
    complete: (token, options) => alive("complete", Effect.orDie(store.complete(token, options))),
    abandon: (token) => alive("abandon", Effect.orDie(store.abandon(token))),
    renew: (token, options) => alive("renew", Effect.orDie(store.renew(token, options)))
  }
}
