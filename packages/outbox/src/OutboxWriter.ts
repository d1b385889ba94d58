/** Writes events in the caller's transaction: event and data commit together, or neither does (outbox seed §7). Keeps no state. */
import { UserFunction } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as EventEnvelope from "./EventEnvelope.ts"
import type { TypeName } from "./EventType.ts"
import { checkEnvelope } from "./internal/base/envelope.ts"
import { checkTableName } from "./internal/base/identifier.ts"
import { foreignDialect, foreignWriter as foreignKinds, writer as kinds } from "./internal/base/optionKinds.ts"
import { checkOptions, problemsOf } from "./internal/base/options.ts"
import { runHook } from "./internal/delivery/writerHooks.ts"
import { noteWrite } from "./internal/delivery/writeTimes.ts"
import { foreignDialects } from "./internal/store/dialect.ts"
import { encoded, type InsertStatement, insertStatements } from "./internal/store/insertStatement.ts"
import { defaultTable, tableNames } from "./internal/store/tableNames.ts"
import { notifyStatement, proveTransaction } from "./internal/store/transactionProof.ts"
import { defaultCodec, type JsonCodec } from "./JsonCodec.ts"
import {
  InvalidEnvelope,
  type InvalidIdentifier,
  type InvalidOutboxConfig,
  type NotInTransaction,
  type OutboxStoreError,
  type PayloadTooLarge,
  type RollbackHookUnsupported
} from "./OutboxError.ts"
import { OutboxStore } from "./OutboxStore.ts"
import { type Execute, foreignOnly, TxContext } from "./TxContext.ts"
import { noop, WriteRefused, type WriterHook } from "./WriterHook.ts"

/** The errors of a write. After any of them nothing of that write is in the table. */
export type WriteError =
  | NotInTransaction
  | RollbackHookUnsupported
  | InvalidEnvelope
  | PayloadTooLarge
  | WriteRefused
  | OutboxStoreError

/** Settings of a writer. */
export interface WriterOptions {
  /** Hooks around every write. Default `WriterHook.noop`. */
  readonly hook?: WriterHook
  /** Inserts rows as claimed by this owner, whose hot path delivers them (ruling 65). Default: unclaimed. */
  readonly claimedBy?: string
}

type Written = EventEnvelope.EventEnvelope | EventEnvelope.Input

/** Writes events. */
export class OutboxWriter extends Context.Service<
  OutboxWriter,
  {
    /** Writes one event, or JSON text under an event type. Returns the event's id, or undefined when a hook suppressed the write. */
    readonly write: {
      (event: Written): Effect.Effect<string | undefined, WriteError>
      (eventType: TypeName, payloadJson: string): Effect.Effect<string | undefined, WriteError>
    }
    /** Writes events in order, all or none. Returns their ids; none when a hook suppressed the write. */
    readonly writeAll: (events: ReadonlyArray<Written>) => Effect.Effect<ReadonlyArray<string>, WriteError>
  }
>()("@eventbus/outbox/OutboxWriter") {}

/** A value that is no object, or that throws when it is looked at, is no envelope: `EventEnvelope.make` says what is wrong with it. */
const isEnvelope = (event: Written): event is EventEnvelope.EventEnvelope => {
  try {
    return "occurredAtMillis" in event && "contentType" in event && event.payload instanceof Uint8Array
  } catch {
    return false
  }
}

/** A writer to the store's table. Fails on wrong settings. */
export const make: (
  options?: WriterOptions
) => Effect.Effect<OutboxWriter["Service"], InvalidOutboxConfig, OutboxStore | TxContext> = Effect.fnUntraced(
  function* (options = {}) {
    yield* checkOptions("OutboxWriter", [problemsOf(options, kinds)])
    const { insertStatements } = yield* OutboxStore
    return yield* writerOf(yield* TxContext, options, {
      before: () => Effect.void,
      statements: (events) => insertStatements(events, options.claimedBy)
    })
  }
)

/** A writer to the store's table, as a layer. Fails on wrong settings. */
export const layer = (
  options?: WriterOptions
): Layer.Layer<OutboxWriter, InvalidOutboxConfig, OutboxStore | TxContext> => Layer.effect(OutboxWriter, make(options))

/** Settings of a writer to transactions of other clients. */
export interface ForeignOptions {
  /** The database: PostgreSQL, or MySQL and MariaDB. */
  readonly dialect: "pg" | "mysql"
  /** The event table, optionally qualified by a schema. Default `outbox_event`. */
  readonly table?: string
  /** The codec of headers. Default: flat JSON. */
  readonly codec?: JsonCodec
  /**
   * On PostgreSQL, wakes the relays with the commit of each write, so that the poll interval does not bound its latency. PostgreSQL commits such transactions one after the other: they
   * halve the throughput of small ones. Default false.
   */
  readonly notify?: boolean
}

/**
 * A writer for programs without a `SqlClient`: it writes in the transactions that `TxContext.join` makes known, and only there. It asks the database for a proof that the statements
 * run in an open transaction, and fails with `NotInTransaction` otherwise. Fails on wrong settings.
 */
export const foreign: (
  options: ForeignOptions
) => Effect.Effect<OutboxWriter["Service"], InvalidOutboxConfig | InvalidIdentifier> = Effect.fnUntraced(
  function* (options) {
    yield* checkOptions("OutboxWriter.foreign", [problemsOf(options, foreignKinds, { dialect: foreignDialect })])
    const { table = defaultTable, codec = defaultCodec, notify = false } = options
    const names = tableNames(yield* checkTableName(table))
    const dialect = foreignDialects[options.dialect]
    const wakeup = notify && options.dialect === "pg" ? [notifyStatement(names)] : []
    return yield* writerOf(
      foreignOnly,
      {},
      {
        before: (execute) => proveTransaction(dialect, names, execute),
        statements: (events) => [...insertStatements(dialect, names.table, codec, events, undefined), ...wakeup]
      }
    )
  }
)

/** The part that differs between writers. */
interface Statements {
  /** Runs when the events are encoded and nothing is in the table. */
  readonly before: (execute: Execute) => Effect.Effect<void, NotInTransaction | OutboxStoreError>
  readonly statements: (events: ReadonlyArray<EventEnvelope.EventEnvelope>) => ReadonlyArray<InsertStatement>
}

const writerOf = Effect.fnUntraced(function* (
  tx: TxContext["Service"],
  { hook = noop }: WriterOptions,
  { before, statements: statementsOf }: Statements
) {
  const clock = yield* Clock.Clock

  const insert = Effect.fnUntraced(function* (events: ReadonlyArray<EventEnvelope.EventEnvelope>) {
    const execute = yield* tx.currentConnection
    const { afterWrite, afterCommit, afterRollback } = hook
    const statements = yield* encoded(() => statementsOf(events))
    yield* before(execute)
    let isInserted = false
    // Before the insert: a transaction that cannot run the hook refuses the write while nothing is in the table.
    if (afterRollback !== undefined) {
      const rolledBack = runHook(hook, "afterRollback", events)
      yield* tx.afterRollback(Effect.suspend(() => (isInserted ? rolledBack : Effect.void)))
    }
    noteWrite(events, clock.monotonicTimeNanosUnsafe())
    for (const statement of statements) yield* execute(statement.text, statement.params)
    isInserted = true
    if (afterWrite !== undefined) yield* runHook(hook, "afterWrite", events)
    if (afterCommit !== undefined) yield* tx.afterCommit(runHook(hook, "afterCommit", events))
    return events.map((event) => event.eventId)
  })

  const writeAll: OutboxWriter["Service"]["writeAll"] = Effect.fnUntraced(function* (events) {
    yield* tx.currentConnection
    if (!Array.isArray(events)) return yield* new InvalidEnvelope({ field: "events", detail: "is no list" })
    const trace = yield* traceparent
    const made: Array<EventEnvelope.EventEnvelope> = []
    for (const event of events) made.push(yield* envelopeOf(event, trace))
    const changed = yield* beforeWrite(hook, made)
    if (changed === null || changed.length === 0) return []
    const chosen = changed === made ? made : yield* Effect.forEach(changed, checkEnvelope)
    const twice = duplicateId(chosen)
    if (twice !== undefined) {
      return yield* new InvalidEnvelope({ field: "eventId", detail: `'${twice}' occurs twice in one write` })
    }
    return yield* insert(chosen)
  })

  return OutboxWriter.of({
    writeAll,
    write: (event: Written | TypeName, payloadJson?: string) =>
      Effect.map(
        writeAll([payloadJson === undefined ? (event as Written) : { eventType: event as TypeName, payloadJson }]),
        (ids) => ids[0]
      )
  })
})

type Events = ReadonlyArray<EventEnvelope.EventEnvelope>

/** Runs the hook in a fiber of its own, so that one that misbehaves cannot keep the transaction open. Its defects are the write's. */
const beforeWrite = (hook: WriterHook, events: Events): Effect.Effect<Events | null, WriteRefused> =>
  hook.beforeWrite === undefined
    ? Effect.succeed(events)
    : Effect.flatMap(
        UserFunction.callIsolated("beforeWrite hook", () => hook.beforeWrite!(events)),
        (changed: unknown) =>
          changed === null || Array.isArray(changed)
            ? Effect.succeed(changed)
            : Effect.fail(new WriteRefused({ reason: "beforeWrite returned neither a list of events nor null" }))
      )

const envelopeOf = (event: Written, trace: string | undefined) =>
  Effect.map(isEnvelope(event) ? checkEnvelope(event) : EventEnvelope.make(event), (envelope) =>
    trace === undefined || envelope.headers.has("traceparent")
      ? envelope
      : { ...envelope, headers: new Map([...envelope.headers, ["traceparent", trace]]) }
  )

const duplicateId = (events: ReadonlyArray<EventEnvelope.EventEnvelope>): string | undefined => {
  if (events.length < 2) return undefined
  const seen = new Set<string>()
  return events.find((event) => seen.size === seen.add(event.eventId).size)?.eventId
}

/** The W3C `traceparent` of the caller's own span. Spans that the SQL client opens by itself do not start a trace. */
const traceparent: Effect.Effect<string | undefined> = Effect.map(Effect.serviceOption(Tracer.ParentSpan), (found) => {
  let span = Option.getOrUndefined(found)
  while (span?._tag === "Span" && span.name === "sql.transaction") span = Option.getOrUndefined(span.parent)
  if (span === undefined || !/^[0-9a-f]{32}$/.test(span.traceId)) return undefined
  return `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`
})
