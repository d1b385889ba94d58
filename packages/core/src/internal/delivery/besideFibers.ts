/**
 * Fibers that work beside the loop of a partition. Nobody joins them one by one, so one watcher for all of them reports the first that dies: the session ends then, and
 * the records that the fiber had are handled again (ruling 86). The watcher costs nothing per record.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import type { ConsumerContext } from "./consumerContext.ts"

/** The fibers end with the scope. */
export const make = Effect.fnUntraced(function* ({
  onDefect
}: Pick<ConsumerContext<unknown>, "onDefect">): Effect.fn.Return<FiberSet.FiberSet<void>, never, Scope.Scope> {
  const fibers = yield* FiberSet.make<void>()
  yield* Effect.forkScoped(Effect.catchDefect(FiberSet.join(fibers), onDefect))
  return fibers
})
