/**
 * The databases of the outbox benchmark, each round in a schema of its own that is dropped afterwards.
 *
 * `OUTBOX_BENCH_PG` and `OUTBOX_BENCH_MYSQL` (`host:port`) point elsewhere than to the local default ports; the database is `test`.
 */
import { randomBytes } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as MySql2 from "@eventbus/outbox/MySql2"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql"

/** A schema with the outbox tables, and a store that deletes or keeps finished rows. */
export type Database = Layer.Layer<SqlClient.SqlClient | OutboxStore.OutboxStore, unknown>

const addressOf = (variable: string, port: number) => {
  const [host = "", given = ""] = (process.env[variable] ?? "").split(":")
  return { host: host === "" ? "127.0.0.1" : host, port: given === "" ? port : Number(given) }
}

const freshName = (): string => `bench_${randomBytes(5).toString("hex")}`

/** A PostgreSQL client whose unqualified names are in the schema. */
export const postgresIn = (schema: string, maxConnections = 10) =>
  PgClient.layer({
    ...addressOf("OUTBOX_BENCH_PG", 5432),
    username: "postgres",
    database: "test",
    maxConnections,
    startupOptions: `-c search_path=${schema}`
  })

const mysqlIn = (database: string) =>
  MySql2.layer({ ...addressOf("OUTBOX_BENCH_MYSQL", 3306), username: "root", database, maxConnections: 10 })

/** A schema that lives as long as the scope. */
export const schemaOf = <E>(
  name: string,
  noun: "SCHEMA" | "DATABASE",
  admin: Layer.Layer<SqlClient.SqlClient, E>
): Effect.Effect<void, unknown, Scope.Scope> => {
  const run = (text: string) =>
    SqlClient.SqlClient.use((sql) => sql.unsafe(text).unprepared).pipe(
      Effect.provide(admin, { local: true }),
      Effect.orDie
    )
  const cascade = noun === "SCHEMA" ? " CASCADE" : ""
  return Effect.acquireRelease(run(`CREATE ${noun} ${name}`), () => run(`DROP ${noun} ${name}${cascade}`))
}

/** The tables, and a store over them. */
export const withTables = <E>(client: Layer.Layer<SqlClient.SqlClient, E>): Database =>
  OutboxStore.layer().pipe(
    Layer.provide(Layer.effectDiscard(OutboxSchema.migrate())),
    Layer.provideMerge(client),
    Layer.fresh
  )

export const postgres: Database = Layer.unwrap(
  Effect.gen(function* () {
    const name = freshName()
    yield* schemaOf(name, "SCHEMA", postgresIn("public", 1))
    return withTables(postgresIn(name))
  })
)

export const mariadb: Database = Layer.unwrap(
  Effect.gen(function* () {
    const name = freshName()
    yield* schemaOf(name, "DATABASE", mysqlIn("test"))
    return withTables(mysqlIn(name))
  })
)

export const sqlite: Database = Layer.unwrap(
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "outbox-bench-"))),
      (folder) => Effect.promise(() => rm(folder, { recursive: true }))
    )
    return withTables(NodeSqlite.layer({ filename: join(folder, "outbox.sqlite") }))
  })
)
