/** Reads due rows without claims. */
import * as Effect from "effect/Effect"
import { millis, type Parameters, parameters, pending, type StoreContext } from "./context.ts"
import type { PollOptions, StoreShape } from "./contract.ts"
import type { Dialect } from "./dialect.ts"
import { eventColumns } from "./rows.ts"

/** The column of the due time. MySQL reads pending rows through the generated column that its index covers. */
export const availableAt = (dialect: Dialect): string => (dialect.name === "mysql" ? "pending_at" : "available_at")

/** The condition of rows that are due now. */
export const due = (dialect: Dialect, options: PollOptions, p: Parameters): string => {
  const skip = millis(options.skipRecent ?? 0)
  const recent = skip > 0 ? ` AND created_at <= ${dialect.minusMillis(dialect.now, p.bind(skip))}` : ""
  return `${pending} AND ${availableAt(dialect)} <= ${dialect.now}${recent}`
}

/** The LIMIT clause. mysql2 sends numbers as doubles, which MySQL refuses there, so the number goes into the text. */
export const limitTo = (dialect: Dialect, limit: number, p: Parameters): string =>
  dialect.name === "mysql" ? `LIMIT ${Math.trunc(limit)}` : `LIMIT ${p.bind(limit)}`

/** The order in which pending rows are read. */
export const inOrder = (dialect: Dialect): string => `ORDER BY ${availableAt(dialect)}, seq`

export const makePending = ({
  dialect,
  names,
  rows,
  events
}: StoreContext): Pick<StoreShape, "pollPending" | "nextDue"> => {
  const table = names.table

  const pollPending: StoreShape["pollPending"] = (options) => {
    const p = parameters(dialect)
    const columns = eventColumns(dialect)
    let where = due(dialect, options, p)
    if (options.after !== undefined) {
      const at = dialect.fromMillis(p.bind(options.after.availableAtMicros / 1000))
      where += ` AND (${availableAt(dialect)}, seq) > (${at}, ${p.bind(options.after.seq)})`
    }
    const text = `SELECT ${columns} FROM ${table} WHERE ${where} ${inOrder(dialect)} ${limitTo(dialect, options.limit, p)}`
    return events("poll", text, p.values)
  }

  const nextDue = Effect.map(
    rows(
      "find next due",
      `SELECT ${dialect.micros(availableAt(dialect))} - ${dialect.micros(dialect.now)} AS ahead FROM ${table}
       WHERE ${pending} AND ${availableAt(dialect)} > ${dialect.now} ORDER BY ${availableAt(dialect)} LIMIT 1`,
      []
    ),
    ([row]) => (row === undefined ? undefined : Math.max(0, Number(row.ahead) / 1000))
  )

  return { pollPending, nextDue }
}
