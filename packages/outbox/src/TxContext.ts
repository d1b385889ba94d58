/**
 * The transaction that a write joins, and the hooks that run when it has ended (outbox seed §3).
 *
 * There are two kinds of transaction. One is opened by Effect's `sql.withTransaction`. The other is foreign (a plain `pg` client,
 * Drizzle, Kysely), and `join` or `transaction` make it known to the fiber. When a fiber has both, the foreign one is used.
 */
import { UserFunction } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import { logText } from "./internal/base/failureText.ts"
import { logError } from "./internal/base/log.ts"
import { failed } from "./internal/store/context.ts"
import { NotInTransaction, OutboxStoreError, RollbackHookUnsupported } from "./OutboxError.ts"

/** Runs one statement on the transaction's own connection. */
export type Execute = (text: string, params: ReadonlyArray<unknown>) => Effect.Effect<unknown, OutboxStoreError>

/** A transaction that Effect SQL does not own. */
interface ForeignTransaction {
  readonly execute: Execute
  readonly onCommit: Array<Effect.Effect<void>>
  readonly onRollback: Array<Effect.Effect<void>>
}

const Foreign = Context.Reference<ForeignTransaction | undefined>("@eventbus/outbox/TxContext/Foreign", {
  defaultValue: () => undefined
})

/** One `afterRollback` hook. */
interface RollbackHook {
  readonly effect: Effect.Effect<void>
  /** The outermost transaction has committed, and no savepoint around the hook has rolled back. */
  isCommitted: boolean
}

/** The hooks of one `withTransaction` of this module. */
interface RollbackHooks {
  /** The connection of its transaction. */
  readonly connection: object | undefined
  readonly registered: Array<RollbackHook>
  /** False once it has ended. */
  isOpen: boolean
}

const CurrentRollbackHooks = Context.Reference<RollbackHooks | undefined>("@eventbus/outbox/TxContext/RollbackHooks", {
  defaultValue: () => undefined
})

/** The connection of this client's transaction that the fiber is in. */
const connectionOf = (sql: SqlClient.SqlClient): Effect.Effect<object | undefined> =>
  Effect.map(Effect.serviceOption(sql.transactionService), (found) => Option.getOrUndefined(found)?.[0])

/** The hooks of that transaction; undefined when `sql.withTransaction` opened it, so that nobody would learn of its rollback. */
const hooksOf = (sql: SqlClient.SqlClient): Effect.Effect<RollbackHooks | undefined> =>
  Effect.flatMap(CurrentRollbackHooks, (hooks) =>
    Effect.map(connectionOf(sql), (connection) =>
      hooks?.isOpen === true && hooks.connection === connection ? hooks : undefined
    )
  )

/** Notes a hook. A plain savepoint around it may roll back unseen: then it is the commit that does not reach the hook. */
const register = (sql: SqlClient.SqlClient, hooks: RollbackHooks, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const hook = { effect, isCommitted: false }
    hooks.registered.push(hook)
    return sql.afterCommit(
      Effect.sync(() => {
        hook.isCommitted = true
      })
    )
  })

/** The present transaction. */
export class TxContext extends Context.Service<
  TxContext,
  {
    /** Whether the fiber is in a transaction. */
    readonly isTransactionActive: Effect.Effect<boolean>
    /** Runs statements on the connection of the business statements. */
    readonly currentConnection: Effect.Effect<Execute, NotInTransaction>
    /** Runs the effect once the outermost transaction has committed. It never runs after a rollback, a savepoint's included. */
    readonly afterCommit: (effect: Effect.Effect<void>) => Effect.Effect<void, NotInTransaction>
    /**
     * Runs the effect once the transaction, or the savepoint around this call, has rolled back. Effect's own `sql.withTransaction` has no
     * such hook: where it opened the transaction, the call fails with `RollbackHookUnsupported`; where it opened the savepoint, the effect
     * runs after the transaction. `TxContext.withTransaction` adds the hook.
     */
    readonly afterRollback: (
      effect: Effect.Effect<void>
    ) => Effect.Effect<void, NotInTransaction | RollbackHookUnsupported>
  }
>()("@eventbus/outbox/TxContext") {}

/** The service for a fiber in a foreign transaction, which comes first, and in one of `own`. */
const foreignOr = (own: TxContext["Service"]): TxContext["Service"] => {
  const either = <A, E>(
    foreign: (tx: ForeignTransaction) => Effect.Effect<A>,
    otherwise: Effect.Effect<A, E>
  ): Effect.Effect<A, E> =>
    Effect.flatMap(Foreign, (tx): Effect.Effect<A, E> => (tx === undefined ? otherwise : foreign(tx)))
  return TxContext.of({
    isTransactionActive: either(() => Effect.succeed(true), own.isTransactionActive),
    currentConnection: either(({ execute }) => Effect.succeed(execute), own.currentConnection),
    afterCommit: (effect) => either((tx) => Effect.sync(() => void tx.onCommit.push(effect)), own.afterCommit(effect)),
    afterRollback: (effect) =>
      either((tx) => Effect.sync(() => void tx.onRollback.push(effect)), own.afterRollback(effect))
  })
}

const outside = (operation: string) => Effect.fail(new NotInTransaction({ operation }))

/** Joins foreign transactions alone, for a program without a `SqlClient`. */
export const foreignOnly: TxContext["Service"] = foreignOr({
  isTransactionActive: Effect.succeed(false),
  currentConnection: outside("currentConnection"),
  afterCommit: () => outside("afterCommit"),
  afterRollback: () => outside("afterRollback")
})

/** Joins the transactions of the `SqlClient`, and foreign ones. */
export const layer: Layer.Layer<TxContext, never, SqlClient.SqlClient> = Layer.effect(
  TxContext,
  Effect.map(SqlClient.SqlClient, (sql) => {
    const inSql = Effect.map(connectionOf(sql), (connection) => connection !== undefined)
    const execute: Execute = (text, params) => Effect.catch(sql.unsafe(text, params).raw, failed(sql, "insert"))
    const inside = <A, E>(operation: string, own: Effect.Effect<A, E>): Effect.Effect<A, E | NotInTransaction> =>
      Effect.flatMap(inSql, (active): Effect.Effect<A, E | NotInTransaction> => (active ? own : outside(operation)))
    return foreignOr({
      isTransactionActive: inSql,
      currentConnection: inside("currentConnection", Effect.succeed(execute)),
      afterCommit: (effect) => inside("afterCommit", sql.afterCommit(effect)),
      afterRollback: (effect) =>
        inside(
          "afterRollback",
          Effect.flatMap(hooksOf(sql), (hooks) =>
            hooks === undefined
              ? Effect.fail(new RollbackHookUnsupported({ operation: "afterRollback" }))
              : register(sql, hooks, effect)
          )
        )
    })
  })
)

const runAll = (effects: ReadonlyArray<Effect.Effect<void>>): Effect.Effect<void> =>
  Effect.forEach(
    effects,
    (effect) =>
      Effect.catchCause(
        UserFunction.callIsolated("hook", () => effect),
        (cause) =>
          logError(
            `outbox: a hook failed after its transaction ended; the transaction is not affected: ${logText(cause)}`
          )
      ),
    { discard: true }
  )

/**
 * `sql.withTransaction` with `afterRollback` hooks. A nested call is a savepoint with hooks of its own. Inside of a plain `sql.withTransaction`
 * it has no hooks, since nobody would learn of that one's rollback.
 */
export const withTransaction = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError.SqlError, R | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const parent = yield* hooksOf(sql)
    const outer = yield* connectionOf(sql)
    if (outer !== undefined && parent === undefined) return yield* sql.withTransaction(self)
    let hooks: RollbackHooks | undefined
    const withHooks = Effect.flatMap(connectionOf(sql), (connection) => {
      hooks = { connection, registered: [], isOpen: true }
      return Effect.provideService(self, CurrentRollbackHooks, hooks)
    })
    return yield* sql.withTransaction(withHooks).pipe(
      Effect.onExit((exit) => {
        if (hooks === undefined) return Effect.void
        hooks.isOpen = false
        if (Exit.isSuccess(exit) && parent !== undefined) {
          parent.registered.push(...hooks.registered)
          return Effect.void
        }
        const rolledBack = hooks.registered.filter((hook) => Exit.isFailure(exit) || !hook.isCommitted)
        return runAll(rolledBack.map(({ effect }) => effect))
      })
    )
  })

/** A foreign transaction under the caller's control. The caller says how it ended. */
export interface JoinedTransaction {
  /** Runs an effect whose writes go into the foreign transaction. */
  readonly run: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Run it after COMMIT has succeeded: the hot path fires. Without it the poller delivers, later. */
  readonly committed: Effect.Effect<void>
  /** Run it after a rollback: `afterRollback` hooks fire. */
  readonly rolledBack: Effect.Effect<void>
}

/**
 * Joins a transaction that other code opened and will end. `query` runs a statement on its connection, as `client.query` of `pg` does;
 * its result is ignored, and a rejection fails the write with `OutboxStoreError`.
 */
export const join = (
  query: (text: string, params: ReadonlyArray<unknown>) => PromiseLike<unknown>
): JoinedTransaction => {
  const tx = foreign((text, params) =>
    Effect.tryPromise({
      try: async () => query(text, params),
      catch: (cause) => new OutboxStoreError({ operation: "insert", retryable: false, cause })
    })
  )
  return {
    run: (self) => Effect.provideService(self, Foreign, tx),
    committed: Effect.suspend(() => runAll(tx.onCommit.splice(0))),
    rolledBack: Effect.suspend(() => runAll(tx.onRollback.splice(0)))
  }
}

const foreign = (execute: Execute): ForeignTransaction => ({ execute, onCommit: [], onRollback: [] })

/**
 * Runs an effect in a transaction on the caller's connection: BEGIN, the effect, COMMIT, or ROLLBACK when it fails, dies or is
 * interrupted. Hooks run afterwards. For clients that have no transactions in Effect.
 */
export const transaction =
  (execute: Execute) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | OutboxStoreError, R> =>
    Effect.suspend(() => {
      const tx = foreign(execute)
      return Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          yield* execute("BEGIN", [])
          const exit = yield* Effect.exit(restore(Effect.provideService(self, Foreign, tx)))
          const ended = yield* Effect.exit(execute(Exit.isSuccess(exit) ? "COMMIT" : "ROLLBACK", []))
          const committed = Exit.isSuccess(exit) && Exit.isSuccess(ended)
          yield* runAll(committed ? tx.onCommit : tx.onRollback)
          if (Exit.isSuccess(exit) && Exit.isFailure(ended)) return yield* Effect.failCause(ended.cause)
          return yield* exit
        })
      )
    })
