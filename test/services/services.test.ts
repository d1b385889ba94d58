/** A developer's own servers, which want a password: suites on them are skipped with one line that says what to set, and fail under CI only. */
import { spawn } from "node:child_process"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { loginFrom, urlOf } from "./login.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The port of a server that `serve` makes of each connection. */
const listening = (serve: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer((socket) => serve(socket.on("error", () => {})))
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

/** PostgreSQL's ErrorResponse to the startup message. */
const refusesPostgres = (socket: Socket) => {
  const fields = ["SFATAL", "VFATAL", "C28P01", 'Mpassword authentication failed for user "postgres"']
  const body = Buffer.from(`${fields.join("\0")}\0\0`)
  const head = Buffer.from("E\0\0\0\0")
  head.writeInt32BE(body.length + 4, 1)
  socket.once("data", () => socket.end(Buffer.concat([head, body])))
}

/** MariaDB's ERR packet in the place of its greeting. */
const refusesMariadb = (socket: Socket) => {
  const body = Buffer.concat([Buffer.from([0xff, 0x15, 0x04]), Buffer.from("#28000Access denied for user 'root'")])
  socket.end(Buffer.concat([Buffer.from([body.length, 0, 0, 0]), body]))
}

const refusesRedis = (socket: Socket) =>
  socket.on("data", (bytes) => {
    for (const _ of bytes.toString().matchAll(/\*\d+\r\n/g)) socket.write("-NOAUTH Authentication required.\r\n")
  })

interface Run {
  readonly code: number
  readonly output: string
}

/** Runs the contract of the idempotency stores, which needs all three servers, in a test run of its own. */
const runContract = (env: Record<string, string>) =>
  Effect.callback<Run>((resume) => {
    const args = ["node_modules/vitest/vitest.mjs", "run", "test/idempotency/storeContract.test.ts"]
    const { PATH = "", HOME = "" } = process.env
    const child = spawn(process.execPath, args, { cwd: root, env: { PATH, HOME, NO_COLOR: "1", ...env } })
    let output = ""
    const collect = (text: Buffer) => {
      output += text
    }
    child.stdout.on("data", collect)
    child.stderr.on("data", collect)
    child.on("close", (code) => resume(Effect.succeed({ code: code ?? -1, output })))
    return Effect.sync(() => child.kill())
  })

const lines = [
  /PostgreSQL at 127\.0\.0\.1:\d+ cannot be used \(password authentication failed for user "postgres"\): set OUTBOX_TEST_PG=postgres:\/\/user:password@host:5432\/database/,
  /MariaDB at 127\.0\.0\.1:\d+ cannot be used \(.*Access denied for user 'root'.*\): set OUTBOX_TEST_MYSQL=mysql:\/\/user:password@host:3306\/database/,
  /Redis at 127\.0\.0\.1:\d+ cannot be used \(no connection within 2s: NOAUTH Authentication required\.\): set REDIS_TEST=redis:\/\/user:password@host:6379\/0/
]

const servers = Effect.gen(function* () {
  return {
    OUTBOX_TEST_PG: `127.0.0.1:${yield* listening(refusesPostgres)}`,
    OUTBOX_TEST_MYSQL: `127.0.0.1:${yield* listening(refusesMariadb)}`,
    REDIS_TEST: `127.0.0.1:${yield* listening(refusesRedis)}`
  }
})

describe("a server that wants a password", () => {
  it.live(
    "skips its suites, and one line says what to set",
    () =>
      Effect.gen(function* () {
        const { code, output } = yield* runContract(yield* servers)
        assert.strictEqual(code, 0, output)
        for (const line of lines) assert.match(output, line)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "fails its suites under CI",
    () =>
      Effect.gen(function* () {
        const { code, output } = yield* runContract({ ...(yield* servers), CI: "true" })
        assert.notStrictEqual(code, 0)
        for (const line of lines) assert.match(output, line)
      }).pipe(Effect.scoped),
    120_000
  )
})

describe("a login", () => {
  const defaults = { host: "127.0.0.1", port: 5432, username: "postgres", database: "test" }
  const from = (text: string) => {
    process.env["LOGIN_TEST"] = text
    return loginFrom("LOGIN_TEST", defaults)
  }

  it("is read from host:port or from a URL, and becomes a URL again", () => {
    assert.deepStrictEqual(from(""), defaults)
    assert.deepStrictEqual(from("db:5433"), { ...defaults, host: "db", port: 5433 })
    const login = from("postgres://me:s%2Fcret@db:5433/mine")
    const { password = Redacted.make(""), ...rest } = login
    assert.deepStrictEqual(rest, { host: "db", port: 5433, username: "me", database: "mine" })
    assert.strictEqual(Redacted.value(password), "s/cret")
    assert.strictEqual(urlOf("postgres", login, "?a=b"), "postgres://me:s%2Fcret@db:5433/mine?a=b")
    assert.strictEqual(urlOf("postgres", defaults), "postgres://postgres@127.0.0.1:5432/test")
  })
})
