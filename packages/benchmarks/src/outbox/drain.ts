/** How fast a backlog is delivered to a listener that does nothing, against bare loops over the same table. */
import { ListenerRegistry, Outbox, OutboxStore } from "@eventbus/outbox"
import { Deferred, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { fill, freshSchema, rate } from "./setup.ts"

const batch = 500

/** Lock 500 rows, mark them done in the same transaction, and so on. */
const lockAndMark = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const lock = sql.unsafe<{ event_id: string }>(
    `SELECT event_id, payload FROM outbox_event WHERE status IN (0, 2) AND available_at <= statement_timestamp()
     ORDER BY available_at, seq LIMIT ${batch} FOR UPDATE SKIP LOCKED`
  )
  for (;;) {
    const done = yield* sql.withTransaction(
      Effect.flatMap(lock, (rows) =>
        rows.length === 0
          ? Effect.succeed(true)
          : Effect.as(
              sql.unsafe(
                "UPDATE outbox_event SET status = 1, done_at = statement_timestamp() WHERE event_id = ANY($1::text[])",
                [rows.map((row) => row.event_id)]
              ),
              false
            )
      )
    )
    if (done) return
  }
})

const lockAndDelete = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const take = sql.unsafe(
    `DELETE FROM outbox_event WHERE ctid = ANY(ARRAY(SELECT ctid FROM outbox_event WHERE status IN (0, 2)
       AND available_at <= statement_timestamp() ORDER BY available_at, seq LIMIT ${batch} FOR UPDATE SKIP LOCKED))
     RETURNING event_id, payload`
  )
  while ((yield* take).length > 0) {}
})

const bucketReadAndDelete = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (let bucket = 0; bucket < 64; bucket++) {
    for (;;) {
      const rows = yield* sql.unsafe<{ event_id: string }>(
        `SELECT event_id, payload FROM outbox_event WHERE bucket = $1 AND status IN (0, 2) ORDER BY seq LIMIT ${batch}`,
        [bucket]
      )
      if (rows.length === 0) break
      yield* sql.unsafe("DELETE FROM outbox_event WHERE event_id = ANY($1::text[])", [rows.map((row) => row.event_id)])
    }
  }
})

type Shape = (onDone: "keep" | "delete") => ReturnType<typeof Outbox.singleNode | typeof Outbox.multiNode>

const outboxDrain = (rows: number, shape: Shape, onDone: "keep" | "delete") =>
  Effect.gen(function* () {
    const all = yield* Deferred.make<void>()
    let seen = 0
    const registry = ListenerRegistry.layerAll(() => {
      seen++
      return seen === rows ? Deferred.succeed(all, undefined) : Effect.void
    })
    // Closing the layer flushes the marks, so they are part of the time.
    yield* Effect.provide(Deferred.await(all), Layer.fresh(shape(onDone).pipe(Layer.provide(registry))))
    const store = yield* OutboxStore.OutboxStore
    const { pending } = yield* store.lag
    if (pending > 0) return yield* Effect.fail(`${pending} rows are left`)
  })

const single: Shape = (onDone) => Outbox.singleNode({ onDone, batchSize: 500, coldQueueCapacity: 4000 })
const multi: Shape = (onDone) =>
  Outbox.multiNode({ onDone, batchSize: 500, coldQueueCapacity: 4000, claimLocking: { lockTimeout: "1 minute" } })
const nodes: Shape = (onDone) => Outbox.orderedNodes({ onDone, maxInMemory: 8000, batchSize: 1000 })

const onTable = (
  rows: number,
  hotShare: number,
  work: Effect.Effect<unknown, unknown, SqlClient.SqlClient | OutboxStore.OutboxStore>
): Effect.Effect<number, unknown> =>
  Effect.gen(function* () {
    yield* fill(rows, 1000, hotShare)
    return yield* rate(rows, work)
  }).pipe(Effect.provide(Layer.provideMerge(OutboxStore.layer(), Layer.fresh(freshSchema))))

/** Cases by name: events per second over `rows` rows. */
export const drain = (rows: number): Readonly<Record<string, Effect.Effect<number, unknown>>> => ({
  "bare lock and mark": onTable(rows, 0, lockAndMark),
  "single node, rows kept": onTable(rows, 0, outboxDrain(rows, single, "keep")),
  "multi node, rows kept": onTable(rows, 0, outboxDrain(rows, multi, "keep")),
  "bare lock and delete": onTable(rows, 0, lockAndDelete),
  "single node, rows deleted": onTable(rows, 0, outboxDrain(rows, single, "delete")),
  "bare bucket read and delete, half in one aggregate": onTable(rows, 0.5, bucketReadAndDelete),
  "ordered, half in one aggregate": onTable(rows, 0.5, outboxDrain(rows, nodes, "delete"))
})
