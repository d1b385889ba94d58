/**
 * Statements beside the insert that a writer runs on a connection that it knows only as a function. They tell whether that is in a transaction: a pool, a client
 * before BEGIN and one behind COMMIT would all run the insert by itself, and the event would be there although its data is not.
 */
import * as Effect from "effect/Effect"
import { NotInTransaction, type OutboxStoreError } from "../../OutboxError.ts"
import type { Dialect } from "./dialect.ts"
import type { InsertStatement } from "./insertStatement.ts"
import type { TableNames } from "./tableNames.ts"

const savepoint = "eventbus_outbox"

/**
 * Each fails outside of a transaction. PostgreSQL: the lock is the one that the insert takes, and needs no other privilege. MySQL and MariaDB: outside of a
 * transaction, a savepoint ends with its own statement.
 */
const proofs = (dialect: Dialect, { table }: TableNames): ReadonlyArray<string> =>
  dialect.name === "pg"
    ? [`LOCK TABLE ${table} IN ROW EXCLUSIVE MODE`]
    : [`SAVEPOINT ${savepoint}`, `RELEASE SAVEPOINT ${savepoint}`]

const detail =
  "the connection is in none. Pass the transaction itself, not a pool or a client without BEGIN, and write before it commits"

/** Fails with `NotInTransaction` when the connection is in no transaction, and as the statement does when it fails for another reason. */
export const proveTransaction = (
  dialect: Dialect,
  names: TableNames,
  execute: (text: string, params: ReadonlyArray<unknown>) => Effect.Effect<unknown, OutboxStoreError>
): Effect.Effect<void, NotInTransaction | OutboxStoreError> =>
  Effect.forEach(proofs(dialect, names), (text) => execute(text, []), { discard: true }).pipe(
    Effect.catch((error): Effect.Effect<void, NotInTransaction | OutboxStoreError> => {
      const words = wordsOf(error.cause)
      if (refusal.test(words)) return Effect.fail(new NotInTransaction({ operation: "A write to the outbox", detail }))
      return unprepared.test(words) ? Effect.void : Effect.fail(error)
    })
  )

/** PostgreSQL 25P01 (no active SQL transaction), MySQL 1305 (the savepoint does not exist), and the words of clients that know that their transaction has ended. */
const refusal = new RegExp(
  `\\b25P01\\b|\\b${savepoint} does not exist\\b|\\b(transaction|query runner)\\b.*\\balready (closed|committed|complete|released|rolled back)\\b`,
  "i"
)

/** A client that prepares every statement cannot ask MySQL 8, which prepares none about savepoints. */
const unprepared = /\bER_UNSUPPORTED_PS\b/

/** Codes and messages of an error and its causes: clients wrap the error of the database in their own. */
const wordsOf = (error: unknown): string => {
  const words: Array<string> = []
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    words.push(String(Reflect.get(at, "code")), at.message)
  }
  return words.join(" ")
}

/** Wakes the relays that listen, when the transaction commits. */
export const notifyStatement = ({ channel }: TableNames): InsertStatement => ({
  text: "SELECT pg_notify($1, '')",
  params: [channel]
})
