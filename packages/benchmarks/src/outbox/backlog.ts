/** Rounds that drain a backlog: events per second of a bare loop or of an outbox. */
import { EventEnvelope, ListenerRegistry, Outbox, OutboxStore, type OutboxWriter } from "@eventbus/outbox"
import { Deferred, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Samples } from "../harness/Benchmark.ts"
import { now, pace, since } from "../harness/stopwatch.ts"
import type { Database } from "./databases.ts"

type Table = SqlClient.SqlClient | OutboxStore.OutboxStore

const aggregates = 1000
const payload = new Uint8Array(500).fill(120)

/** Inserts rows of 500 bytes. A share of them, `hotShare`, belongs to one aggregate, the others to 1,000 aggregates in rotation. */
export const fill: (rows: number, hotShare?: number) => Effect.Effect<void, unknown, Table> = Effect.fnUntraced(
  function* (rows, hotShare = 0) {
    const store = yield* OutboxStore.OutboxStore
    const sql = yield* SqlClient.SqlClient
    const every = hotShare === 0 ? Number.POSITIVE_INFINITY : 1 / hotShare
    for (let at = 0; at < rows; at += 1000) {
      const events = yield* Effect.forEach(Array.from({ length: Math.min(1000, rows - at) }), (_, i) => {
        const n = at + i
        const aggregateId = n % every === 0 ? "hot" : `a-${n % aggregates}`
        return EventEnvelope.make({ eventType: "bench", aggregateType: "order", aggregateId, payloadBytes: payload })
      })
      yield* sql.withTransaction(store.insertNew(events))
    }
    yield* settle
  }
)

/** Updates the statistics, and flushes the log of the inserts. */
export const settle = SqlClient.SqlClient.use((sql) =>
  sql.onDialectOrElse({
    mysql: () => sql.unsafe("ANALYZE TABLE outbox_event").unprepared,
    sqlite: () => sql.unsafe("PRAGMA wal_checkpoint(TRUNCATE)").unprepared,
    orElse: () =>
      Effect.andThen(sql.unsafe("VACUUM ANALYZE outbox_event").unprepared, sql.unsafe("CHECKPOINT").unprepared)
  })
)

/** Drains a table of this many rows. */
export type Work = (rows: number) => Effect.Effect<unknown, unknown, Table>

export interface Backlog {
  readonly database: Database
  readonly rows: number
  readonly hotShare?: number
}

/** The rate of `work`, which drains the table. A smaller backlog warms it up first. */
export const drainedBy = (backlog: Backlog, work: Work): Effect.Effect<Samples, unknown> =>
  Effect.gen(function* () {
    yield* fill(Math.ceil(backlog.rows / 5), backlog.hotShare)
    yield* work(Math.ceil(backlog.rows / 5))
    yield* fill(backlog.rows, backlog.hotShare)
    const start = now()
    yield* work(backlog.rows)
    const taken = since(start)
    const store = yield* OutboxStore.OutboxStore
    const { pending } = yield* store.lag
    if (pending > 0) return yield* Effect.fail(`${pending} rows are left`)
    return pace(taken, backlog.rows)
  }).pipe(Effect.provide(backlog.database))

type Shape = Layer.Layer<OutboxWriter.OutboxWriter, unknown, SqlClient.SqlClient | ListenerRegistry.ListenerRegistry>

/** An outbox that runs until it has delivered this many events. Closing it flushes the marks, so they are part of the time. */
export const deliverAll =
  (shape: Shape, listener?: ListenerRegistry.EventListener): Work =>
  (rows) =>
    Effect.gen(function* () {
      const all = yield* Deferred.make<void>()
      let seen = 0
      const count = () => {
        seen++
        return seen === rows ? Deferred.succeed(all, undefined) : Effect.void
      }
      const counted = ListenerRegistry.layerAll(
        listener === undefined ? count : (event) => Effect.tap(listener(event), count)
      )
      yield* Effect.provide(Deferred.await(all), Layer.fresh(Layer.provide(shape, counted)))
    })

const busy = { batchSize: 500, coldQueueCapacity: 4000 } as const

/** The variants of the outbox, with the settings of a busy table. */
export const single = (onDone: "keep" | "delete"): Shape => Outbox.singleNode({ onDone, ...busy })

export const multi = (onDone: "keep" | "delete"): Shape =>
  Outbox.multiNode({ onDone, ...busy, claimLocking: { lockTimeout: "1 minute" } })

export const ordered = (onDone: "keep" | "delete"): Shape =>
  Outbox.orderedNodes({ onDone, maxInMemory: 8000, batchSize: 1000 })
