/**
 * The database of the outbox examples: the one in `DATABASE_URL` (`postgres://…`, or `file:/path` for SQLite), otherwise SQLite inside this process.
 */
import { PgClient } from "@effect/sql-pg"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Config, Effect, Layer, Redacted } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

export const layer: Layer.Layer<SqlClient.SqlClient, Config.ConfigError | SqlError.SqlError> = Layer.unwrap(
  Effect.map(
    Config.withDefault(Config.Redacted("DATABASE_URL"), Redacted.make("file::memory:")),
    (url): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> => {
      const file = /^file:(.*)$/.exec(Redacted.value(url))
      return file === null ? PgClient.layer({ url }) : NodeSqlite.layer({ filename: file[1] ?? "" })
    }
  )
)
