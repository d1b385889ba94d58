/**
 * The module with a program's outbox store, as `--outbox` names it.
 */
import { type Audit, UserFunction } from "@eventbus/core"
import type { OutboxStore } from "@eventbus/outbox"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import { CommandFailed, exitCodes, refuse } from "../failures.ts"
import * as UserModule from "../userModule.ts"

export const flag = Flag.String("outbox").pipe(
  Flag.withMetavar("module"),
  Flag.withDescription("The module whose default export is a layer with the outbox's store and its database")
)

const shape =
  "it should `export default` a Layer that provides OutboxStore and requires nothing, such as OutboxStore.layer().pipe(Layer.provide(database))"

/** The package of the outbox, which only these commands need: a project without an outbox does not install it. */
export const outboxPackage = Effect.tryPromise({
  try: () => import("@eventbus/outbox"),
  catch: UserModule.cannotBeLoaded("@eventbus/outbox")
})

/** Imports the module and reads its export. */
const load = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<Layer.Layer<unknown, unknown>, CommandFailed, Path.Path> {
  const module = yield* UserModule.load(path)
  const exported = Predicate.isObject(module) ? module["default"] : undefined
  return Layer.isLayer(exported)
    ? (exported as Layer.Layer<unknown, unknown>)
    : yield* refuse(`${path} has no outbox: ${shape}`)
})

const longestOpening = "30 seconds"
const longestClosing = "5 seconds"

/** Everything that the module provides: the store, and the audit log where there is one. */
type Provided = Context.Context<OutboxStore.OutboxStore | Audit.Audit>

/** Opens the outbox of a module, uses it, and closes it, whatever its database does meanwhile. */
export const withStore = Effect.fnUntraced(function* <A, R>(
  path: string,
  use: (provided: Provided) => Effect.Effect<A, CommandFailed, R>
): Effect.fn.Return<A, CommandFailed, R | Path.Path> {
  const layer = yield* load(path)
  const { OutboxError, OutboxStore } = yield* outboxPackage
  const opening = (scope: Scope.Scope) =>
    UserFunction.runBounded(`opening the outbox of ${path}`, Layer.buildWithScope(layer, scope), {
      timeout: longestOpening
    }).pipe(
      Effect.catchCause((cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
        const error = new OutboxError.OutboxStoreError({
          ...{ operation: "opening the database", retryable: true, cause: Cause.squash(cause) }
        })
        return Effect.fail(new CommandFailed({ message: `${path}: ${error.message}`, code: exitCodes.unavailable }))
      })
    )
  const closing = (scope: Scope.Closeable, exit: Exit.Exit<unknown, unknown>) =>
    UserFunction.runBounded(`closing the outbox of ${path}`, Scope.close(scope, exit), { timeout: longestClosing })
  return yield* Effect.acquireUseRelease(
    Scope.make(),
    (scope) =>
      Effect.flatMap(opening(scope), (context) => {
        // A context is asked by key: the layer of a user's module has no type here.
        const provided = context as Provided
        return Context.getOrUndefined(provided, OutboxStore.OutboxStore) === undefined
          ? refuse(`${path} provides no OutboxStore: ${shape}`)
          : use(provided)
      }),
    (scope, exit) => Effect.ignore(closing(scope, exit))
  )
})
