/** What every outbox benchmark needs: a schema of its own, filled tables, and the bare loops that set the bar. */
import { randomBytes } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { EventEnvelope, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

/** `host:port` of PostgreSQL; its `test` database is used. */
const [host = "127.0.0.1", port = "5432"] = (process.env.OUTBOX_BENCH_PG ?? "127.0.0.1:5432").split(":")

const client = (schema: string, maxConnections: number) =>
  PgClient.layer({
    host,
    port: Number(port),
    username: "postgres",
    database: "test",
    maxConnections,
    startupOptions: `-c search_path=${schema}`
  })

/** A PostgreSQL schema for one round, dropped afterwards, with the outbox tables in it. */
export const freshSchema: Layer.Layer<SqlClient.SqlClient, unknown> = Layer.unwrap(
  Effect.gen(function* () {
    const schema = `bench_${randomBytes(5).toString("hex")}`
    const run = (text: string) =>
      SqlClient.SqlClient.use((sql) => sql.unsafe(text)).pipe(
        Effect.provide(client("public", 1), { local: true }),
        Effect.orDie
      )
    yield* Effect.acquireRelease(run(`CREATE SCHEMA ${schema}`), () => run(`DROP SCHEMA ${schema} CASCADE`))
    return Layer.effectDiscard(OutboxSchema.migrate()).pipe(Layer.provideMerge(Layer.fresh(client(schema, 10))))
  })
)

const payload = new Uint8Array(500).fill(120)

/** Inserts rows of 500 bytes; `hotShare` of them belong to one aggregate, the others to `aggregates` in turn. */
export const fill: (
  rows: number,
  aggregates: number,
  hotShare: number
) => Effect.Effect<void, unknown, OutboxStore.OutboxStore | SqlClient.SqlClient> = Effect.fnUntraced(
  function* (rows, aggregates, hotShare) {
    const store = yield* OutboxStore.OutboxStore
    const sql = yield* SqlClient.SqlClient
    const every = hotShare === 0 ? Number.POSITIVE_INFINITY : 1 / hotShare
    for (let at = 0; at < rows; at += 1000) {
      const events = yield* Effect.forEach(Array.from({ length: Math.min(1000, rows - at) }), (_, i) => {
        const n = at + i
        const aggregateId = n % every === 0 ? "hot" : `a-${n % aggregates}`
        return EventEnvelope.make({ eventType: "bench", aggregateType: "order", aggregateId, payloadBytes: payload })
      })
      yield* store.insertNew(events)
    }
    yield* sql.unsafe("VACUUM ANALYZE outbox_event").unprepared
  }
)

/** Events per second of an effect that handles `rows` of them. */
export const rate = <E, R>(rows: number, effect: Effect.Effect<unknown, E, R>) =>
  Effect.map(Effect.timed(effect), ([duration]) => {
    const millis =
      duration.value._tag === "Millis"
        ? duration.value.millis
        : Number(duration.value._tag === "Nanos" ? duration.value.nanos : 0n) / 1e6
    return Math.round((rows / millis) * 1000)
  })

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

export interface Quantiles {
  readonly p50: number
  readonly p99: number
}

export const quantiles = (values: ReadonlyArray<number>): Quantiles => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}
