/** Runs the writer hooks that may not fail the write. */
import { UserFunction } from "@eventbus/core"
import { Effect } from "effect"
import { logText } from "../base/failureText.ts"

/** The hooks whose failures are only logged. */
export type HookName = "afterWrite" | "afterCommit" | "afterRollback"

/** Runs one hook, if there is one. Any failure or defect in it is logged (ruling 45). */
export const runHook = (name: HookName, call: () => Effect.Effect<void, unknown> | undefined): Effect.Effect<void> =>
  UserFunction.callIsolated(`${name} hook`, () => call() ?? Effect.void).pipe(
    Effect.catchCause((cause) =>
      Effect.logError(`outbox: ${name} hook failed; the write is not affected: ${logText(cause)}`)
    )
  )
