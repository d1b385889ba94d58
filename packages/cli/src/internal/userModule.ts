/**
 * Modules of the user that flags name by their path, such as `--handlers` and `--outbox`.
 */
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import { CommandFailed, exitCodes } from "./failures.ts"

/** The failure of a module or a package, by the name that the user knows it by. */
export const cannotBeLoaded = (name: string) => (error: unknown) =>
  new CommandFailed({
    message: `${name} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
    code: exitCodes.unavailable
  })

/** Imports the module. Nothing is known of its exports. */
export const load = Effect.fnUntraced(function* (path: string): Effect.fn.Return<unknown, CommandFailed, Path.Path> {
  const paths = yield* Path.Path
  const url = yield* Effect.mapError(paths.toFileUrl(paths.resolve(path)), cannotBeLoaded(path))
  return yield* Effect.tryPromise({ try: (): Promise<unknown> => import(url.href), catch: cannotBeLoaded(path) })
})
