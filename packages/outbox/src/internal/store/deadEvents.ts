/**
 * The statements of an operator on dead events. A change names the death that it is about, by its time: an event that was replayed meanwhile and died again is another case, and stays.
 */
import * as Effect from "effect/Effect"
import { DEAD } from "../../EventStatus.ts"
import { anyAggregateTypeName } from "../base/typeName.ts"
import { listsOf, type Parameters, parameters, type StoreContext } from "./context.ts"
import type { DeadEventStatements, DeadRow, DeadRowFilter, Death } from "./contract.ts"
import { limitTo } from "./pending.ts"
import { eventColumns } from "./rows.ts"
import { isDead, replayed } from "./terminal.ts"

export const makeDeadEvents = ({ dialect, names, rows, change, events }: StoreContext): DeadEventStatements => {
  const table = names.table
  // Other software may have marked a row DEAD without a time. ROUND mends the double that PostgreSQL computes.
  const diedAt = `ROUND(${dialect.micros("COALESCE(done_at, created_at)")})`
  const columns = `seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, attempts, last_error,
    ROUND(${dialect.micros("created_at")}) AS created, ${diedAt} AS died`

  const selected = ({ eventType, aggregateType, aggregateId, eventIds }: DeadRowFilter, p: Parameters): string => {
    const equals = { event_type: eventType, aggregate_type: aggregateType, aggregate_id: aggregateId }
    const tests = Object.entries(equals).flatMap(([column, text]) =>
      text === undefined ? [] : [`${column} = ${p.bind(text)}`]
    )
    return [isDead(dialect), ...tests, ...(eventIds === undefined ? [] : [p.oneOf("event_id", eventIds)])].join(" AND ")
  }

  const page: DeadEventStatements["page"] = (filter, limit, afterSeq) => {
    const p = parameters(dialect)
    const where = `${selected(filter, p)} AND seq > ${p.bind(afterSeq)}`
    const text = `SELECT ${columns} FROM ${table} WHERE ${where} ORDER BY seq ${limitTo(dialect, limit, p)}`
    return Effect.map(rows("read dead events", text, p.values), (found) => found.map(deadRow))
  }

  const event: DeadEventStatements["event"] = (eventId) => {
    const p = parameters(dialect)
    const where = `event_id = ${p.bind(eventId)} AND status = ${DEAD}`
    const text = `SELECT ${eventColumns(dialect)} FROM ${table} WHERE ${where}`
    return Effect.map(events("read dead event", text, p.values), ([found]) => found)
  }

  const states: DeadEventStatements["states"] = (eventIds) =>
    Effect.map(
      Effect.forEach(listsOf(dialect, eventIds), (list) => {
        const p = parameters(dialect)
        const text = `SELECT event_id, status, ${diedAt} AS died FROM ${table} WHERE ${p.oneOf("event_id", list)}`
        return rows("read states of events", text, p.values)
      }),
      (lists) =>
        lists.flat().map((row) => ({
          eventId: String(row.event_id),
          status: Number(row.status),
          diedAtMicros: Number(row.died)
        }))
    )

  const changeDead = (operation: string, statement: string, { eventId, diedAtMicros }: Death) => {
    const p = parameters(dialect)
    const where = `event_id = ${p.bind(eventId)} AND status = ${DEAD} AND ${diedAt} = ${p.bind(diedAtMicros)}`
    return Effect.map(change(operation, `${statement} WHERE ${where}`, p.values), (changed) => changed > 0)
  }

  return {
    page,
    event,
    states,
    replay: (death) => changeDead("replay dead event", `UPDATE ${table} SET ${replayed(dialect)}`, death),
    discard: (death) => changeDead("discard dead event", `DELETE FROM ${table}`, death)
  }
}

const textOf = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : String(value)

const deadRow = (row: Readonly<Record<string, unknown>>): DeadRow => ({
  eventId: String(row.event_id),
  seq: Number(row.seq),
  eventType: String(row.event_type),
  aggregateType: textOf(row.aggregate_type) ?? anyAggregateTypeName,
  aggregateId: textOf(row.aggregate_id),
  tenantId: textOf(row.tenant_id),
  attempts: Number(row.attempts),
  lastError: textOf(row.last_error),
  createdAtMicros: Number(row.created),
  diedAtMicros: Number(row.died)
})
