/** The transactions that `outbox.write` takes, by their shapes: nobody installs a client that they do not use. */

/**
 * Runs one statement in the caller's transaction. The SQL has the placeholders of its database: `$1`, `$2` on PostgreSQL, `?` on MySQL and MariaDB. Parameters are texts, numbers,
 * `Buffer`s and null. The promise rejects when the statement fails; its value is not looked at.
 */
export type SqlFunction = (sql: string, params: ReadonlyArray<unknown>) => PromiseLike<unknown>

/** A client with `query`, in its transaction: that of `pg` behind BEGIN, a connection of `mysql2/promise`, the `EntityManager` or `QueryRunner` of TypeORM. */
export interface QueryTransaction {
  /** Runs a statement with its parameters. */
  query(sql: string, params: never): PromiseLike<unknown>
}

/** The `Transaction` of Kysely. */
export interface KyselyTransaction {
  /** True for a transaction. */
  readonly isTransaction: true
  /** Runs a compiled query. */
  executeQuery(query: never): PromiseLike<unknown>
}

/** The `tx` of Drizzle's `db.transaction(async (tx) => …)`, on a driver with promises. */
export interface DrizzleTransaction {
  /** Runs raw SQL. */
  execute(query: never): PromiseLike<unknown>
  /** Only a transaction has it. */
  rollback(): never
}

/** The `tx` of Prisma's `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  /** Runs raw SQL with its values. */
  $executeRawUnsafe(sql: string, ...values: ReadonlyArray<never>): PromiseLike<unknown>
}

/** The `sql` of `sql.begin(async (sql) => …)` of postgres.js. */
export interface PostgresJsTransaction {
  /** Runs SQL that is a text. */
  unsafe(sql: string, params?: never): PromiseLike<unknown>
  /** Only a transaction has it. */
  readonly savepoint: unknown
}

/** The `trx` of Knex's `knex.transaction(async (trx) => …)`. */
export interface KnexTransaction {
  /** Runs raw SQL, whose placeholders are `?` on every database. */
  raw(sql: string, bindings: never): PromiseLike<unknown>
  /** Only a transaction has it. */
  isCompleted(): boolean
}

/** A transaction that the caller has begun, and commits or rolls back. A pool and a client without a transaction are refused with `NotInTransaction`. */
export type OutboxTransaction =
  | SqlFunction
  | QueryTransaction
  | KyselyTransaction
  | DrizzleTransaction
  | PrismaTransaction
  | PostgresJsTransaction
  | KnexTransaction
