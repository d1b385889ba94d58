/** Runs the writer hooks that may not fail the write. */
import { UserFunction } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { logText } from "../base/failureText.ts"
import { logError } from "../base/log.ts"

/** The hooks whose failures are only logged. */
export type HookName = "afterWrite" | "afterCommit" | "afterRollback"

type Hooks<Events> = { readonly [Name in HookName]?: (events: Events) => Effect.Effect<void, unknown> }

/** The longest time of a hook behind its transaction. Its caller waits for it there, and cannot be interrupted. */
const timeout = "30 seconds"

/** Hooks that run others one by one, each of which has the limit for itself. */
const combined = new WeakSet<object>()

/** Notes a hook that runs others. */
export const noteCombined = <Hook extends object>(hook: Hook): Hook => {
  combined.add(hook)
  return hook
}

/**
 * Runs one hook, if there is one. Any failure or defect in it is logged (ruling 45). `afterWrite` has no limit of its own: it uses the connection of the transaction, so
 * the transaction may not go on without it.
 */
export const runHook = <Events>(hook: Hooks<Events>, name: HookName, events: Events): Effect.Effect<void> => {
  const what = `${name} hook`
  const call = () => hook[name]?.(events) ?? Effect.void
  const run =
    name === "afterWrite" || combined.has(hook)
      ? UserFunction.callIsolated(what, call)
      : UserFunction.runBounded(what, UserFunction.callEffect(what, call), { timeout })
  return Effect.catchCause(run, (cause) =>
    logError(`outbox: ${what} failed; the write is not affected: ${logText(cause)}`)
  )
}
