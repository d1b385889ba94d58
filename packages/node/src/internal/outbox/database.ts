/** The SQL client of a dispatcher. Its driver is loaded when a URL asks for it, so that nobody installs one that they do not use. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as SqlClient from "effect/sql/SqlClient"
import type { OutboxDatabase } from "../../OutboxDispatcherOptions.ts"
import * as PromiseCall from "../promiseCall.ts"

type Client = Layer.Layer<SqlClient.SqlClient, unknown>

/** The database cannot be used as it is given. Nothing of the URL but its scheme is shown: it may hold a password. */
export class UnusableDatabase extends Data.TaggedError("UnusableDatabase")<{
  readonly found: string
  readonly allowed: string
}> {
  override get message(): string {
    return `database: found ${this.found}, allowed is ${this.allowed}`
  }
}

/** The relay listens, reads, marks and renews at the same time. */
const maxConnections = 4

/** The client of the database. Fails with `UnusableDatabase`, and as the function of the URL does. */
export const clientOf = (database: OutboxDatabase): Effect.Effect<Client, unknown> => {
  if (typeof database === "string") return ofUrl(database)
  if (typeof database === "function") return Effect.flatMap(PromiseCall.fromPromise(database), ofUrl)
  return Layer.isLayer(database) ? Effect.succeed(database) : Effect.fail(unusable("something else"))
}

const unusable = (found: string) =>
  new UnusableDatabase({
    found,
    allowed: "a URL that begins with postgres:// or mysql://, a function that answers with one, or a layer"
  })

const ofUrl = (text: unknown): Effect.Effect<Client, unknown> => {
  const url = typeof text === "string" ? URL.parse(text) : null
  switch (url?.protocol) {
    case "postgres:":
    case "postgresql:":
      return Effect.map(
        loaded("@effect/sql-pg", () => import("@effect/sql-pg")),
        ({ PgClient }) => PgClient.layer({ url: Redacted.make(String(text)), maxConnections })
      )
    case "mysql:":
    case "mariadb:":
      return Effect.map(
        loaded("mysql2", () => import("@eventbus/outbox/MySql2")),
        (MySql2) => MySql2.layer({ ...mysqlLogin(url), maxConnections })
      )
    default:
      return Effect.fail(unusable(url === null || url === undefined ? "no URL" : `the scheme ${url.protocol}//`))
  }
}

const mysqlLogin = ({ hostname, port, pathname, username, password }: URL) => ({
  host: hostname,
  ...(port !== "" && { port: Number(port) }),
  database: decodeURIComponent(pathname.slice(1)),
  username: decodeURIComponent(username),
  ...(password !== "" && { password: Redacted.make(decodeURIComponent(password)) })
})

const loaded = <A>(name: string, load: () => Promise<A>): Effect.Effect<A, UnusableDatabase> =>
  Effect.tryPromise({
    try: load,
    catch: () =>
      new UnusableDatabase({
        found: `no package ${name}`,
        allowed: `a database whose driver is installed: npm install ${name}`
      })
  })
