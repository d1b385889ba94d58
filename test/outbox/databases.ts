/**
 * The databases that outbox tests run on: SQLite always, PostgreSQL and MariaDB where logging in works. Otherwise their tests are skipped, and one line says
 * what to set; with `CI=true` they fail. Every use gets a schema of its own, dropped at the end.
 */
import { randomBytes } from "node:crypto"
import { OutboxSchema } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { problemOf } from "../services/login.ts"
import { isSkipped, whenUsable } from "../services/suites.ts"
import { mariadbService, mysqlIn, mysqlLogin, pgIn, postgresService } from "./clients.ts"

export interface Database {
  readonly name: "PostgreSQL" | "MariaDB" | "SQLite"
  /** A fresh, empty schema. */
  readonly empty: Layer.Layer<SqlClient.SqlClient>
  /** A fresh schema with the outbox tables. */
  readonly migrated: Layer.Layer<SqlClient.SqlClient>
}

export const freshName = () => `ob_${randomBytes(6).toString("hex")}`

const migratedFrom = (empty: Layer.Layer<SqlClient.SqlClient>) =>
  Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(Layer.provideMerge(empty))

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

const postgres = withSchema(pgIn("public", 1), "SCHEMA", (name) => pgIn(name))

const mariadb = withSchema(mysqlIn(mysqlLogin.database), "DATABASE", mysqlIn)

const sqlite = Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))

const logIn = <E>(client: Layer.Layer<SqlClient.SqlClient, E>) =>
  Effect.scoped(
    Effect.flatMap(Layer.build(client), (context) =>
      Effect.provideContext(
        SqlClient.SqlClient.use((sql) => sql`SELECT 1`),
        context
      )
    )
  )

const [postgresProblem, mariadbProblem] = await Promise.all([
  problemOf(postgresService, logIn(pgIn("public", 1))),
  problemOf(mariadbService, logIn(mysqlIn(mysqlLogin.database)))
])

/** For single tests on PostgreSQL: `it.live.skipIf(skipPostgres)`. */
export const skipPostgres: boolean = isSkipped(postgresProblem)

const all: ReadonlyArray<Database & { readonly problem: string | undefined }> = [
  { name: "SQLite", empty: sqlite, migrated: migratedFrom(sqlite), problem: undefined },
  { name: "PostgreSQL", empty: postgres, migrated: migratedFrom(postgres), problem: postgresProblem },
  { name: "MariaDB", empty: mariadb, migrated: migratedFrom(mariadb), problem: mariadbProblem }
]

/** Runs the suite once per database. */
export const onDatabases = (
  title: string,
  suite: (db: Database) => void,
  names: ReadonlyArray<Database["name"]> = ["SQLite", "PostgreSQL", "MariaDB"]
): void => {
  for (const db of all.filter((candidate) => names.includes(candidate.name))) {
    whenUsable(`${title} on ${db.name}`, db.problem, () => suite(db))
  }
}
