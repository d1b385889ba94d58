/** The size of the table under a steady stream of events, with the settings of the migration and with others. */
import { ListenerRegistry, Outbox } from "@eventbus/outbox"
import { Effect, Fiber, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import type { Role, Samples } from "../harness/Benchmark.ts"
import { postgres } from "./databases.ts"

type Parameters = Readonly<Record<"perSecond" | "seconds", number>>

const purge = { retention: "30 seconds", interval: "5 seconds" } as const
const shapes = {
  deleted: Outbox.singleNode({ onDone: "delete" }),
  kept: Outbox.singleNode({ purge }),
  claimed: Outbox.multiNode({ purge, claimLocking: { lockTimeout: "1 minute" } })
}

/** Settings other than the migration's, for comparison. */
const settings = {
  migration: "SET (fillfactor = 100)",
  airy: "SET (fillfactor = 85)",
  plain: "RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay, autovacuum_analyze_scale_factor)"
} as const

interface Size {
  readonly table: number
  readonly indexes: number
  readonly rows: number
}

const megabytes = 1_048_576

const measureSize = SqlClient.SqlClient.use((sql) =>
  Effect.map(
    sql<Size>`SELECT pg_table_size('outbox_event')::float8 AS "table", pg_indexes_size('outbox_event')::float8 AS indexes,
      (SELECT count(*) FROM outbox_event)::float8 AS rows`,
    ([size]) => size ?? { table: 0, indexes: 0, rows: 0 }
  )
)

/** Writes five events per transaction, in as many transactions as needed. */
const stream = ({ perSecond, seconds }: Parameters) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const five = Array.from({ length: 5 }, () => ({ eventType: "bench", payloadJson: "x".repeat(500) }))
    const begin = performance.now()
    for (let n = 0; n < (perSecond * seconds) / 5; n++) {
      yield* Effect.sleep(Math.max(0, begin + (n * 5000) / perSecond - performance.now()))
      yield* sql.withTransaction(Outbox.writeAll(five))
    }
  })

/** Samples of the second half, when the size of the table is stable. `packed` is the size of the same rows without holes. */
const grow = (shape: (typeof shapes)[keyof typeof shapes], setting: keyof typeof settings, parameters: Parameters) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql.unsafe(`ALTER TABLE outbox_event ${settings[setting]}`)
    const sizes: Array<Size> = []
    const sampling = yield* measureSize.pipe(
      Effect.map((size) => sizes.push(size)),
      Effect.repeat(Schedule.spaced("2 seconds")),
      Effect.delay(`${parameters.seconds / 2} seconds`),
      Effect.forkChild
    )
    const listeners = ListenerRegistry.layerAll(() => Effect.void)
    yield* Effect.provide(stream(parameters), shape.pipe(Layer.provide(listeners)))
    yield* Fiber.interrupt(sampling)
    const [updates] = yield* sql<{ hot: number }>`SELECT 100.0::float8 * n_tup_hot_upd / greatest(1, n_tup_upd) AS hot
      FROM pg_stat_user_tables WHERE relid = 'outbox_event'::regclass`
    const { rows } = yield* measureSize
    yield* sql.unsafe("VACUUM FULL outbox_event").unprepared
    const full = yield* measureSize
    return {
      table: sizes.map((size) => size.table / megabytes),
      indexes: sizes.map((size) => size.indexes / megabytes),
      rows: sizes.map((size) => size.rows),
      packed: sizes.map((size) => ((full.table / Math.max(1, rows)) * size.rows) / megabytes),
      hot: [updates?.hot ?? 0]
    }
  }).pipe(Effect.provide(Layer.fresh(postgres)))

/** All variants run concurrently and share the machine and the time. Series are named `shape setting figure`. */
export const growth: Role<Parameters> = Effect.fnUntraced(function* ({ parameters }) {
  const series: Record<string, ReadonlyArray<number>> = {}
  const runs = Object.entries(shapes).flatMap(([name, shape]) =>
    (["migration", "airy", "plain"] as const).map((setting) =>
      Effect.map(grow(shape, setting, parameters), (figures) => {
        for (const [figure, values] of Object.entries(figures)) series[`${name} ${setting} ${figure}`] = values
      })
    )
  )
  yield* Effect.all(runs, { concurrency: "unbounded", discard: true })
  return series satisfies Samples
})
