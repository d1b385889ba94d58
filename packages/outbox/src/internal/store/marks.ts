/** Inserts rows, and marks them DONE, RETRY or DEAD. */
import * as Effect from "effect/Effect"
import { DEAD, DONE, RETRY } from "../../EventStatus.ts"
import {
  changeLists,
  fenceCondition,
  millis,
  type Parameters,
  parameters,
  pending,
  type StoreContext
} from "./context.ts"
import { type Fence, openFence, type StoreShape } from "./contract.ts"
import { encoded, insertStatements as statementsFor } from "./insertStatement.ts"
import { storableError } from "./storableError.ts"

type Marks = Pick<StoreShape, "insertStatements" | "insertNew" | "markDone" | "markRetry" | "postpone" | "markDead">

export const makeMarks = ({ dialect, names, codec, onDone, change }: StoreContext): Marks => {
  const table = names.table

  const insertStatements: StoreShape["insertStatements"] = (events, claimedBy) =>
    statementsFor(dialect, table, codec, events, claimedBy)

  const insertNew: StoreShape["insertNew"] = (events, claimedBy) =>
    Effect.flatMap(
      encoded(() => insertStatements(events, claimedBy)),
      (statements) => Effect.forEach(statements, (s) => change("insert", s.text, s.params), { discard: true })
    )

  const done =
    onDone === "delete"
      ? `DELETE FROM ${table}`
      : `UPDATE ${table} SET status = ${DONE}, done_at = ${dialect.now}, locked_by = NULL, locked_at = NULL`

  const markDoneWhere = (chosen: (p: Parameters) => string, fence: Fence) => {
    const p = parameters(dialect)
    const where = `${chosen(p)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    return change("mark done", `${done} WHERE ${where}`, p.values)
  }

  const markDone: StoreShape["markDone"] = (eventIds, fence = openFence, rowAddresses = []) => {
    if (eventIds.length === 0) return Effect.succeed(0)
    const byId = changeLists(dialect, eventIds, (list) => markDoneWhere((p) => p.oneOf("event_id", list), fence))
    const known = rowAddresses.filter((address) => address !== undefined)
    if (dialect.name !== "pg" || known.length < eventIds.length) return byId
    // An address is only a hint: another row may be there by now, so the id decides. IS TRUE keeps the planner from joining by id.
    const ids = (p: Parameters) => `(event_id IN (SELECT unnest(${p.arrayOf(eventIds, "text")}))) IS TRUE`
    const byAddress = markDoneWhere((p) => `ctid = ANY(${p.arrayOf(known, "tid")}) AND ${ids(p)}`, fence)
    return Effect.flatMap(byAddress, (found) =>
      found >= eventIds.length ? Effect.succeed(found) : Effect.map(byId, (more) => found + more)
    )
  }

  const markRetry: StoreShape["markRetry"] = (eventId, delay, error, fence = openFence, attempts) => {
    const p = parameters(dialect)
    const set = `status = ${RETRY}, attempts = attempts + 1, available_at = ${dialect.plusMillis(dialect.now, p.bind(millis(delay)))},
      last_error = ${p.bind(storableError(error))}, locked_by = NULL, locked_at = NULL`
    const where = `event_id = ${p.bind(eventId)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    const counted = attempts === undefined ? "" : ` AND attempts = ${p.bind(attempts)}`
    return change("mark retry", `UPDATE ${table} SET ${set} WHERE ${where}${counted}`, p.values)
  }

  const postpone: StoreShape["postpone"] = (eventIds, delay, error, fence = openFence) =>
    changeLists(dialect, eventIds, (list) => {
      const p = parameters(dialect)
      const set = `available_at = ${dialect.plusMillis(dialect.now, p.bind(millis(delay)))},
      last_error = ${p.bind(storableError(error))}, locked_by = NULL, locked_at = NULL`
      const where = `${p.oneOf("event_id", list)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
      return change("postpone", `UPDATE ${table} SET ${set} WHERE ${where}`, p.values)
    })

  const markDead: StoreShape["markDead"] = (eventId, error, fence = openFence) => {
    const p = parameters(dialect)
    const set = `status = ${DEAD}, done_at = ${dialect.now}, last_error = ${p.bind(storableError(error))}, locked_by = NULL, locked_at = NULL`
    const where = `event_id = ${p.bind(eventId)} AND ${pending}${fenceCondition(fence, names, dialect, p)}`
    return change("mark dead", `UPDATE ${table} SET ${set} WHERE ${where}`, p.values)
  }

  return { insertStatements, insertNew, markDone, markRetry, postpone, markDead }
}
