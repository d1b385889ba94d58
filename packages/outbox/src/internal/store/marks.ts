/** How rows come into the table, and how they reach their states. */
import { Effect } from "effect"
import { DEAD, DONE, RETRY } from "../../EventStatus.ts"
import { type InsertStatement, insertStatement } from "../insertStatement.ts"
import { storableError } from "../storableError.ts"
import { fenceCondition, millis, parameters, pending, type StoreContext } from "./context.ts"
import { openFence, type StoreShape } from "./contract.ts"

type Marks = Pick<StoreShape, "insertStatements" | "insertNew" | "markDone" | "markRetry" | "markDead">

export const makeMarks = ({ dialect, names, codec, onDone, change }: StoreContext): Marks => {
  const table = names.table

  const insertStatements: StoreShape["insertStatements"] = (events, claimedBy) =>
    insertStatement(dialect, table, codec, events, claimedBy)

  const insertNew: StoreShape["insertNew"] = (events, claimedBy) => {
    const [first, ...more] = insertStatements(events, claimedBy)
    if (first === undefined) return Effect.void
    const insert = (s: InsertStatement) => change("insert", s.text, s.params)
    return more.length === 0
      ? Effect.asVoid(insert(first))
      : Effect.forEach([first, ...more], insert, { discard: true })
  }

  const markDone: StoreShape["markDone"] = (eventIds, fence = openFence) => {
    if (eventIds.length === 0) return Effect.succeed(0)
    const p = parameters(dialect)
    const verb =
      onDone === "delete"
        ? `DELETE FROM ${table}`
        : `UPDATE ${table} SET status = ${DONE}, done_at = ${dialect.now}, locked_by = NULL, locked_at = NULL`
    const where = `${p.oneOf("event_id", eventIds)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    return change("mark done", `${verb} WHERE ${where}`, p.values)
  }

  const markRetry: StoreShape["markRetry"] = (eventId, delay, error, fence = openFence, attempts) => {
    const p = parameters(dialect)
    const set = `status = ${RETRY}, attempts = attempts + 1, available_at = ${dialect.plusMillis(dialect.now, p.bind(millis(delay)))},
      last_error = ${p.bind(storableError(error))}, locked_by = NULL, locked_at = NULL`
    const where = `event_id = ${p.bind(eventId)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    const counted = attempts === undefined ? "" : ` AND attempts = ${p.bind(attempts)}`
    return change("mark retry", `UPDATE ${table} SET ${set} WHERE ${where}${counted}`, p.values)
  }

  const markDead: StoreShape["markDead"] = (eventId, error, fence = openFence) => {
    const p = parameters(dialect)
    const set = `status = ${DEAD}, done_at = ${dialect.now}, last_error = ${p.bind(storableError(error))}, locked_by = NULL, locked_at = NULL`
    const where = `event_id = ${p.bind(eventId)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    return change("mark dead", `UPDATE ${table} SET ${set} WHERE ${where}`, p.values)
  }

  return { insertStatements, insertNew, markDone, markRetry, markDead }
}
