/** The SQL function of a transaction, which is recognised by its shape. */
import { UserFunction } from "@eventbus/core"
import { OutboxError } from "@eventbus/outbox"
import type { OutboxTransaction, SqlFunction } from "../../OutboxTransaction.ts"

interface Shape {
  readonly [member: string]: unknown
}

type Method = (...args: Array<unknown>) => unknown

/** Throws `NotInTransaction` for everything that is no transaction by its looks. The database tells of the rest. */
export const sqlFunctionOf = (transaction: OutboxTransaction): SqlFunction => {
  const run = recognised(transaction)
  return (sql, params) => {
    const answer: unknown = run(sql, params.map(asBuffer))
    if (isThenable(answer)) return answer
    throw new TypeError(`the transaction answered with ${UserFunction.kindOf(answer)}; a promise is expected`)
  }
}

/** A client, known by a method that no other one before it in the list has. */
interface Client {
  readonly method: string
  readonly isTransaction: (tx: Shape) => boolean
  /** The words of its refusal where it is no transaction: the thing found, and the one to pass. */
  readonly otherwise: readonly [found: string, allowed: string]
  readonly run: (call: Method, sql: string, params: Array<unknown>) => unknown
}

const clients: ReadonlyArray<Client> = [
  {
    method: "$executeRawUnsafe",
    isTransaction: (tx) => !has(tx, "$connect"),
    otherwise: ["the client of Prisma", "the tx of prisma.$transaction"],
    run: (call, sql, params) => call(sql, ...params)
  },
  {
    method: "executeQuery",
    isTransaction: (tx) => tx["isTransaction"] === true,
    otherwise: ["a Kysely without a transaction", "the trx of db.transaction()"],
    run: (call, sql, params) => call(compiledQuery(sql, params))
  },
  {
    method: "unsafe",
    isTransaction: (tx) => has(tx, "savepoint"),
    otherwise: ["the sql of postgres.js itself", "the sql of sql.begin"],
    run: (call, sql, params) => call(sql, params)
  },
  {
    method: "raw",
    isTransaction: (tx) => has(tx, "isCompleted"),
    otherwise: ["Knex itself", "the trx of knex.transaction"],
    run: (call, sql, params) => call(sql.replaceAll(/\$\d+/g, "?"), params)
  },
  {
    method: "query",
    // `pg` counts its connections, `mysql2` hands them out, TypeORM makes runners.
    isTransaction: (tx) => !("totalCount" in tx || has(tx, "getConnection") || has(tx, "createQueryRunner")),
    otherwise: ["a pool, whose statements run on any connection", "a client behind BEGIN"],
    run: (call, sql, params) => call(sql, params)
  },
  {
    method: "execute",
    isTransaction: (tx) => has(tx, "rollback"),
    otherwise: ["the db of Drizzle", "the tx of db.transaction"],
    run: (call, sql, params) => call(drizzleSql(sql, params))
  }
]

const recognised = (transaction: unknown): ((sql: string, params: Array<unknown>) => unknown) => {
  if (!isShape(transaction)) return refuse(UserFunction.kindOf(transaction))
  const client = clients.find(({ method }) => has(transaction, method))
  if (client === undefined) {
    return typeof transaction === "function" ? (transaction as SqlFunction) : refuse("an object of an unknown kind")
  }
  if (!client.isTransaction(transaction)) return refuse(...client.otherwise)
  const call = (...args: ReadonlyArray<unknown>) => (transaction[client.method] as Method).apply(transaction, [...args])
  return (sql, params) => client.run(call, sql, params)
}

const has = (tx: Shape, method: string): boolean => typeof tx[method] === "function"

const anyTransaction =
  "a transaction of pg, Kysely, Drizzle, Prisma, postgres.js, TypeORM, Knex or mysql2/promise, or a function (sql, params) => Promise"

const refuse = (found: string, allowed = anyTransaction): never => {
  throw new OutboxError.NotInTransaction({
    operation: "A write to the outbox",
    detail: `found ${found}, allowed is ${allowed}`
  })
}

const isShape = (value: unknown): value is Shape =>
  (typeof value === "object" && value !== null) || typeof value === "function"

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  isShape(value) && typeof value["then"] === "function"

/** No client takes every kind of byte array: `mysql2` writes one that is no Buffer as an object. */
const asBuffer = (param: unknown): unknown =>
  param instanceof Uint8Array ? Buffer.from(param.buffer, param.byteOffset, param.byteLength) : param

/** The same as Kysely's `CompiledQuery.raw` makes. */
const compiledQuery = (sql: string, parameters: ReadonlyArray<unknown>) => ({
  sql,
  parameters,
  query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
  queryId: { queryId: sql }
})

/** It stands for Drizzle's `sql` template: Drizzle asks it for the query, and hands the parameters to its driver. */
const drizzleSql = (sql: string, params: ReadonlyArray<unknown>) => {
  const raw = { getSQL: () => raw, toQuery: () => ({ sql, params }) }
  return raw
}
