/** The context that every group of statements is built with: client, dialect, names, codec, and how statements run. */
import { Ranges } from "@eventbus/core"
import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import { NEW, RETRY } from "../../EventStatus.ts"
import type { JsonCodec } from "../../JsonCodec.ts"
import { OutboxStoreError } from "../../OutboxError.ts"
import * as OutboxRanges from "../../OutboxRanges.ts"
import { refuse, within } from "../base/options.ts"
import type { Fence } from "./contract.ts"
import { affectedRows, type Dialect } from "./dialect.ts"
import { noteRefusal, noteWrite, watchRefusals } from "./readOnly.ts"
import { decodeRow, type PolledEvent } from "./rows.ts"
import type { TableNames } from "./tableNames.ts"

type Row = Record<string, unknown>

/** The input of every group of statements. */
export interface StoreContext {
  readonly sql: SqlClient.SqlClient
  readonly dialect: Dialect
  readonly names: TableNames
  readonly codec: JsonCodec
  readonly onDone: "keep" | "delete"
  /** Runs a query; returns its rows by column name. */
  readonly rows: (
    operation: string,
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, OutboxStoreError>
  /** Runs a statement that changes rows; returns how many. */
  readonly change: (
    operation: string,
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<number, OutboxStoreError>
  /** Runs a statement that returns `eventColumns`. */
  readonly events: (
    operation: string,
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<PolledEvent>, OutboxStoreError>
}

/** The store's error for a failed statement. */
export const storeError =
  (operation: string) =>
  (cause: SqlError.SqlError): OutboxStoreError =>
    new OutboxStoreError({ operation, retryable: cause.isRetryable, cause })

type ContextSettings = Pick<StoreContext, "dialect" | "names" | "codec" | "onDone">

/** Binds the client to the settings of one outbox. */
export const makeContext = (sql: SqlClient.SqlClient, settings: ContextSettings): StoreContext => {
  watchRefusals(sql, settings.names)
  return contextOf(sql, settings)
}

const contextOf = (sql: SqlClient.SqlClient, settings: ContextSettings): StoreContext => ({
  ...settings,
  sql,
  rows: (operation, text, values) =>
    Effect.catch(sql.unsafe<Row>(text, values).withoutTransform, failed(sql, operation)),
  change: (operation, text, values) =>
    Effect.matchEffect(sql.unsafe(text, values).raw, {
      onSuccess: (raw) => {
        noteWrite(settings.names)
        return Effect.succeed(affectedRows(raw))
      },
      onFailure: failed(sql, operation)
    }),
  events: (operation, text, values) =>
    sql.unsafe(text, values).values.pipe(
      Effect.map((found) => found.map((row) => decodeRow(row, settings.codec))),
      Effect.catch(failed(sql, operation))
    )
})

/** Fails as the statement did. A connection that takes no writes is given up. */
export const failed =
  (sql: SqlClient.SqlClient, operation: string) =>
  (cause: SqlError.SqlError): Effect.Effect<never, OutboxStoreError> =>
    Effect.andThen(noteRefusal(sql, cause), Effect.fail(storeError(operation)(cause)))

/** A duration in milliseconds. Throws `InvalidOutboxConfig` for a value that is none: as zero, it would purge or claim rows of any age. */
export const millis = (duration: Duration.Input): number => {
  const found = Ranges.millisOf(duration)
  if (!Number.isFinite(found)) refuse("OutboxStore", within("duration", duration, OutboxRanges.purge.retention))
  return found
}

/** The condition of rows that still have to be delivered. */
export const pending = `status IN (${NEW}, ${RETRY})`

/** Collects parameters while a statement is written, so that text and values stay in step. */
export const parameters = (dialect: Dialect) => {
  const values: Array<unknown> = []
  const bind = (value: unknown): string => {
    values.push(value)
    return dialect.param(values.length)
  }
  /** A list of texts as one PostgreSQL array literal: drivers send one text faster than a thousand elements. */
  const arrayOf = (list: ReadonlyArray<string>, type: "text" | "tid"): string =>
    `${bind(`{${list.map(quoteElement).join(",")}}`)}::${type}[]`
  /**
   * Tests membership of a non-empty list, which is one of `listsOf`. PostgreSQL takes the list as one array. Elsewhere the list is padded to a power of two with
   * its last value, so that a handful of prepared statements serve every length.
   */
  const oneOf = (column: string, list: ReadonlyArray<string>): string => {
    if (dialect.name === "pg") return `${column} = ANY(${arrayOf(list, "text")})`
    const width = 2 ** Math.ceil(Math.log2(list.length))
    return `${column} IN (${Array.from({ length: width }, (_, i) => bind(list[Math.min(i, list.length - 1)])).join(", ")})`
  }
  return { values, bind, arrayOf, oneOf }
}

/** The most texts of one list where each takes a placeholder: SQLite allows 32,766 in a statement, MySQL 65,535. */
const mostInList = 4096

/** The lists of `oneOf` that hold these texts, in order, each within what one statement may have. None for an empty list. */
export const listsOf = (dialect: Dialect, texts: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  texts.length === 0 ? [] : dialect.name === "pg" ? [texts] : Arr.chunksOf(texts, mostInList)

/** Runs a change once per list of `listsOf`; returns the rows of all. */
export const changeLists = <E>(
  dialect: Dialect,
  texts: ReadonlyArray<string>,
  change: (list: ReadonlyArray<string>) => Effect.Effect<number, E>
): Effect.Effect<number, E> =>
  Effect.map(Effect.forEach(listsOf(dialect, texts), change), (changed) => changed.reduce((sum, rows) => sum + rows, 0))

/** Quotes an element of an array literal, so that every text stands for itself. */
const quoteElement = (text: string): string =>
  text.includes('"') || text.includes("\\") ? `"${text.replaceAll(/["\\]/g, "\\$&")}"` : `"${text}"`

export type Parameters = ReturnType<typeof parameters>

/** The SQL that restricts a change to the fence's owner; empty for an open fence. */
export const fenceCondition = (fence: Fence, names: TableNames, dialect: Dialect, p: Parameters): string => {
  if (fence._tag === "Open") return ""
  if (fence._tag === "Claim") {
    const claimed = ` AND locked_by = ${p.bind(fence.owner)}`
    return fence.maxAge === undefined
      ? claimed
      : `${claimed} AND locked_at > ${dialect.minusMillis(dialect.now, p.bind(millis(fence.maxAge)))}`
  }
  const owned = `SELECT 1 FROM ${names.bucket} b WHERE b.bucket = ${names.unqualified}.bucket AND b.owner = ${p.bind(fence.owner)}`
  const pairs = [...fence.epochs]
  if (dialect.name === "pg") {
    const epochs = `unnest(${p.bind(pairs.map(([bucket]) => bucket))}::int8[], ${p.bind(pairs.map(([, epoch]) => epoch))}::int8[])`
    return ` AND EXISTS (${owned} AND (b.bucket, b.epoch) IN (SELECT * FROM ${epochs}))`
  }
  const rows = pairs.map(([bucket, epoch]) => `(b.bucket = ${p.bind(bucket)} AND b.epoch = ${p.bind(epoch)})`)
  return ` AND EXISTS (${owned} AND (${rows.join(" OR ")}))`
}
