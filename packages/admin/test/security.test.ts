/** Without an authorizer: this machine only, read-only. With one: permissions by action and binding. Never a secret. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { Effect, Logger, Redacted } from "effect"
import { type Answer, binding, callOf, eventually, everything, start, token } from "./api.ts"
import * as OutboxOf from "./outboxOf.ts"

const shown = ({ status, body }: Answer) => [status, body._tag]

const id = "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20"

/** Every route, with the permissions of which a caller needs one. */
const routes = [
  ["view", "GET", "/bindings"],
  ["view", "GET", "/bindings/orders"],
  ["view", "GET", "/bindings/orders/permissions"],
  ["view", "GET", "/health"],
  ["view", "GET", "/audit"],
  ["view", "GET", "/bindings/orders/held"],
  ["view", "GET", "/bindings/orders/parked"],
  ["view", "GET", "/fleet"],
  ["view", "GET", "/bindings/orders/dlt/stats"],
  ["view", "GET", "/bindings/orders/dlt/groups"],
  ["view", "GET", "/bindings/orders/dlt/records"],
  ["view", "GET", "/bindings/orders/dlt/runs"],
  ["transform", "GET", "/bindings/orders/dlt/records/0@0/transformed?transform=x"],
  ["transform", "GET", `/bindings/orders/dlt/plans/${id}/sample`],
  ["operate", "POST", "/bindings/orders/start"],
  ["operate", "POST", "/bindings/orders/stop"],
  ["operate", "POST", "/bindings/orders/pause"],
  ["operate", "POST", "/bindings/orders/resume"],
  ["discard", "POST", "/bindings/orders/held/0@0/skip?reason=x"],
  ["operate", "POST", "/bindings/orders/held/0@0/dead-letter?reason=x"],
  ["operate", "POST", "/bindings/orders/parked/0@0/retry?reason=x"],
  ["operate", "POST", "/bindings/orders/parked/0@0/skip?reason=x"],
  ["discard", "POST", "/bindings/orders/parked/accept-loss?keys=1&reason=x"],
  ["replay", "POST", "/bindings/orders/dlt/replay?count=1"],
  ["replay", "POST", "/bindings/orders/dlt/replay-to-tier?tier=1&count=1"],
  ["replay", "POST", "/bindings/orders/dlt/rehearsals"],
  ["replay|discard", "POST", "/bindings/orders/dlt/plans"],
  ["replay|discard", "POST", `/bindings/orders/dlt/plans/${id}/apply`],
  ["operate|replay|discard", "POST", `/bindings/orders/dlt/runs/${id}/pause`],
  ["operate|replay|discard", "POST", `/bindings/orders/dlt/runs/${id}/cancel`],
  ["replay|discard", "POST", `/bindings/orders/dlt/runs/${id}/resume`],
  ["replay|discard", "POST", `/bindings/orders/dlt/runs/${id}/rate`],
  ["discard", "DELETE", "/bindings/orders/dlt?olderThan=1d"],
  ["view", "GET", "/outbox/permissions"],
  ["view", "GET", "/outbox/dead/groups"],
  ["view", "GET", "/outbox/dead/events"],
  ["view", "GET", "/outbox/dead/events/e-0"],
  ["replay", "POST", "/outbox/dead/events/none/replay?reason=x"],
  ["discard", "POST", "/outbox/dead/events/none/discard?reason=x"],
  ["replay|discard", "POST", "/outbox/dead/plans"],
  ["replay|discard", "POST", "/outbox/dead/plans/none/apply"],
  ["operate|replay|discard", "POST", "/outbox/dead/runs/none/cancel"],
  ["admin", "POST", "/bindings"],
  ["admin", "DELETE", "/bindings/orders"]
] as const

/** An outbox with the dead event of the routes. */
const withEvent = Effect.gen(function* () {
  const { outbox, die } = yield* OutboxOf.make
  yield* die({ eventId: "e-0" })
  return outbox
})

describe("OPS-16 without an authorizer", () => {
  it.live("callers on this machine may read, and nobody changes anything", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start({
        authorizer: undefined,
        audit: {},
        fleet: {},
        outbox: yield* withEvent
      })
      const states = Effect.map(connector.listBindings, (all) => all.map(({ state }) => state))
      // A process of a fleet holds its bindings until it has read the holds.
      const before = yield* eventually(states, (all) => all.every((state) => state === "RUNNING"))
      for (const [permission, method, path] of routes)
        for (const remoteAddress of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) {
          const answer = yield* call(method, `/eventbus${path}`, {
            remoteAddress,
            token: "",
            headers: { host: "localhost:8080" }
          })
          if (permission === "view") assert.strictEqual(answer.status, 200, path)
          else assert.deepStrictEqual(shown(answer), [403, "ReadOnly"], path)
        }
      assert.deepStrictEqual(yield* states, before)
    })
  )

  it.live("callers from elsewhere, of unknown address, behind a proxy, or under another host's name get nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ authorizer: undefined })
      const host = "localhost"
      const callers = [
        { remoteAddress: "10.0.0.7", headers: { host } },
        { remoteAddress: "::ffff:10.0.0.7", headers: { host } },
        { remoteAddress: "127.0.0.1.example.org", headers: { host } },
        { headers: { host } },
        { remoteAddress: "127.0.0.1", headers: { host, "x-forwarded-for": "10.0.0.7" } },
        { remoteAddress: "127.0.0.1", headers: { host, forwarded: "for=127.0.0.1" } },
        { remoteAddress: "127.0.0.1", headers: { host: "rebound.example.org" } },
        { remoteAddress: "127.0.0.1", headers: { host: "localhost.example.org" } }
      ]
      for (const caller of callers)
        for (const [, method, path] of routes) {
          const answer = yield* call(method, `/eventbus${path}`, caller)
          assert.deepStrictEqual(shown(answer), [403, "LoopbackOnly"], `${JSON.stringify(caller)} ${path}`)
        }
    })
  )
})

describe("OPS-16 with an authorizer", () => {
  it.live(
    "a request without a credential, or with a wrong one, is 401 on every route, before anything of it is read",
    () =>
      Effect.gen(function* () {
        const { call } = yield* start()
        for (const [, method, path] of routes)
          for (const bearer of ["", "wrong", `${token}x`]) {
            const broken = path.replace("=1", "=nonsense")
            const answer = yield* call(method, `/eventbus${broken}`, {
              token: bearer,
              ...(method === "GET" ? {} : { text: "{" })
            })
            assert.deepStrictEqual(shown(answer), [401, "Unauthorized"], path)
            assert.strictEqual(answer.headers.get("www-authenticate"), "Bearer")
          }
      })
  )

  it.live("a credential that is empty lets nobody through", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      for (const headers of [{}, { authorization: "Bearer " }, { authorization: "Bearer" }])
        assert.strictEqual((yield* call("GET", "/eventbus/bindings", { token: "", headers })).status, 401)
    })
  )

  it.live("each route needs its permission, and no other permission gives it", () =>
    Effect.gen(function* () {
      for (const permission of Authorizer.Permission.literals) {
        const authorizer = Authorizer.fromTokens([
          { token: Redacted.make("t"), name: permission, permissions: [permission] }
        ])
        const { call } = yield* start({ authorizer })
        for (const [needed, method, path] of routes) {
          const answer = yield* call(method, `/eventbus${path}`, { token: "t" })
          const [first, ...others] = needed.split("|")
          if ([first, ...others].includes(permission))
            assert.notStrictEqual(answer.status, 403, `${permission} ${path}`)
          else
            assert.deepStrictEqual(
              [...shown(answer), answer.body.permission],
              [403, "Forbidden", first],
              `${permission} ${path}`
            )
        }
      }
    })
  )

  it.effect("a token may be a plain text, for programs without Effect, and answers as the redacted one does", () =>
    Effect.gen(function* () {
      const authorizer = Authorizer.fromTokens([{ token: "plain", name: "on-call", permissions: ["view"] }])
      const { name } = yield* authorizer(Redacted.make("plain"), "view", undefined)
      assert.strictEqual(name, "on-call")
      assert.strictEqual(
        (yield* Effect.flip(authorizer(Redacted.make("other"), "view", undefined)))._tag,
        "Unauthorized"
      )
      assert.throws(() => Authorizer.fromTokens([{ token: "with blank", name: "on-call", permissions: ["view"] }]))
    })
  )

  it.live("a permission on a binding holds for every spelling of its name, and for no other binding", () =>
    Effect.gen(function* () {
      const authorizer = Authorizer.fromTokens([
        { token: Redacted.make("t"), name: "o", permissions: ["view", "operate"], bindings: ["dr:orders"] }
      ])
      const { call } = yield* start({
        authorizer,
        clusters: ["dr"],
        bindings: [binding("orders", { cluster: "dr" }), binding("audit", { topic: "payments" })]
      })
      const status = (path: string) => Effect.map(call("GET", path, { token: "t" }), (answer) => answer.status)
      assert.strictEqual(yield* status("/eventbus/bindings/orders"), 200)
      assert.strictEqual(yield* status("/eventbus/bindings/dr:orders"), 200)
      assert.strictEqual(yield* status("/eventbus/bindings/audit"), 403)
      assert.strictEqual(yield* status("/eventbus/bindings/default:audit"), 403)
      // Nobody learns by this which names there are.
      assert.strictEqual(yield* status("/eventbus/bindings/nobody"), 403)
      assert.strictEqual(yield* status("/eventbus/bindings"), 403)
    })
  )

  it.live("readOnly changes nothing, whatever the authorizer says", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ readOnly: true, audit: {}, fleet: {}, outbox: yield* withEvent })
      for (const [permission, method, path] of routes) {
        const answer = yield* call(method, `/eventbus${path}`)
        if (permission === "view") assert.strictEqual(answer.status, 200, path)
        else assert.deepStrictEqual(shown(answer), [403, "ReadOnly"], path)
      }
    })
  )

  it.live(
    "ruling 86: an authorizer that throws, dies, returns something else, or fails otherwise lets nobody through",
    () =>
      Effect.gen(function* () {
        const misbehaving: ReadonlyArray<unknown> = [
          () => {
            throw new Error("canary-throw")
          },
          () => Effect.die("canary-die"),
          () => Effect.fail("canary-fail"),
          () => undefined,
          () => Promise.resolve({ name: "eve" }),
          () => Effect.succeed(undefined),
          () => Effect.succeed({ name: 7 }),
          () => Effect.interrupt
        ]
        for (const authorizer of misbehaving) {
          const { call } = yield* start({ authorizer: authorizer as Authorizer.Authorizer })
          const answer = yield* call("GET", "/eventbus/bindings")
          assert.deepStrictEqual(shown(answer), [503, "AuthorizerFailed"], String(authorizer))
          assert.notInclude(answer.text, "canary")
        }
      })
  )

  it.live("what an operator changes is logged with who, what and how it ended; reading is not", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      const { context } = yield* start()
      const web = yield* AdminWeb.make({ authorizer: everything }).pipe(
        Effect.provideContext(context),
        Effect.provide(Logger.layer([logger]))
      )
      const logged = callOf(web)
      yield* logged("GET", "/eventbus/bindings")
      yield* logged("POST", "/eventbus/bindings/orders/pause")
      yield* logged("POST", "/eventbus/bindings/orders/pause")
      assert.deepStrictEqual(
        lines.filter((line) => line.startsWith("Admin API")),
        [
          "Admin API: pause of binding 'default:orders' by operator: done",
          "Admin API: pause of binding 'default:orders' by operator: refused (InvalidContainerState)"
        ]
      )
    })
  )
})

describe("probes and metrics", () => {
  it.live("OPS-19 /health/live, /health/ready and /metrics need no credential, and probes name nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ authorizer: undefined, metrics: Effect.succeed("eventbus_up 1\n") })
      const from = { token: "", remoteAddress: "10.0.0.7", headers: { host: "pod-7" } }
      const live = yield* call("GET", "/health/live", from)
      assert.deepStrictEqual([live.status, live.body], [200, { status: "UP" }])
      const ready = yield* eventually(call("GET", "/health/ready", from), ({ status }) => status === 200)
      assert.deepStrictEqual([ready.status, ready.body], [200, { status: "UP" }])
      const metrics = yield* call("GET", "/metrics", from)
      assert.deepStrictEqual([metrics.status, metrics.text], [200, "eventbus_up 1\n"])
      assert.strictEqual(metrics.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    })
  )

  it.live("OPS-19 a paused binding is alive and not ready", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start()
      yield* connector.pause("orders")
      assert.deepStrictEqual(
        [(yield* call("GET", "/health/live")).status, (yield* call("GET", "/health/ready")).status],
        [200, 503]
      )
    })
  )

  it.live("prefix and probes move the routes, and without `metrics` there is no such route", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ prefix: "/ops/bus", probes: "/ops/bus" })
      assert.strictEqual((yield* call("GET", "/ops/bus/bindings")).status, 200)
      assert.strictEqual((yield* call("GET", "/ops/bus/health/live")).status, 200)
      assert.strictEqual((yield* call("GET", "/ops/bus/openapi.json")).status, 200)
      for (const path of ["/eventbus/bindings", "/health/live", "/metrics", "/ops/bus/metrics"])
        assert.strictEqual((yield* call("GET", path)).status, 404, path)
    })
  )
})
