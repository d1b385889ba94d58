/** Clients of the PostgreSQL and the MariaDB that tests use: local ones, unless `OUTBOX_TEST_PG` or `OUTBOX_TEST_MYSQL` names another. */
import { PgClient } from "@effect/sql-pg"
import * as MySql2 from "@eventbus/outbox/MySql2"
import { loginFrom, type Service } from "../services/login.ts"

const localPostgres = { host: "127.0.0.1", port: 5432, username: "postgres", database: "test" }
const localMariadb = { host: "127.0.0.1", port: 3306, username: "root", database: "test" }

export const pgLogin = loginFrom("OUTBOX_TEST_PG", localPostgres)
export const mysqlLogin = loginFrom("OUTBOX_TEST_MYSQL", localMariadb)

export const postgresService: Service = {
  name: "PostgreSQL",
  variable: "OUTBOX_TEST_PG",
  example: "postgres://user:password@host:5432/database",
  login: pgLogin
}

export const mariadbService: Service = {
  name: "MariaDB",
  variable: "OUTBOX_TEST_MYSQL",
  example: "mysql://user:password@host:3306/database",
  login: mysqlLogin
}

/** A PostgreSQL client whose unqualified names are in the given schema. */
export const pgIn = (schema: string, maxConnections = 6, login = pgLogin) =>
  PgClient.layer({ ...login, maxConnections, startupOptions: `-c search_path=${schema}` })

/** A MariaDB client on the given database. */
export const mysqlIn = (database: string) => MySql2.layer({ ...mysqlLogin, database, maxConnections: 6 })
