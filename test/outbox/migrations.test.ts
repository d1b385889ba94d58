/** The tables of the first version get to the newest version on a live database, and nodes of the first version go on beside. */

import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { ListenerRegistry, MetricsExporter, Outbox, OutboxSchema } from "@eventbus/outbox"
import { Clock, Effect, Fiber, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { migrateTables } from "../../packages/outbox/src/internal/store/migrations.ts"
import { onDatabases } from "./databases.ts"

const dialects = { PostgreSQL: "pg", MariaDB: "mysql", SQLite: "sqlite" } as const
type Name = keyof typeof dialects

const now = { pg: "now()", mysql: "UTC_TIMESTAMP(6)", sqlite: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)" }

/** The tables as the first version created them. */
const firstVersion = (name: Name) =>
  SqlClient.SqlClient.use((sql) => {
    const path = new URL(`firstVersion/${dialects[name]}.sql`, import.meta.url)
    const texts = readFileSync(path, "utf8")
      .split(/;\n+/)
      .filter((text) => text.trim() !== "")
    return Effect.forEach(texts, (text) => sql.unsafe(text).unprepared, { discard: true })
  })

/** A row as the first version wrote it. */
const insert = (
  name: Name,
  id: string,
  status: number,
  more: { readonly attempts?: number; readonly lockedBy?: string } = {}
) =>
  SqlClient.SqlClient.use((sql) => {
    const time = now[dialects[name]]
    const payload = name === "PostgreSQL" ? "'\\x31'" : "x'31'"
    const terminal = status === 1 || status === 3 ? time : "NULL"
    const claim = more.lockedBy === undefined ? "NULL, NULL" : `'${more.lockedBy}', ${time}`
    return sql.unsafe(
      `INSERT INTO outbox_event (event_id, event_type, aggregate_type, aggregate_id, tenant_id, payload, content_type, headers, bucket,
        occurred_at, status, attempts, available_at, created_at, done_at, locked_by, locked_at)
       VALUES ('${id}', 'e', 'a', '${id}', NULL, ${payload}, 'application/json', '{"k":"v"}', 7, ${time}, ${status}, ${more.attempts ?? 0},
        ${time}, ${time}, ${terminal}, ${claim})`
    ).unprepared
  })

/** Rows in each state. */
const everyState = (name: Name) =>
  Effect.all([
    insert(name, "new", 0),
    insert(name, "done", 1),
    insert(name, "retry", 2, { attempts: 3 }),
    insert(name, "dead", 3, { attempts: 10 }),
    insert(name, "claimed", 0, { lockedBy: "node-1" })
  ])

const rows = SqlClient.SqlClient.use((sql) =>
  Effect.map(
    sql.unsafe<{ event_id: string; status: number; attempts: number; locked_by: string | null }>(
      "SELECT event_id, status, attempts, locked_by FROM outbox_event ORDER BY seq"
    ),
    (found) => found.map((row) => [row.event_id, Number(row.status), Number(row.attempts), row.locked_by])
  )
)

const versions = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql.unsafe<{ version: number }>("SELECT version FROM outbox_event_version ORDER BY version"), (found) =>
    found.map(({ version }) => Number(version))
  )
)

/** Version 1 is there already, so it has nothing to do. */
const first = { version: 1, statements: () => [] }
const second = { version: 2, statements: () => ["ALTER TABLE outbox_event ADD COLUMN note VARCHAR(10)"] }

const inEveryState = [
  ["new", 0, 0, null],
  ["done", 1, 0, null],
  ["retry", 2, 3, null],
  ["dead", 3, 10, null],
  ["claimed", 0, 0, "node-1"]
]

onDatabases("migrations of the outbox tables", (db) => {
  it.live("the first version's tables are adopted with their rows; processes migrate one at a time", () =>
    Effect.gen(function* () {
      yield* firstVersion(db.name)
      yield* everyState(db.name)
      yield* Effect.forEach([1, 2, 3, 4], () => OutboxSchema.migrate(), { concurrency: "unbounded", discard: true })
      assert.deepStrictEqual(yield* versions, [1])
      assert.deepStrictEqual(yield* rows, inEveryState)
      yield* OutboxSchema.verify()
      // A node of the first version still runs its own migration, and writes as before.
      yield* firstVersion(db.name)
      yield* insert(db.name, "by the first", 0)
      const seen: Array<string> = []
      const registry = ListenerRegistry.layerAll((event) => Effect.sync(() => void seen.push(event.eventId)))
      yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => seen.length === 4 }).pipe(
        Effect.timeout("10 seconds"),
        Effect.provide(
          Outbox.singleNode({ interval: "50 millis" }).pipe(Layer.provide(registry), Layer.provide(Logger.layer([])))
        ),
        Effect.provideService(MetricsExporter.Current, MetricsExporter.noop)
      )
      assert.sameMembers(seen, ["new", "retry", "claimed", "by the first"])
    }).pipe(Effect.provide(db.empty))
  )

  it.live("an empty database gets the tables, and a database that knows a newer version is left alone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* OutboxSchema.migrate()
      yield* OutboxSchema.verify()
      assert.deepStrictEqual(yield* versions, [1])
      yield* sql.unsafe(`INSERT INTO outbox_event_version (version, applied_at) VALUES (99, ${now[dialects[db.name]]})`)
      yield* OutboxSchema.migrate()
      yield* sql.withTransaction(OutboxSchema.migrate())
      assert.deepStrictEqual(yield* versions, [1, 99])
    }).pipe(Effect.provide(db.empty))
  )

  it.live("the statements for a migration tool do the same, and may be run again", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (let run = 0; run < 2; run++) {
        for (const text of yield* OutboxSchema.statements(dialects[db.name])) yield* sql.unsafe(text).unprepared
      }
      yield* OutboxSchema.verify()
      assert.deepStrictEqual(yield* versions, [1])
    }).pipe(Effect.provide(db.empty))
  )

  it.live("a later version adds to the tables of the first one, once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* firstVersion(db.name)
      yield* everyState(db.name)
      const migrate = migrateTables(sql, dialects[db.name], "outbox_event", [first, second])
      yield* Effect.forEach([1, 2, 3], () => migrate, { concurrency: "unbounded", discard: true })
      assert.deepStrictEqual(yield* versions, [1, 2])
      assert.deepStrictEqual(yield* rows, inEveryState)
      yield* insert(db.name, "by the first", 0)
      yield* OutboxSchema.verify()
    }).pipe(Effect.provide(db.empty))
  )
})

onDatabases(
  "migrations while writers hold the table",
  (db) => {
    it.live(
      "an adoption waits for no writer, and a version that must wait makes writers wait for 2 seconds at most",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* firstVersion(db.name)
          const writer = yield* Effect.forkChild(
            sql.withTransaction(Effect.andThen(insert(db.name, "open", 0), Effect.sleep("6 seconds"))),
            { startImmediately: true }
          )
          yield* Effect.sleep("300 millis")
          const begun = yield* Clock.currentTimeMillis
          yield* OutboxSchema.migrate()
          assert.isBelow((yield* Clock.currentTimeMillis) - begun, 1500)
          const migrating = yield* Effect.forkChild(
            migrateTables(sql, dialects[db.name], "outbox_event", [first, second]),
            { startImmediately: true }
          )
          yield* Effect.sleep("300 millis")
          const from = yield* Clock.currentTimeMillis
          yield* insert(db.name, "behind", 0)
          assert.isBelow((yield* Clock.currentTimeMillis) - from, 3500)
          assert.isUndefined(migrating.pollUnsafe())
          yield* Fiber.join(writer)
          yield* Fiber.join(migrating)
          assert.deepStrictEqual(yield* versions, [1, 2])
        }).pipe(Effect.provide(db.empty)),
      20_000
    )
  },
  ["PostgreSQL", "MariaDB"]
)
