/**
 * The outbox table as operations. All SQL of the table is behind it. One implementation serves PostgreSQL, MySQL/MariaDB and SQLite
 * (outbox seed §8).
 *
 * The store keeps no state. A statement joins the transaction of the fiber that runs it. Dispatcher, poller and purge run theirs
 * outside any transaction, each in a short one of its own. No row lock or connection is held between two calls (ruling 47).
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { checkTableName } from "./internal/base/identifier.ts"
import { store as kinds } from "./internal/base/optionKinds.ts"
import { checkOptions, problemsOf } from "./internal/base/options.ts"
import { makeClaims } from "./internal/store/claims.ts"
import { makeContext } from "./internal/store/context.ts"
import type { StoreShape } from "./internal/store/contract.ts"
import { makeDeadEvents } from "./internal/store/deadEvents.ts"
import { dialectOf } from "./internal/store/dialect.ts"
import { makeMarks } from "./internal/store/marks.ts"
import { makePending } from "./internal/store/pending.ts"
import { defaultTable, tableNames } from "./internal/store/tableNames.ts"
import { makeDead, makeLag, makePurging } from "./internal/store/terminal.ts"
import { defaultCodec, type JsonCodec } from "./JsonCodec.ts"
import type { InvalidIdentifier, InvalidOutboxConfig } from "./OutboxError.ts"

export type {
  ClaimOptions,
  DeadEventStatements,
  DeadFilter,
  DeadRow,
  DeadRowFilter,
  Death,
  Fence,
  Lag,
  PollOptions,
  RowState
} from "./internal/store/contract.ts"
export {
  type OutboxEvent,
  type PolledEvent,
  separateUndecodable,
  toOutboxEvents,
  type Unreadable
} from "./internal/store/rows.ts"

/** Settings of a store. */
export interface StoreOptions {
  /** The event table, optionally qualified by a schema. Default `outbox_event`. */
  readonly table?: string
  /** The codec of headers. Default: flat JSON. */
  readonly codec?: JsonCodec
  /** `keep`: delivered rows stay as DONE until purge. `delete`: they are deleted at once, which writes about half the log. Default `keep`. */
  readonly onDone?: "keep" | "delete"
}

/** The operations on one event table. */
export class OutboxStore extends Context.Service<OutboxStore, StoreShape>()("@eventbus/outbox/OutboxStore") {}

/** The store of the `SqlClient`'s database; the dialect is detected from the client. Fails on an illegal table name, and on other wrong settings. */
export const make: (
  options?: StoreOptions
) => Effect.Effect<OutboxStore["Service"], InvalidIdentifier | InvalidOutboxConfig, SqlClient.SqlClient> =
  Effect.fnUntraced(function* (options: StoreOptions = {}) {
    yield* checkOptions("OutboxStore", [problemsOf(options, kinds)])
    const sql = yield* SqlClient.SqlClient
    const context = makeContext(sql, {
      names: tableNames(yield* checkTableName(options.table ?? defaultTable)),
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
      deadEvents: makeDeadEvents(context),
      ...makePurging(context),
      ...makeLag(context)
    }
  })

/** The store of the `SqlClient`'s database, as a layer. */
export const layer = (
  options?: StoreOptions
): Layer.Layer<OutboxStore, InvalidIdentifier | InvalidOutboxConfig, SqlClient.SqlClient> =>
  Layer.effect(OutboxStore, make(options))
