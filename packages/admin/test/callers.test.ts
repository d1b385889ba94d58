/** Strangers and their requests: other spellings of a path, proxies, forged lines, callers that hang up; and functions of the program that misbehave. */
import { createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { AdminServer, AdminWeb, Authorizer, EventBusAdmin } from "@eventbus/admin"
import { Binding, Broker } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Redacted, Scope } from "effect"
import { HttpServer } from "effect/http"
import { TestClock } from "effect/testing"
import { binding, callOf, everything, start, token } from "./api.ts"

const listen = (listener: AdminWeb.AdminWeb["nodeListener"]) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) =>
        listener(request, response, () => void response.writeHead(418).end())
      )
      const close = () => void server.close().closeAllConnections()
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({ port: (server.address() as AddressInfo).port, close }))
      )
    }),
    ({ close }) => Effect.sync(close)
  )

/** Asks with a path as it is: `fetch` would normalise it. */
const statusOf = (port: number, path: string): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const socket = connect(port, "127.0.0.1")
    let text = ""
    socket.on("data", (bytes) => (text += bytes.toString()))
    socket.on("close", () => resume(Effect.succeed(Number(text.split(" ")[1]))))
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
    )
  })

const spellings = [
  "/EVENTBUS/bindings",
  "/eventbus/BINDINGS",
  "/eventbus//bindings",
  "//eventbus/bindings",
  "//x/eventbus/bindings",
  "/x/../eventbus/bindings",
  "/x/%2e%2E/eventbus/bindings",
  "/./eventbus/bindings",
  "/eventbus/./bindings",
  "/eventbu%73/bindings",
  "/eventbus/bindings/orders/..",
  "/x\\..\\eventbus/bindings",
  "/HEALTH/live",
  "//health/live"
]

const withServer = Effect.fnUntraced(function* (options: Omit<AdminServer.Options, "port" | "host">) {
  const memory = yield* MemoryBroker.make()
  yield* memory.createTopic("orders", { partitions: 1 })
  const program = EventBusAdmin.layer().pipe(
    Layer.provideMerge(Binding.layer(binding())),
    Layer.provide(Layer.succeed(Broker.Broker, memory.broker))
  )
  const scope = yield* Scope.make()
  const server = AdminServer.layer(program, { port: 0, host: "127.0.0.1", ...options })
  const context = yield* Layer.buildWithScope(server, scope)
  const { address } = yield* Effect.provideContext(HttpServer.HttpServer, context)
  return { port: (address as { readonly port: number }).port, close: Scope.close(scope, Exit.void) }
})

describe("OPS-16 another spelling of a path, which a rule in front of the API does not know,", () => {
  it.live("is no route of the server of its own", () =>
    Effect.gen(function* () {
      const { port, close } = yield* withServer({ authorizer: everything })
      for (const path of spellings) assert.strictEqual(yield* statusOf(port, path), 404, path)
      for (const path of ["/eventbus/bindings", "/eventbus/health", "http://localhost/eventbus/bindings"])
        assert.strictEqual(yield* statusOf(port, path), 200, path)
      yield* close
    }).pipe(Effect.provide(Logger.layer([])))
  )

  it.live("goes on to the next handler of a framework", () =>
    Effect.gen(function* () {
      const { web } = yield* start()
      const { port } = yield* listen(web.nodeListener)
      for (const path of spellings) assert.include([404, 418], yield* statusOf(port, path), path)
      assert.strictEqual(yield* statusOf(port, "/x/../eventbus/bindings"), 418)
      assert.strictEqual(yield* statusOf(port, "/eventbus/bindings"), 200)
    })
  )
})

describe("OPS-16 without an authorizer", () => {
  it.live(
    "a request that any common proxy has marked, or that a page of another site sends, counts as one from elsewhere",
    () =>
      Effect.gen(function* () {
        const { call } = yield* start({ authorizer: undefined })
        const marks = [
          ...["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix"],
          ...["x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip", "cf-ray"],
          ...["x-envoy-external-address", "x-original-url", "x-amzn-trace-id", "fastly-client-ip"]
        ]
        const callers = [...marks.map((name) => ({ [name]: "1" })), { "sec-fetch-site": "cross-site" }]
        for (const mark of callers) {
          const headers = { host: "localhost", ...mark } as Record<string, string>
          const answer = yield* call("GET", "/eventbus/bindings", { token: "", remoteAddress: "127.0.0.1", headers })
          assert.deepStrictEqual([answer.status, answer.body._tag], [403, "LoopbackOnly"], JSON.stringify(mark))
        }
      })
  )
})

const logging = Effect.fnUntraced(function* (options: AdminWeb.Options) {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  const { context } = yield* start()
  const web = yield* AdminWeb.make(options).pipe(Effect.provideContext(context), Effect.provide(Logger.layer([logger])))
  return { call: callOf(web), web, lines: () => lines.filter((line) => line.startsWith("Admin API")) }
})

describe("OPS-16 the log of changes", () => {
  it.live("has one line for each change, whatever the names in it are", () =>
    Effect.gen(function* () {
      const name = "eve\nAdmin API: purge of binding 'default:orders' by boss: done\u2028"
      const { call, lines } = yield* logging({ authorizer: () => Effect.succeed({ name }) })
      yield* call("POST", "/eventbus/bindings/a%0Ab/pause")
      const escaped = "eve\\u000aAdmin API: purge of binding 'default:orders' by boss: done\\u2028"
      assert.deepStrictEqual(lines(), [
        `Admin API: pause of binding 'a\\u000ab' by ${escaped}: refused (BindingNotFound)`
      ])
    })
  )

  it.live("has who did it, also when the name can be read only once", () =>
    Effect.gen(function* () {
      let reads = 0
      const authorizer: Authorizer.Authorizer = () =>
        Effect.succeed({
          get name() {
            reads += 1
            if (reads > 1) throw new Error("read too often")
            return "on-call"
          }
        })
      const { call, lines } = yield* logging({ authorizer })
      assert.strictEqual((yield* call("POST", "/eventbus/bindings/orders/pause")).status, 200)
      assert.deepStrictEqual(lines(), ["Admin API: pause of binding 'default:orders' by on-call: done"])
    })
  )
})

describe("ruling 86: functions that the program gives the API", () => {
  for (const [what, authorizer] of Object.entries({
    "cannot be interrupted": () => Effect.uninterruptible(Effect.never),
    "never ends": () => Effect.never
  }))
    it.effect(`OPS-16 an authorizer that ${what} is answered for after 10 seconds, and holds up no close`, () =>
      Effect.gen(function* () {
        const { call } = yield* start({ authorizer })
        const answer = yield* Effect.forkChild(call("GET", "/eventbus/bindings"), { startImmediately: true })
        yield* Effect.yieldNow
        yield* TestClock.adjust("9 seconds")
        assert.isUndefined(answer.pollUnsafe())
        yield* TestClock.adjust("1 seconds")
        assert.deepStrictEqual((yield* Fiber.join(answer)).body._tag, "AuthorizerFailed")
      })
    )

  const traps = () => {
    throw new Error("a trap")
  }
  const hostile = new Proxy({}, { get: traps, has: traps, getPrototypeOf: traps })
  const readOnce = Object.create(Authorizer.Forbidden.prototype, { permission: { get: traps } })
  for (const [what, refusal] of Object.entries({
    "fails with a Proxy whose traps throw": Effect.fail(hostile as Authorizer.Forbidden),
    "dies with a Proxy whose traps throw": Effect.die(hostile),
    "fails with a Forbidden whose getter throws": Effect.fail(readOnce as Authorizer.Forbidden)
  }))
    it.live(`OPS-16 an authorizer that ${what} lets nobody in: 503`, () =>
      Effect.gen(function* () {
        const { call } = yield* start({ authorizer: () => refusal })
        const { status, body } = yield* call("POST", "/eventbus/bindings/orders/pause")
        assert.deepStrictEqual([status, body._tag], [503, "AuthorizerFailed"])
      })
    )

  it.live("OPS-19 `metrics` that gives no text is a 500, and the log says why", () =>
    Effect.gen(function* () {
      const kinds: ReadonlyArray<Effect.Effect<unknown>> = [
        Effect.succeed(undefined),
        Effect.die(new Error("canary")),
        Effect.flatMap(Effect.void, () => 5 as unknown as Effect.Effect<string>),
        Effect.interrupt
      ]
      for (const metrics of kinds) {
        const lines: Array<string> = []
        const logger = Logger.make(({ logLevel }) => void lines.push(logLevel))
        const { context } = yield* start()
        const web = yield* AdminWeb.make({ metrics: metrics as Effect.Effect<string> }).pipe(
          Effect.provideContext(context),
          Effect.provide(Logger.layer([logger]))
        )
        const answer = yield* callOf(web)("GET", "/metrics")
        assert.strictEqual(answer.status, 500)
        assert.notInclude(answer.text, "canary")
        assert.include(lines, "Error")
      }
    })
  )
})

describe("the close of the server", () => {
  it.live("waits two seconds at most for callers that say nothing, and for an authorizer that never answers", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const authorizer = () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.uninterruptible(Effect.never))
      const { port, close } = yield* withServer({ authorizer })
      const half = connect(port, "127.0.0.1")
      half.on("error", () => undefined)
      half.write("GET /eventbus/bindings HTTP/1.1\r\nHost: loc")
      const hanging = yield* Effect.forkChild(statusOf(port, "/eventbus/bindings"))
      yield* Deferred.await(asked)
      const isClosed = yield* Effect.timeoutOption(Effect.as(close, true), "8 seconds")
      half.destroy()
      yield* Fiber.interrupt(hanging)
      assert.strictEqual(isClosed._tag, "Some")
    }).pipe(Effect.provide(Logger.layer([])))
  )
})

describe("CFG-08 options that cannot be used are refused at once, with path and what is allowed", () => {
  const redacted = (text: unknown) => Redacted.make(text as string)
  const good = { token: redacted("t"), name: "n", permissions: ["view"] }
  const refusedTokens: ReadonlyArray<readonly [string, unknown]> = [
    ["tokens[0].token", { ...good, token: redacted("secret\n") }],
    ["tokens[0].token", { ...good, token: redacted("") }],
    ["tokens[0].token", { ...good, token: redacted(undefined) }],
    ["tokens[0].token", { ...good, token: "secret with blanks" }],
    ["tokens[0].name", { ...good, name: undefined }],
    ["tokens[0].permissions", { ...good, permissions: ["View"] }],
    ["tokens[0].permissions", { ...good, permissions: "preview" }],
    ["tokens[0].bindings", { ...good, bindings: ["orders"] }],
    ["tokens[0].bindings", { ...good, bindings: "default:orders" }]
  ]
  const reasonOf = (make: () => unknown): string => {
    try {
      make()
      return "it was taken"
    } catch (error) {
      return String(error)
    }
  }

  for (const [path, entry] of refusedTokens)
    it(`${path}: ${JSON.stringify(entry)}`, () => {
      const reason = reasonOf(() => Authorizer.fromTokens([entry as Authorizer.Token]))
      assert.include(reason, `ConfigurationValidation`)
      assert.include(reason, path)
      assert.notInclude(reason, "secret")
    })

  it("a token that is listed twice", () => {
    const twice = [good, { ...good, name: "m" }] as unknown as ReadonlyArray<Authorizer.Token>
    assert.include(
      reasonOf(() => Authorizer.fromTokens(twice)),
      "tokens[1].token"
    )
  })

  const refusedOptions: ReadonlyArray<readonly [string, unknown]> = [
    ...["admin", "", "/:tenant", "/a*", "/a b", "/a//b", 7, null].map((value) => ["prefix", value] as const),
    ["probes", "health"],
    ["authorizer", false],
    ["authorizer", {}],
    ["readOnly", "false"],
    ["readOnly", null],
    ["metrics", "text"]
  ]
  for (const [name, value] of refusedOptions)
    it.live(`${name}: ${JSON.stringify(value)}`, () =>
      Effect.gen(function* () {
        const { context } = yield* start()
        const made = yield* Effect.exit(
          Effect.suspend(() => Effect.provideContext(AdminWeb.make({ [name]: value } as AdminWeb.Options), context))
        )
        assert.isTrue(Exit.isFailure(made))
        assert.include(String(made), `AdminRoutes.${name}`)
      })
    )

  it("a port or a host that cannot be one", () => {
    for (const [name, wrong] of [
      ["port", { port: "8080" }],
      ["port", { port: Number.NaN }],
      ["port", { port: 65_536 }],
      ["host", { port: 0, host: "" }]
    ] as const) {
      const layer = () => AdminServer.layer(Layer.empty as never, wrong as unknown as AdminServer.Options)
      assert.throws(layer, `AdminServer.${name}`)
    }
  })

  it.live("prefixes of several segments, and the root, are taken", () =>
    Effect.gen(function* () {
      for (const prefix of ["/", "/a", "/a/b.c/", "/~x/-y_"] as const) {
        const { call } = yield* start({ prefix })
        assert.strictEqual((yield* call("GET", `${prefix.replace(/\/$/, "")}/bindings`)).status, 200, prefix)
      }
    })
  )
})
