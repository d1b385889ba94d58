/**
 * A PostgreSQL that a test may break: from the binaries beside `pg_ctl`, with its data in a folder of its own. PostgreSQL does not run
 * as root, so root starts it as the user `postgres`.
 */
import { execFile, execFileSync } from "node:child_process"
import { realpathSync } from "node:fs"
import { chown, mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Scope } from "effect"
import type { SqlClient } from "effect/sql"

/** Where `pg_ctl` and its siblings are; undefined when they are not on the PATH. */
const folder = (process.env.PATH ?? "")
  .split(delimiter)
  .map((path) => join(path, "pg_ctl"))
  .flatMap((path) => {
    try {
      return [dirname(realpathSync(path))]
    } catch {
      return []
    }
  })[0]

const idOf = (option: "-u" | "-g") => Number(execFileSync("id", [option, "postgres"], { encoding: "utf8" }))
const user = process.getuid?.() === 0 && folder !== undefined ? { uid: idOf("-u"), gid: idOf("-g") } : undefined

/** Whether a server can be started here. */
export const isAvailable: boolean = folder !== undefined

const run = (program: "initdb" | "pg_ctl", ...args: ReadonlyArray<string>) =>
  Effect.callback<void>((resume) => {
    // Its output goes nowhere: a server that inherits it would keep it open.
    execFile(join(folder ?? "", program), [...args], { ...user, cwd: tmpdir() }, (error) =>
      resume(error === null ? Effect.void : Effect.die(error))
    )
  })

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

export interface PrivatePostgres {
  readonly host: string
  readonly port: number
  readonly start: Effect.Effect<void>
  /** `immediate` is a crash: recovery follows the next start. `fast` breaks every connection and shuts down in order. */
  readonly stop: (mode: "immediate" | "fast") => Effect.Effect<void>
}

/** A running server; it is stopped and its data are deleted with the Scope. */
export const make: Effect.Effect<PrivatePostgres, never, Scope.Scope> = Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "outbox-postgres-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
  )
  if (user !== undefined) yield* Effect.promise(() => chown(home, user.uid, user.gid))
  const data = join(home, "data")
  const port = yield* freePort
  yield* run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
  const options = `-c port=${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c shared_buffers=16MB`
  const start = run("pg_ctl", "-D", data, "-o", options, "-l", join(home, "log"), "-w", "start")
  const stop = (mode: "immediate" | "fast") => run("pg_ctl", "-D", data, "-m", mode, "-w", "stop")
  yield* Effect.acquireRelease(start, () => Effect.ignore(Effect.exit(stop("immediate"))))
  return { host: "127.0.0.1", port, start, stop }
})

/** A client of it. */
export const client = ({ host, port }: Pick<PrivatePostgres, "host" | "port">): Layer.Layer<SqlClient.SqlClient> =>
  Layer.orDie(PgClient.layer({ host, port, username: "postgres", database: "postgres", maxConnections: 6 })).pipe(
    Layer.fresh
  )
