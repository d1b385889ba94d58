/**
 * The databases that outbox tests run on: SQLite always, PostgreSQL and MariaDB where they answer. Without them their tests are
 * skipped with one visible line; under CI they fail instead. Every use gets a schema of its own, dropped at the end.
 *
 * `OUTBOX_TEST_PG` and `OUTBOX_TEST_MYSQL` (`host:port`) point elsewhere than to the local default ports.
 */
import { randomBytes } from "node:crypto"
import { connect } from "node:net"
import { PgClient } from "@effect/sql-pg"
import { OutboxSchema } from "@eventbus/outbox"
import * as MySql2 from "@eventbus/outbox/MySql2"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"

export interface Database {
  readonly name: "PostgreSQL" | "MariaDB" | "SQLite"
  /** A fresh, empty schema. */
  readonly empty: Layer.Layer<SqlClient.SqlClient>
  /** A fresh schema with the outbox tables. */
  readonly migrated: Layer.Layer<SqlClient.SqlClient>
}

const address = (variable: string, port: number) => {
  const [host = "127.0.0.1", given = String(port)] = (process.env[variable] ?? "").split(":")
  return { host: host === "" ? "127.0.0.1" : host, port: Number(given) }
}

const answers = ({ host, port }: { readonly host: string; readonly port: number }) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ host, port, timeout: 1000 })
    const end = (up: boolean) => {
      socket.destroy()
      resolve(up)
    }
    socket.once("connect", () => end(true))
    socket.once("error", () => end(false))
    socket.once("timeout", () => end(false))
  })

export const pgAddress = address("OUTBOX_TEST_PG", 5432)
export const mysqlAddress = address("OUTBOX_TEST_MYSQL", 3306)

export const freshName = () => `ob_${randomBytes(6).toString("hex")}`

const migratedFrom = (empty: Layer.Layer<SqlClient.SqlClient>) =>
  Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(Layer.provideMerge(empty))

/** A PostgreSQL client whose unqualified names are in the given schema. */
export const pgIn = (schema: string, maxConnections = 6) =>
  PgClient.layer({
    ...pgAddress,
    username: "postgres",
    database: "test",
    maxConnections,
    startupOptions: `-c search_path=${schema}`
  })

const withSchema = <E>(
  admin: Layer.Layer<SqlClient.SqlClient, E>,
  noun: "SCHEMA" | "DATABASE",
  client: (name: string) => Layer.Layer<SqlClient.SqlClient, E>
): Layer.Layer<SqlClient.SqlClient> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const name = freshName()
      const run = (text: string) =>
        SqlClient.SqlClient.use((sql) => sql.unsafe(text).unprepared).pipe(
          Effect.provide(admin, { local: true }),
          Effect.orDie
        )
      yield* Effect.acquireRelease(run(`CREATE ${noun} ${name}`), () =>
        run(`DROP ${noun} ${name}${noun === "SCHEMA" ? " CASCADE" : ""}`)
      )
      return Layer.fresh(client(name))
    })
  ).pipe(Layer.orDie)

const postgres: Layer.Layer<SqlClient.SqlClient> = withSchema(
  PgClient.layer({ ...pgAddress, username: "postgres", database: "test", maxConnections: 1 }),
  "SCHEMA",
  (name) => pgIn(name)
)

export const mysqlIn = (database: string) =>
  MySql2.layer({ ...mysqlAddress, username: "root", database, maxConnections: 6 })

const mariadb = withSchema(mysqlIn("test"), "DATABASE", mysqlIn)

const sqlite = Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))

/** Whether PostgreSQL is there. */
export const postgresAnswers = await answers(pgAddress)

const all: ReadonlyArray<Database & { readonly up: boolean }> = [
  { name: "SQLite", empty: sqlite, migrated: migratedFrom(sqlite), up: true },
  { name: "PostgreSQL", empty: postgres, migrated: migratedFrom(postgres), up: postgresAnswers },
  { name: "MariaDB", empty: mariadb, migrated: migratedFrom(mariadb), up: await answers(mysqlAddress) }
]

/** Runs the suite once per database. */
export const onDatabases = (
  title: string,
  suite: (db: Database) => void,
  names: ReadonlyArray<Database["name"]> = ["SQLite", "PostgreSQL", "MariaDB"]
): void => {
  for (const db of all.filter((candidate) => names.includes(candidate.name))) {
    const required = process.env.CI === "true"
    if (!db.up) console.warn(`${title}: ${db.name} does not answer; its tests are ${required ? "failing" : "skipped"}`)
    describe.skipIf(!db.up && !required)(`${title} on ${db.name}`, () => suite(db))
  }
}
