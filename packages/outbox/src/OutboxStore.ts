/**
 * The outbox table as operations: the only place that writes its SQL. One implementation for PostgreSQL, MySQL/MariaDB and
 * SQLite over the differences in `internal/store/dialect.ts`.
 *
 * Owns no state. A statement joins the transaction of the fiber that runs it; dispatcher, poller and purge run theirs outside
 * of any, each in a short transaction of its own. No row lock or connection is held between two calls.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { checkTableName } from "./internal/base/identifier.ts"
import { makeClaims } from "./internal/store/claims.ts"
import { makeContext } from "./internal/store/context.ts"
import type { StoreShape } from "./internal/store/contract.ts"
import { dialectOf } from "./internal/store/dialect.ts"
import { makeMarks } from "./internal/store/marks.ts"
import { makePending } from "./internal/store/pending.ts"
import { tableNames } from "./internal/store/tableNames.ts"
import { makeDead, makeLag, makePurging } from "./internal/store/terminal.ts"
import { defaultCodec, type JsonCodec } from "./JsonCodec.ts"
import type { InvalidIdentifier } from "./OutboxError.ts"
import { defaultTable } from "./OutboxSchema.ts"

export type { ClaimOptions, DeadFilter, Fence, Lag, PollCursor, PollOptions } from "./internal/store/contract.ts"
export { openFence } from "./internal/store/contract.ts"
export type { InsertStatement } from "./internal/store/insertStatement.ts"
export { type OutboxEvent, type PolledEvent, separateUndecodable } from "./internal/store/rows.ts"

export interface StoreOptions {
  /** Default `outbox_event`. */
  readonly table?: string
  /** How headers become text. Default: flat JSON. */
  readonly codec?: JsonCodec
  /** What becomes of finished rows: kept as DONE until purge, or deleted on the spot (about half the write-ahead log). Default `keep`. */
  readonly onDone?: "keep" | "delete"
}

export class OutboxStore extends Context.Service<OutboxStore, StoreShape>()("@eventbus/outbox/OutboxStore") {}

export type Shape = StoreShape

/** The store of the `SqlClient`'s database; the dialect is detected from the client. */
export const make: (options?: StoreOptions) => Effect.Effect<Shape, InvalidIdentifier, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options: StoreOptions = {}) {
    const sql = yield* SqlClient.SqlClient
    const context = makeContext(sql, {
      names: tableNames(yield* checkTableName(options.table ?? defaultTable, "table name")),
      dialect: dialectOf(sql),
      codec: options.codec ?? defaultCodec,
      onDone: options.onDone ?? "keep"
    })
    return {
      dialect: context.dialect,
      names: context.names,
      onDone: context.onDone,
      ...makeMarks(context),
      ...makePending(context),
      ...makeClaims(context),
      ...makeDead(context),
      ...makePurging(context),
      lag: makeLag(context)
    }
  })

export const layer = (options?: StoreOptions): Layer.Layer<OutboxStore, InvalidIdentifier, SqlClient.SqlClient> =>
  Layer.effect(OutboxStore, make(options))
