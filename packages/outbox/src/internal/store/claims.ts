/** Claims: one node holds rows for itself until it has finished with them or its lock has expired (outbox seed §10). */
import * as Effect from "effect/Effect"
import {
  changeLists,
  listsOf,
  millis,
  type Parameters,
  parameters,
  pending,
  type StoreContext,
  storeError
} from "./context.ts"
import type { ClaimOptions, StoreShape } from "./contract.ts"
import { due, inOrder, limitTo } from "./pending.ts"
import { eventColumns, type PolledEvent } from "./rows.ts"

type Claims = Pick<StoreShape, "claimPending" | "renewClaims" | "releaseClaims">

export const makeClaims = ({ sql, dialect, names, rows, change, events }: StoreContext): Claims => {
  const table = names.table

  const claimable = (options: ClaimOptions, p: Parameters): string =>
    `${due(dialect, options, p)} AND (locked_at IS NULL OR locked_at <= ${dialect.minusMillis(dialect.now, p.bind(millis(options.lockTimeout)))})`

  const claimInOneStatement: StoreShape["claimPending"] = (options) => {
    const p = parameters(dialect)
    const key = dialect.name === "pg" ? "ctid" : "seq"
    const owner = p.bind(options.owner)
    const chosen = `SELECT ${key} FROM ${table} WHERE ${claimable(options, p)} ${inOrder(dialect)} ${limitTo(dialect, options.limit, p)} ${dialect.skipLocked}`
    const from =
      dialect.name === "pg"
        ? `WITH chosen AS MATERIALIZED (${chosen}) UPDATE ${table} t SET locked_by = ${owner}, locked_at = ${dialect.now} FROM chosen WHERE t.ctid = chosen.ctid`
        : `UPDATE ${table} SET locked_by = ${owner}, locked_at = ${dialect.now} WHERE seq IN (${chosen})`
    const returned = eventColumns(dialect, dialect.name === "pg" ? "t." : "")
    return Effect.map(events("claim", `${from} RETURNING ${returned}`, p.values), (found) =>
      found.toSorted(oldestFirst)
    )
  }

  const claimInTwoSteps: StoreShape["claimPending"] = Effect.fnUntraced(function* (options) {
    const p = parameters(dialect)
    const text = `SELECT ${eventColumns(dialect)} FROM ${table} WHERE ${claimable(options, p)} ${inOrder(dialect)} ${limitTo(dialect, options.limit, p)} ${dialect.skipLocked}`
    const found = yield* events("claim", text, p.values)
    const ids = found.map((event) => event.eventId)
    yield* changeLists(dialect, ids, (list) => {
      const u = parameters(dialect)
      const set = `locked_by = ${u.bind(options.owner)}, locked_at = ${dialect.now}`
      return change("claim", `UPDATE ${table} SET ${set} WHERE ${u.oneOf("event_id", list)}`, u.values)
    })
    return found
  })

  const claimPending: StoreShape["claimPending"] = (options) =>
    dialect.name === "mysql"
      ? sql
          .withTransaction(claimInTwoSteps(options))
          .pipe(Effect.mapError((cause) => (cause._tag === "OutboxStoreError" ? cause : storeError("claim")(cause))))
      : claimInOneStatement(options)

  const claimsOf = (owner: string, eventIds: ReadonlyArray<string>, p: Parameters): string =>
    `${p.oneOf("event_id", eventIds)} AND locked_by = ${p.bind(owner)} AND ${pending}`

  const renewList = Effect.fnUntraced(function* (owner: string, eventIds: ReadonlyArray<string>) {
    const p = parameters(dialect)
    const update = `UPDATE ${table} SET locked_at = ${dialect.now} WHERE ${claimsOf(owner, eventIds, p)}`
    if (dialect.name !== "mysql") {
      const renewed = yield* rows("renew claims", `${update} RETURNING event_id`, p.values)
      return renewed.map((row) => String(row.event_id))
    }
    yield* change("renew claims", update, p.values)
    const q = parameters(dialect)
    const still = yield* rows(
      "renew claims",
      `SELECT event_id FROM ${table} WHERE ${claimsOf(owner, eventIds, q)}`,
      q.values
    )
    return still.map((row) => String(row.event_id))
  })

  const renewClaims: StoreShape["renewClaims"] = (owner, eventIds) =>
    Effect.map(
      Effect.forEach(listsOf(dialect, eventIds), (list) => renewList(owner, list)),
      (renewed) => renewed.flat()
    )

  const releaseClaims: StoreShape["releaseClaims"] = (owner, eventIds) =>
    changeLists(dialect, eventIds, (list) => {
      const p = parameters(dialect)
      const text = `UPDATE ${table} SET locked_by = NULL, locked_at = NULL WHERE ${claimsOf(owner, list, p)}`
      return change("release claims", text, p.values)
    })

  return { claimPending, renewClaims, releaseClaims }
}

const oldestFirst = (a: PolledEvent, b: PolledEvent): number =>
  a.availableAtMicros - b.availableAtMicros || a.seq - b.seq
