/** Dead events, purge of terminal rows, and lag. */
import * as Effect from "effect/Effect"
import { DEAD, DONE, NEW } from "../../EventStatus.ts"
import { isEventId } from "../base/envelopeChecks.ts"
import { changeLists, millis, type Parameters, parameters, pending, type StoreContext } from "./context.ts"
import type { DeadFilter, StoreShape } from "./contract.ts"
import type { Dialect } from "./dialect.ts"
import { availableAt, limitTo } from "./pending.ts"
import { eventColumns } from "./rows.ts"

/** The condition of DEAD rows. They have an index of their own: there are few of them among any number of DONE rows. */
export const isDead = (dialect: Dialect): string =>
  dialect.name === "mysql" ? `status = ${DEAD} AND dead_at IS NOT NULL` : `status = ${DEAD}`

/** The columns of an event that is replayed. */
export const replayed = (dialect: Dialect): string =>
  `status = ${NEW}, attempts = 0, available_at = ${dialect.now}, last_error = NULL, done_at = NULL, locked_by = NULL, locked_at = NULL`

type Dead = Pick<StoreShape, "queryDead" | "replayDead" | "countDead">

export const makeDead = ({ dialect, names, rows, change, events }: StoreContext): Dead => {
  const table = names.table

  const deadRows = (filter: DeadFilter, p: Parameters): string => {
    const type = filter.eventType === undefined ? "" : ` AND event_type = ${p.bind(filter.eventType)}`
    const aggregate = filter.aggregateType === undefined ? "" : ` AND aggregate_type = ${p.bind(filter.aggregateType)}`
    return `${isDead(dialect)}${type}${aggregate}`
  }

  const queryDead: StoreShape["queryDead"] = (filter, limit, afterSeq = 0) => {
    const p = parameters(dialect)
    const where = `${deadRows(filter, p)} AND seq > ${p.bind(afterSeq)}`
    const text = `SELECT ${eventColumns(dialect)} FROM ${table} WHERE ${where} ORDER BY seq ${limitTo(dialect, limit, p)}`
    return events("query dead", text, p.values)
  }

  const replayDead: StoreShape["replayDead"] = (eventId) => {
    // MySQL fails to compare with text that its column cannot hold, and ignores spaces at the end of the text.
    if (dialect.name === "mysql" && !isEventId(eventId)) return Effect.succeed(0)
    const p = parameters(dialect)
    const where = `event_id = ${p.bind(eventId)} AND status = ${DEAD}`
    return change("replay dead", `UPDATE ${table} SET ${replayed(dialect)} WHERE ${where}`, p.values)
  }

  const countDead: StoreShape["countDead"] = (filter) => {
    const p = parameters(dialect)
    const text = `SELECT COUNT(*) AS n FROM ${table} WHERE ${deadRows(filter, p)}`
    return Effect.map(rows("count dead", text, p.values), (found) => Number(found[0]?.n ?? 0))
  }

  return { queryDead, replayDead, countDead }
}

type Purging = Pick<StoreShape, "queryTerminal" | "deleteTerminal" | "purgeTerminal" | "purgeByAge">

export const makePurging = ({ dialect, names, change, events }: StoreContext): Purging => {
  const table = names.table

  // The age of a row that other software marked terminal without a time counts from its creation.
  const terminalAt = dialect.name === "mysql" ? "terminal_at" : "COALESCE(done_at, created_at)"
  const purge =
    (operation: string, where: string, order: string): StoreShape["purgeTerminal"] =>
    (retention, limit) => {
      const p = parameters(dialect)
      const condition = where.replace("?cutoff", () => dialect.minusMillis(dialect.now, p.bind(millis(retention))))
      const atMost = `ORDER BY ${order} ${limitTo(dialect, limit, p)}`
      const text =
        dialect.name === "mysql"
          ? `DELETE FROM ${table} WHERE ${condition} ${atMost}`
          : dialect.name === "pg"
            ? `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE ${condition} ${atMost} ${dialect.skipLocked}))`
            : `DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} WHERE ${condition} ${atMost})`
      return change(operation, text, p.values)
    }

  const queryTerminal: StoreShape["queryTerminal"] = (retention, limit) => {
    const p = parameters(dialect)
    const where = `status IN (${DONE}, ${DEAD}) AND ${terminalAt} < ${dialect.minusMillis(dialect.now, p.bind(millis(retention)))}`
    const text = `SELECT ${eventColumns(dialect)} FROM ${table} WHERE ${where} ORDER BY ${terminalAt} ${limitTo(dialect, limit, p)}`
    return events("query terminal", text, p.values)
  }

  const deleteTerminal: StoreShape["deleteTerminal"] = (eventIds) =>
    changeLists(dialect, eventIds, (list) => {
      const p = parameters(dialect)
      const where = `${p.oneOf("event_id", list)} AND status IN (${DONE}, ${DEAD})`
      return change("delete terminal", `DELETE FROM ${table} WHERE ${where}`, p.values)
    })

  return {
    queryTerminal,
    deleteTerminal,
    purgeTerminal: purge("purge", `status IN (${DONE}, ${DEAD}) AND ${terminalAt} < ?cutoff`, terminalAt),
    purgeByAge: purge("purge by age", "created_at < ?cutoff", "seq")
  }
}

/** Measures lag through the partial indexes, so that any number of finished rows costs nothing. */
export const makeLag = ({ dialect, names, rows }: StoreContext): Required<Pick<StoreShape, "lag" | "figures">> => {
  const from = `FROM ${names.table} WHERE`
  const at = availableAt(dialect)
  const waiting = dialect.name === "mysql" ? `${pending} AND ${at} IS NOT NULL` : pending
  /** `oldest` is the condition of the rows whose greatest age counts. */
  const measure = (operation: string, oldest: string) =>
    Effect.map(
      rows(
        operation,
        `SELECT (SELECT COUNT(*) ${from} ${waiting}) AS pending, (SELECT COUNT(*) ${from} ${isDead(dialect)}) AS dead,
          ${dialect.micros(dialect.now)} - (SELECT MIN(${dialect.micros("created_at")}) ${from} ${oldest}) AS age`,
        []
      ),
      ([row]) => ({
        pending: Number(row?.pending ?? 0),
        dead: Number(row?.dead ?? 0),
        oldestMillis: Math.max(0, Number(row?.age ?? 0) / 1000)
      })
    )
  return {
    lag: measure("measure lag", `${pending} AND ${at} <= ${dialect.now}`),
    figures: measure("measure figures", waiting)
  }
}
