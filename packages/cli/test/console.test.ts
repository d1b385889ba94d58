/** OPS-22: `eventbus console`, its command line, and the console of a running process. The console on a cluster is in test/integration. */
import { createServer } from "node:http"
import type { AddressInfo, Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { start } from "../../admin/test/api.ts"
import { eventbus, folderWith } from "./eventbus.ts"
import { served } from "./served.ts"

const app = `eventbus:
  bindings:
    orders: { topic: orders, group-id: billing }
`

/** Nobody listens there. */
const away = ["--brokers", "127.0.0.1:9"]

const inFolder = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(folderWith({ "app.yaml": app, "bad.yaml": "eventbus: { bindings: { orders: {} } }\n" }), (folder) =>
    eventbus(folder, "console", ...args)
  )

/** A server that answers everything so. */
const answering = (status: number, body: string, headers: Record<string, string> = {}) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer((_, response) => response.writeHead(status, headers).end(body))
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

describe("eventbus console", () => {
  it.live("OPS-22 a wrong command line is exit code 2, and says what is right", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [[], /^name the configuration, or a running process by --url, and not both\n$/],
        [["app.yaml", "--url", "http://localhost:1"], /^name the configuration, or a running process by --url/],
        [["app.yaml", "--port", "70000"], /^--port takes a port, from 0 to 65535; 0 is a free one\n$/],
        [["app.yaml", "--host", "0.0.0.0"], /^--host lets other machines in, and without a token/],
        [["app.yaml", "--brokers", "localhost"], /^--brokers is "localhost"; allowed is host:port/],
        [["--url", "http://localhost:1", "--write"], /^--url has no other flag beside it but --json/],
        [["--url", "http://localhost:1", "--port", "1"], /^--url has no other flag beside it but --json/],
        [["--url", "localhost"], /^--url is "localhost"; allowed is http:\/\/host:port/]
      ]
      for (const [args, message] of wrong) {
        const { code, out, err } = yield* inFolder(...args)
        assert.deepStrictEqual([code, out], [2, ""], err)
        assert.match(err, message)
      }
    })
  )

  it.live("OPS-22 a file with mistakes is exit code 1, and names them; one that is not there is named, too", () =>
    Effect.gen(function* () {
      const bad = yield* inFolder("bad.yaml")
      assert.deepStrictEqual([bad.code, bad.out], [1, ""])
      assert.match(bad.err, /^bad\.yaml:1:\d+: eventbus\.bindings\.orders\.topic: found nothing/)
      const none = yield* inFolder("none.yaml")
      assert.deepStrictEqual([none.code, none.out], [1, ""])
      assert.match(none.err, /none\.yaml/)
    })
  )

  it.live("OPS-22 a cluster that is away is exit code 3, and no address is printed", () =>
    Effect.gen(function* () {
      const { code, out, err } = yield* inFolder("app.yaml", ...away)
      assert.deepStrictEqual([code, out], [3, ""])
      assert.match(err, /127\.0\.0\.1:9/)
    })
  )

  it.live("OPS-22 a port that is taken is named", () =>
    Effect.gen(function* () {
      const port = new URL(yield* answering(200, "")).port
      const { code, out, err } = yield* inFolder("app.yaml", ...away, "--port", port)
      assert.deepStrictEqual([code, out], [1, ""])
      assert.match(err, new RegExp(`^--port ${port}: listen EADDRINUSE`))
    })
  )

  it.live("OPS-22 --url prints the address of the console of the process, at any prefix, and sends no credential", () =>
    Effect.gen(function* () {
      const url = yield* served((yield* start({ prefix: "/ops/bus" })).web)
      const address = `${url}/ops/bus/console`
      assert.deepStrictEqual(yield* inFolder("--url", `${url}/ops/bus/`), { code: 0, out: `${address}\n`, err: "" })
      const { out } = yield* inFolder("--url", `${url}/ops/bus`, "--json")
      assert.deepStrictEqual(JSON.parse(out), { url: address })
    })
  )

  it.live("OPS-22 --url of a process without a console is exit code 1, and of none that answers 3", () =>
    Effect.gen(function* () {
      const without = yield* served((yield* start({ console: false })).web)
      const stranger = yield* answering(200, "<title>A shop</title>", { "content-type": "text/html" })
      for (const url of [without, stranger]) {
        const { code, out, err } = yield* inFolder("--url", url)
        assert.deepStrictEqual([code, out], [1, ""])
        assert.strictEqual(err, `${url}/eventbus/console is not the console of an admin API\n`)
      }
      const elsewhere = yield* answering(302, "", { location: "http://localhost:1/" })
      for (const url of ["http://127.0.0.1:9", elsewhere]) {
        const { code, out, err } = yield* inFolder("--url", url)
        assert.deepStrictEqual([code, out], [3, ""])
        assert.match(err, new RegExp(`^${url} gives no answer: `))
      }
    })
  )
})
