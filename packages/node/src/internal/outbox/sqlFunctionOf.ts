/** The SQL function of a transaction, which is recognised by its shape. */
import { UserFunction } from "@eventbus/core"
import { OutboxError } from "@eventbus/outbox"
import type { OutboxTransaction, SqlFunction } from "../../OutboxTransaction.ts"

type Shape = { readonly [member: string]: unknown }
type Method = (...args: ReadonlyArray<unknown>) => PromiseLike<unknown>

/** Throws `NotInTransaction` for everything that is no transaction by its looks. The database tells of the rest. */
export const sqlFunctionOf = (transaction: OutboxTransaction): SqlFunction => {
  const run = recognised(transaction)
  return (sql, params) => {
    const answer: unknown = run(sql, params.map(asBuffer))
    if (isThenable(answer)) return answer
    throw new TypeError(`the transaction answered with ${UserFunction.kindOf(answer)}; a promise is expected`)
  }
}

const recognised = (transaction: unknown): ((sql: string, params: Array<unknown>) => unknown) => {
  if (!isShape(transaction)) return refuse(UserFunction.kindOf(transaction))
  const tx = transaction
  const method = (name: string) => {
    const call = tx[name]
    return typeof call === "function" ? (call.bind(tx) as Method) : undefined
  }
  const { $executeRawUnsafe, executeQuery, unsafe, raw, execute, query } = methods(method)
  if ($executeRawUnsafe !== undefined) {
    if (method("$connect") !== undefined) return refuse("the client of Prisma", "the tx of prisma.$transaction")
    return (sql, params) => $executeRawUnsafe(sql, ...params)
  }
  if (executeQuery !== undefined) {
    if (tx["isTransaction"] !== true) return refuse("a Kysely without a transaction", "the trx of db.transaction()")
    return (sql, params) => executeQuery(compiledQuery(sql, params))
  }
  if (unsafe !== undefined) {
    if (method("savepoint") === undefined) return refuse("the sql of postgres.js itself", "the sql of sql.begin")
    return unsafe
  }
  if (raw !== undefined) {
    if (method("isCompleted") === undefined) return refuse("Knex itself", "the trx of knex.transaction")
    return (sql, params) => raw(sql.replaceAll(/\$\d+/g, "?"), params)
  }
  if (query !== undefined) {
    if (isPool(tx)) return refuse("a pool, whose statements run on any connection", "a client behind BEGIN")
    return query
  }
  if (execute !== undefined) {
    if (method("rollback") === undefined) return refuse("the db of Drizzle", "the tx of db.transaction")
    return (sql, params) => execute(drizzleSql(sql, params))
  }
  return typeof transaction === "function" ? (transaction as SqlFunction) : refuse("an object of an unknown kind")
}

const methods = (method: (name: string) => Method | undefined) => ({
  $executeRawUnsafe: method("$executeRawUnsafe"),
  executeQuery: method("executeQuery"),
  unsafe: method("unsafe"),
  raw: method("raw"),
  execute: method("execute"),
  query: method("query")
})

const anyTransaction =
  "a transaction of pg, Kysely, Drizzle, Prisma, postgres.js, TypeORM, Knex or mysql2/promise, or a function (sql, params) => Promise"

const refuse = (found: string, allowed = anyTransaction): never => {
  throw new OutboxError.NotInTransaction({ operation: "A write to the outbox", detail: `found ${found}, allowed is ${allowed}` })
}

const isShape = (value: unknown): value is Shape =>
  (typeof value === "object" && value !== null) || typeof value === "function"

const isThenable = (value: unknown): value is PromiseLike<unknown> => isShape(value) && typeof value["then"] === "function"

/** `pg` counts its connections, `mysql2` hands them out, TypeORM makes runners. */
const isPool = (tx: Shape): boolean =>
  typeof tx["totalCount"] === "number" ||
  typeof tx["getConnection"] === "function" ||
  typeof tx["createQueryRunner"] === "function"

/** No client takes every kind of byte array: `mysql2` writes one that is no Buffer as an object. */
const asBuffer = (param: unknown): unknown =>
  param instanceof Uint8Array ? Buffer.from(param.buffer, param.byteOffset, param.byteLength) : param

/** What Kysely's `CompiledQuery.raw` makes. */
const compiledQuery = (sql: string, parameters: ReadonlyArray<unknown>) => ({
  sql,
  parameters,
  query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
  queryId: { queryId: sql }
})

/** What Drizzle makes of its `sql` template: it asks for the query, and hands the parameters to its driver. */
const drizzleSql = (sql: string, params: ReadonlyArray<unknown>) => {
  const raw = { getSQL: () => raw, toQuery: () => ({ sql, params }) }
  return raw
}
