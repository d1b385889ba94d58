/**
 * The transaction that a write joins, and the hooks that run when it has ended (outbox seed §3).
 *
 * There are two kinds of transaction. One is opened by Effect's `sql.withTransaction`. The other is foreign (a plain `pg` client,
 * Drizzle, Kysely), and `join` or `transaction` make it known to the fiber. When a fiber has both, the foreign one is used.
 */
import { UserFunction } from "@eventbus/core"
import { Context, Effect, Exit, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
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

const RollbackHooks = Context.Reference<Array<Effect.Effect<void>> | undefined>(
  "@eventbus/outbox/TxContext/RollbackHooks",
  { defaultValue: () => undefined }
)

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
     * such hook: there it fails with `RollbackHookUnsupported`. `TxContext.withTransaction` adds the hook.
     */
    readonly afterRollback: (
      effect: Effect.Effect<void>
    ) => Effect.Effect<void, NotInTransaction | RollbackHookUnsupported>
  }
>()("@eventbus/outbox/TxContext") {}

/** Joins the transactions of the `SqlClient`, and foreign ones. */
export const layer: Layer.Layer<TxContext, never, SqlClient.SqlClient> = Layer.effect(
  TxContext,
  Effect.map(SqlClient.SqlClient, (sql) => {
    const inSql = Effect.map(Effect.serviceOption(sql.transactionService), (found) => found._tag === "Some")
    const execute: Execute = (text, params) => Effect.catch(sql.unsafe(text, params).raw, failed(sql, "insert"))
    const either = <A, E>(
      operation: string,
      foreign: (tx: ForeignTransaction) => Effect.Effect<A, E>,
      own: Effect.Effect<A, E>
    ): Effect.Effect<A, E | NotInTransaction> =>
      Effect.flatMap(
        Foreign,
        (tx): Effect.Effect<A, E | NotInTransaction> =>
          tx !== undefined
            ? foreign(tx)
            : Effect.flatMap(
                inSql,
                (active): Effect.Effect<A, E | NotInTransaction> =>
                  active ? own : Effect.fail(new NotInTransaction({ operation }))
              )
      )
    return TxContext.of({
      isTransactionActive: Effect.flatMap(Foreign, (tx) => (tx === undefined ? inSql : Effect.succeed(true))),
      currentConnection: either<Execute, never>(
        "currentConnection",
        (tx) => Effect.succeed(tx.execute),
        Effect.succeed(execute)
      ),
      afterCommit: (effect) =>
        either("afterCommit", (tx) => Effect.sync(() => void tx.onCommit.push(effect)), sql.afterCommit(effect)),
      afterRollback: (effect) =>
        either(
          "afterRollback",
          (tx) => Effect.sync(() => void tx.onRollback.push(effect)),
          Effect.flatMap(RollbackHooks, (hooks) =>
            hooks === undefined
              ? Effect.fail(new RollbackHookUnsupported({ operation: "afterRollback" }))
              : Effect.sync(() => void hooks.push(effect))
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

/** `sql.withTransaction` with `afterRollback` hooks. A nested call is a savepoint with hooks of its own. */
export const withTransaction = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError.SqlError, R | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const parent = yield* RollbackHooks
    const hooks: Array<Effect.Effect<void>> = []
    return yield* sql.withTransaction(Effect.provideService(self, RollbackHooks, hooks)).pipe(
      Effect.onExit((exit) => {
        if (Exit.isFailure(exit)) return runAll(hooks)
        parent?.push(...hooks)
        return Effect.void
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
