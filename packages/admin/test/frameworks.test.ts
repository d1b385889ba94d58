/** OPS-17: Express, Fastify and Hono mount the same API, each over a socket; and so does the server of its own. */
import { createServer, request as httpRequest, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { AdminServer, type AdminWeb, EventBusAdmin } from "@eventbus/admin"
import { Binding, Broker } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { serve } from "@hono/node-server"
import { getConnInfo } from "@hono/node-server/conninfo"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import express from "express"
import fastify from "fastify"
import { Hono } from "hono"
import { binding, counting, everything, handlers, ownServer, start, token } from "./api.ts"

interface Mounted {
  readonly port: number
  readonly close: () => void
}

const listening = (server: Server): Effect.Effect<Mounted> =>
  Effect.callback((resume) => {
    const done = () => {
      const { port } = server.address() as AddressInfo
      resume(Effect.succeed({ port, close: () => void server.close().closeAllConnections() }))
    }
    if (server.listening) done()
    else server.listen(0, "127.0.0.1", done)
  })

type Mount = (web: AdminWeb.AdminWeb, prefix?: string) => Effect.Effect<Mounted>

/** Mounts the API beside a route of the program's own, with the framework's parsers in front. */
const frameworks: Readonly<Record<string, Mount>> = {
  Express: (web) =>
    Effect.suspend(() => {
      const app = express()
      app.use(express.json(), express.urlencoded(), express.text())
      app.use(web.nodeListener)
      app.post("/own", (request, response) => void response.json({ own: request.body }))
      return listening(createServer(app))
    }),
  "Express, below a path": (web, prefix = "/eventbus") =>
    Effect.suspend(() => {
      const app = express()
      app.use(express.json())
      app.use([prefix, "/health"], web.nodeListener)
      app.post("/own", (request, response) => void response.json({ own: request.body }))
      return listening(createServer(app))
    }),
  Fastify: (web, prefix = "/eventbus") =>
    Effect.promise(async () => {
      const app = fastify()
      for (const path of [`${prefix}/*`, "/health/*"])
        app.all(path, (request, reply) => {
          reply.hijack()
          web.nodeListener(Object.assign(request.raw, { body: request.body }), reply.raw)
        })
      app.post("/own", async (request) => ({ own: request.body }))
      await app.listen({ port: 0, host: "127.0.0.1" })
      const { port } = app.server.address() as AddressInfo
      return { port, close: () => void app.close() }
    }),
  Hono: (web, prefix = "/eventbus") =>
    Effect.callback((resume) => {
      const app = new Hono()
      const admin = (context: Parameters<typeof getConnInfo>[0]) =>
        web.handler(context.req.raw, { remoteAddress: getConnInfo(context).remote.address })
      app.all(`${prefix}/*`, admin).all("/health/*", admin)
      app.post("/own", async (context) => context.json({ own: await context.req.json() }))
      const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
        resume(Effect.succeed({ port, close: () => void server.close() }))
      )
    }),
  "node:http": (web) => Effect.suspend(() => listening(createServer(web.nodeListener)))
}

const call = Effect.fnUntraced(function* (port: number, method: string, path: string, body?: string, bearer = token) {
  const headers = {
    authorization: `Bearer ${bearer}`,
    ...(body === undefined ? {} : { "content-type": "application/json" })
  }
  const init = { method, headers, ...(body === undefined ? {} : { body }) }
  const response = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}${path}`, init))
  const text = yield* Effect.promise(() => response.text())
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text), headers: response.headers }
})

const payments = { name: "payments", topic: "payments", groupId: "payers", handler: "charge" }

describe("OPS-17 mounted in a framework", () => {
  for (const [framework, mount] of Object.entries(frameworks)) {
    it.live(`${framework}: reads, commands, registers from a body that was read, and answers errors`, () =>
      Effect.gen(function* () {
        const { web, connector } = yield* start()
        const { port } = yield* Effect.acquireRelease(mount(web), ({ close }) => Effect.sync(close))
        const list = yield* call(port, "GET", "/eventbus/bindings")
        assert.deepStrictEqual([list.status, list.body[0].key], [200, "default:orders"])
        const paused = yield* call(port, "POST", "/eventbus/bindings/default:orders/pause")
        assert.deepStrictEqual([paused.status, paused.body.state], [200, "PAUSED"])
        const created = yield* call(port, "POST", "/eventbus/bindings", JSON.stringify(payments))
        assert.deepStrictEqual([created.status, created.body.key], [201, "default:payments"])
        const invalid = yield* call(port, "POST", "/eventbus/bindings", JSON.stringify({ ...payments, concurrency: 0 }))
        assert.deepStrictEqual([invalid.status, invalid.body.issues[0].path], [400, "concurrency"])
        const query = yield* call(port, "POST", "/eventbus/bindings/orders/dlt/replay?count=x", "{}")
        assert.deepStrictEqual([query.status, query.body.issues[0].path], [400, "count"])
        const unknown = yield* call(port, "DELETE", "/eventbus/bindings/nobody")
        assert.deepStrictEqual([unknown.status, unknown.body._tag], [404, "BindingNotFound"])
        const refused = yield* call(port, "GET", "/eventbus/bindings", undefined, "wrong")
        assert.deepStrictEqual([refused.status, refused.headers.get("www-authenticate")], [401, "Bearer"])
        const probe = yield* call(port, "GET", "/health/live", undefined, "wrong")
        assert.deepStrictEqual([probe.status, probe.body], [200, { status: "UP" }])
        const gone = yield* call(port, "DELETE", "/eventbus/bindings/payments")
        assert.deepStrictEqual([gone.status, (yield* connector.listBindings).length], [200, 1])
        if (framework === "node:http") return
        const own = yield* call(port, "POST", "/own", JSON.stringify({ a: 1 }))
        assert.deepStrictEqual([own.status, own.body], [200, { own: { a: 1 } }])
      })
    )

    it.live(`${framework}: without an authorizer a caller on this machine reads`, () =>
      Effect.gen(function* () {
        const { web } = yield* start({ authorizer: undefined })
        const { port } = yield* Effect.acquireRelease(mount(web), ({ close }) => Effect.sync(close))
        const list = yield* call(port, "GET", "/eventbus/bindings")
        assert.deepStrictEqual([list.status, list.body.length], [200, 1])
        const paused = yield* call(port, "POST", "/eventbus/bindings/orders/pause")
        assert.deepStrictEqual([paused.status, paused.body._tag], [403, "ReadOnly"])
        // A page whose host leads here sends its own name.
        assert.strictEqual(yield* statusFor(port, "rebound.example.org"), 403)
      })
    )
  }

  it.live("a header or URL that no request can have is 400, and the server goes on", () =>
    Effect.gen(function* () {
      const { web } = yield* start()
      const { port } = yield* Effect.acquireRelease(frameworks["node:http"]!(web), ({ close }) => Effect.sync(close))
      assert.strictEqual(yield* statusFor(port, "exa mple:99999"), 400)
      for (const framework of ["Express", "node:http"]) {
        const mounted = yield* Effect.acquireRelease(frameworks[framework]!(web), ({ close }) => Effect.sync(close))
        assert.include([400, 404], yield* statusFor(mounted.port, "localhost", "http://["), framework)
      }
      assert.strictEqual((yield* call(port, "GET", "/eventbus/bindings")).status, 200)
    })
  )
})

/** `fetch` does not let a program set the host. */
const statusFor = (port: number, host: string, path = "/eventbus/bindings"): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const request = httpRequest({ port, host: "127.0.0.1", path, headers: { host } }, (response) => {
      response.resume()
      resume(Effect.succeed(response.statusCode ?? 0))
    })
    request.end()
  })

describe("the server of its own", () => {
  it.live("OPS-19, ADM-14 answers while the program starts and while it drains, and stops last", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const mayEnd = yield* Deferred.make<void>()
      const mayStart = yield* Deferred.make<void>()
      const handler = () => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(mayEnd))
      const memory = yield* MemoryBroker.make()
      yield* memory.createTopic("orders", { partitions: 1 })
      const port = yield* freePort
      const program = EventBusAdmin.layer({ handlers }).pipe(
        Layer.provideMerge(Binding.layer(binding("orders", { handler }))),
        Layer.provide(Layer.effectDiscard(Deferred.await(mayStart))),
        Layer.provide(Layer.succeed(Broker.Broker, memory.broker))
      )
      const scope = yield* Scope.make()
      const server = AdminServer.layer(program, { port, host: "127.0.0.1", authorizer: everything })
      const built = yield* Effect.forkChild(Layer.buildWithScope(server, scope), { startImmediately: true })

      const until = Effect.fnUntraced(function* (path: string, status: number) {
        for (let round = 0; round < 1_500; round++) {
          const answer = yield* Effect.catchCause(call(port, "GET", path), () => Effect.succeed({ status: 0 }))
          if (answer.status === status) return true
          yield* Effect.sleep("20 millis")
        }
        return false
      })
      assert.isTrue(yield* until("/health/live", 200))
      assert.deepStrictEqual(
        [(yield* call(port, "GET", "/health/ready")).status, (yield* call(port, "GET", "/eventbus/bindings")).status],
        [503, 503]
      )
      yield* Deferred.succeed(mayStart, undefined)
      assert.isTrue(yield* until("/health/ready", 200))
      assert.strictEqual((yield* call(port, "GET", `/eventbus/bindings/${"n".repeat(300)}`)).body.binding.length, 300)

      yield* memory.append("orders", 0, [{ key: null, value: new TextEncoder().encode("good") }])
      yield* Deferred.await(begun)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      assert.isTrue(yield* until("/health/ready", 503))
      assert.strictEqual((yield* call(port, "GET", "/eventbus/bindings")).body.length, 1)
      const refused = yield* call(port, "POST", "/eventbus/bindings", JSON.stringify(payments))
      assert.deepStrictEqual([refused.status, refused.body._tag], [503, "ConnectorClosed"])
      yield* Deferred.succeed(mayEnd, undefined)
      yield* Fiber.join(closing)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(built)))
      assert.strictEqual(yield* memory.committed("orders-group", "orders", 0), 1n)
    }).pipe(Effect.provide(Logger.layer([])))
  )
})

const freePort = Effect.flatMap(
  Effect.suspend(() => listening(createServer())),
  ({ port, close }) => Effect.as(Effect.sync(close), port)
)

type Counted = Effect.Success<ReturnType<typeof counting>>

/** Every way to serve the API. */
const servers: Readonly<
  Record<string, (counted: Counted, prefix: `/${string}`) => Effect.Effect<Mounted, unknown, Scope.Scope>>
> = {
  ...Object.fromEntries(
    Object.entries(frameworks).map(([framework, mount]) => [
      framework,
      ({ web }: Counted, prefix: string) => Effect.acquireRelease(mount(web, prefix), ({ close }) => Effect.sync(close))
    ])
  ),
  "the server of its own": ({ admin }, prefix) =>
    Effect.map(ownServer(admin, prefix), (port) => ({ port, close: () => {} }))
}

const pageIsWhole = (address: string) =>
  Effect.promise(async () => {
    const page = await fetch(`${address}/console`)
    assert.strictEqual(page.status, 200)
    assert.match(page.headers.get("content-security-policy")!, /script-src 'sha256-.*frame-ancestors 'none'/)
    assert.strictEqual(page.headers.get("content-encoding"), "gzip")
    assert.match(await page.text(), /^<!doctype html>.*<\/html>\n$/s)
    // `fetch` of Node.js has no cache, and so gives a 304 on.
    const again = await fetch(`${address}/console`, { headers: { "if-none-match": page.headers.get("etag")! } })
    assert.deepStrictEqual([again.status, await again.text()], [304, ""])
  })

/** One event after the other, as text, until the caller leaves. */
const streamOf = Effect.fnUntraced(function* (address: string, headers: Readonly<Record<string, string>> = {}) {
  const leaving = new AbortController()
  const response = yield* Effect.promise(() =>
    fetch(address, { headers: { authorization: `Bearer ${token}`, ...headers }, signal: leaving.signal })
  )
  assert.deepStrictEqual(
    [response.status, ...["content-type", "cache-control"].map((name) => response.headers.get(name))],
    [200, "text/event-stream", "no-store"]
  )
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  const next = Effect.promise(async () => {
    while (!rest.includes("\n\n")) rest += (await reader.read()).value ?? "\n\nthe stream has ended"
    const [event = "", ...others] = rest.split("\n\n")
    rest = others.join("\n\n")
    return event
  })
  return { next, leave: Effect.sync(() => leaving.abort()) }
})

const nextOf = (next: Effect.Effect<string>, holds: RegExp): Effect.Effect<string> =>
  Effect.flatMap(next, (event) => (holds.test(event) ? Effect.succeed(event) : nextOf(next, holds)))

describe("OPS-21 the console in a framework", () => {
  for (const [server, serve] of Object.entries(servers))
    for (const prefix of ["/eventbus", "/ops/bus"] as const)
      it.live(`${server}, below ${prefix}: the page is whole, and the stream ends with its caller`, () =>
        Effect.gen(function* () {
          const program = yield* start()
          const counted = yield* counting(program, { authorizer: everything, prefix })
          const { port } = yield* serve(counted, prefix)
          const address = `http://127.0.0.1:${port}${prefix}`
          yield* pageIsWhole(address)
          const first = yield* streamOf(`${address}/stream`)
          yield* program.connector.pause("orders")
          const paused = yield* nextOf(first.next, /"PAUSED"/)
          yield* first.leave
          const again = yield* streamOf(`${address}/stream`, { "last-event-id": /^id: (\w+)\n/.exec(paused)![1]! })
          assert.strictEqual(yield* again.next, "event: heartbeat\ndata: null")
          yield* again.leave
          // Neither stream has left anything behind that still looks at the state.
          yield* Effect.sleep("300 millis")
          const before = counted.looks()
          yield* Effect.sleep("1500 millis")
          assert.strictEqual(counted.looks(), before)
        })
      )
})
