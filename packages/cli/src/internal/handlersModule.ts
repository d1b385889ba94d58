/**
 * The module with a program's handlers, as `--handlers` names it.
 */
import { Handlers } from "@eventbus/config"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Application from "../Application.ts"
import { type CommandFailed, refuse } from "./failures.ts"
import * as UserModule from "./userModule.ts"

export const flag = Flag.String("handlers").pipe(Flag.withMetavar("module"))

const shapes =
  "export default Application.make({ handlers, layer, dryRun }), or export `handlers`: Handlers.make({ ... }), or functions by name"

/** Imports the module and reads its exports. */
export const load = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<Application.Application, CommandFailed, Path.Path> {
  const application = read(yield* UserModule.load(path))
  return application ?? (yield* refuse(`${path} has no handlers: it should ${shapes}`))
})

const read = (module: unknown): Application.Application | undefined => {
  if (!Predicate.isObject(module)) return undefined
  if (Application.isApplication(module["default"])) return module["default"]
  const handlers = module["handlers"]
  if (isHandlers(handlers)) return Application.make({ handlers })
  return isFunctions(handlers) ? Application.make({ handlers: Handlers.make(handlers) }) : undefined
}

const isHandlers = (value: unknown): value is Handlers.Handlers<never> =>
  Predicate.hasProperty(value, "byName") && value.byName instanceof Map

type Functions = Record<string, (delivery: unknown) => Effect.Effect<unknown, unknown>>

const isFunctions = (value: unknown): value is Functions =>
  Predicate.isObject(value) && Object.values(value).every(Predicate.isFunction)
