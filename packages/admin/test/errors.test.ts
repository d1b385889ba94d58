/** ADM-12: every typed error is an answer of its own, `{ _tag, message, ... }`. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Effect } from "effect"
import { type Answer, binding, start } from "./api.ts"

const shown = ({ status, body }: Answer) => [status, body._tag]
const payments = { name: "payments", topic: "payments", groupId: "payers", handler: "charge" }

describe("ADM-12 errors over HTTP", () => {
  it.live("an unknown binding is 404 on every route, with the names that are known", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const routes = [
        ["GET", ""],
        ["DELETE", ""],
        ...["start", "stop", "pause", "resume"].map((verb) => ["POST", `/${verb}`]),
        ["POST", "/dlt/replay?count=1"],
        ["POST", "/dlt/replay?from=0&to=1"],
        ["POST", "/dlt/replay-to-tier?tier=1&count=1"],
        ["GET", "/dlt/stats"],
        ["GET", "/dlt/groups"],
        ["GET", "/dlt/records"],
        ["GET", "/dlt/records/0@0"],
        ["GET", "/dlt/rehearsals/none"],
        ["DELETE", "/dlt?olderThan=1d"]
      ] as const
      for (const [method, rest] of routes) {
        const answer = yield* call(method!, `/eventbus/bindings/nobody${rest}`)
        assert.deepStrictEqual(answer.body, {
          _tag: "BindingNotFound",
          message: "No binding named 'nobody' is registered. Registered are: [orders].",
          binding: "nobody",
          known: ["orders"]
        })
        assert.strictEqual(answer.status, 404, `${method} ${rest}`)
      }
    })
  )

  it.live("an unknown and a repeated parameter are refused with path, value, and the parameters of the route", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const issuesOf = (method: string, path: string) =>
        Effect.map(call(method, `/eventbus${path}`), ({ status, body }) => [status, ...body.issues])
      assert.deepStrictEqual(yield* issuesOf("POST", "/bindings/orders/pause?teir=1"), [
        400,
        { path: "teir", found: 'an unknown parameter with the value "1"', allowed: "the parameters reason, tier" }
      ])
      assert.deepStrictEqual(yield* issuesOf("POST", "/bindings/orders/pause?tier=1&tier=2"), [
        400,
        { path: "tier", found: '["1","2"]', allowed: "the number of a retry tier, from 1, given once" }
      ])
      assert.deepStrictEqual(yield* issuesOf("GET", "/bindings/orders/dlt/records?page=1&page=2&limit=0"), [
        400,
        {
          path: "page",
          found: 'an unknown parameter with the value ["1","2"]',
          allowed: "the parameters group, state, text, before, limit, topic"
        },
        { path: "limit", found: '"0"', allowed: "a whole number, 1 to 500" }
      ])
      assert.deepStrictEqual(yield* issuesOf("GET", "/bindings?page=1"), [
        400,
        { path: "page", found: 'an unknown parameter with the value "1"', allowed: "the parameters messages" }
      ])
      assert.deepStrictEqual(yield* issuesOf("GET", "/health?page=1"), [
        400,
        { path: "page", found: 'an unknown parameter with the value "1"', allowed: "no parameter" }
      ])
    })
  )

  it.live("names of JavaScript are ordinary names", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ bindings: [binding("constructor")] })
      for (const name of ["__proto__", "toString", "hasOwnProperty"])
        assert.deepStrictEqual(shown(yield* call("GET", `/eventbus/bindings/${name}`)), [404, "BindingNotFound"])
      assert.strictEqual((yield* call("GET", "/eventbus/bindings/constructor")).body.key, "default:constructor")
      const long = "n".repeat(300)
      assert.strictEqual((yield* call("GET", `/eventbus/bindings/${long}`)).body.binding, long)
    })
  )

  it.live("LIF-07 an invalid state is 409 with binding, operation, current and required state", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      yield* call("POST", "/eventbus/bindings/orders/stop")
      const { status, body } = yield* call("POST", "/eventbus/bindings/orders/resume")
      assert.strictEqual(status, 409)
      assert.deepStrictEqual(body, {
        _tag: "InvalidContainerState",
        message: "Cannot resume binding 'orders': current state is STOPPED, resume requires PAUSED",
        binding: "orders",
        operation: "resume",
        current: "STOPPED",
        required: ["PAUSED"]
      })
    })
  )

  it.live("ruling 50 pausing a tier that does not exist is 400 with the tiers that do", () =>
    Effect.gen(function* () {
      const { call, admin } = yield* start()
      for (const verb of ["pause", "resume"]) {
        const { status, body } = yield* call("POST", `/eventbus/bindings/orders/${verb}?tier=99`)
        assert.strictEqual(status, 400)
        const message = "There is no tier 99: the binding has tiers 1 to 2."
        assert.deepStrictEqual(body, { _tag: "UnknownTier", message, tier: 99, tiers: 2 })
      }
      assert.strictEqual((yield* Effect.flip(admin.pause("orders", { tier: 99 })))._tag, "UnknownTier")
    })
  )

  it.live("an existing name is 409", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const body = { ...payments, name: "orders" }
      const answer = yield* call("POST", "/eventbus/bindings", { body })
      assert.deepStrictEqual(shown(answer), [409, "BindingAlreadyExists"])
      assert.match(answer.body.message, /^A binding named 'orders' is registered already/)
    })
  )

  it.live("CFG-21 an invalid body is 400 with all issues and their paths, and registers nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const body = {
        name: "payments",
        concurrency: 0,
        retry: { blocking: { maxAttempts: "3" } },
        topik: 1,
        handler: "chrage"
      }
      const answer = yield* call("POST", "/eventbus/bindings", { body })
      assert.deepStrictEqual(shown(answer), [400, "ConfigurationValidation"])
      assert.deepStrictEqual(answer.body.issues.map(({ path }: { readonly path: string }) => path).sort(), [
        "concurrency",
        "groupId",
        "handler",
        "retry.blocking.maxAttempts",
        "topic",
        "topik"
      ])
      const concurrency = answer.body.issues.find(({ path }: { readonly path: string }) => path === "concurrency")
      assert.deepStrictEqual([concurrency.found, /^a whole number, 1 to/.test(concurrency.allowed)], ["0", true])
      assert.strictEqual((yield* call("GET", "/eventbus/bindings")).body.length, 1)
    })
  )

  it.live("a rule across bindings is 400 with its path", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const body = { ...payments, topic: "orders" }
      const answer = yield* call("POST", "/eventbus/bindings", { body })
      assert.deepStrictEqual(shown(answer), [400, "ConfigurationValidation"])
      assert.include(answer.body.message, "binding 'orders'")
    })
  )

  it.live("a body that is not JSON, or has a key twice, is 400", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const post = (text: string, headers = {}) => call("POST", "/eventbus/bindings", { text, headers })
      for (const text of ["", "{", "[]", "7", "null", '{"name":"a","name":"b"}', "{ name: 1 }"])
        assert.deepStrictEqual(shown(yield* post(text)), [400, "ConfigurationValidation"], text)
      const form = yield* post("name=orders", { "content-type": "application/x-www-form-urlencoded" })
      assert.deepStrictEqual(shown(form), [400, "UnreadableBody"])
      const large = yield* post(JSON.stringify({ name: "x".repeat(1_100_000) }))
      assert.deepStrictEqual(shown(large), [400, "UnreadableBody"])
    })
  )

  it.live("a program without handlers says that it can register none", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ handlers: { byName: new Map() } })
      const answer = yield* call("POST", "/eventbus/bindings", { body: payments })
      assert.deepStrictEqual([answer.status, answer.body.issues[0].path], [400, "handler"])
    })
  )

  it.live("a replay takes a count or a window, and says what is missing", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const issues = (query: string) =>
        Effect.map(call("POST", `/eventbus/bindings/orders/dlt/replay${query}`), (answer) => [
          answer.status,
          answer.body._tag,
          answer.body.issues.map(({ path }: { readonly path: string }) => path).sort()
        ])
      const invalid = (...paths: ReadonlyArray<string>) => [400, "InvalidRequest", paths]
      assert.deepStrictEqual(yield* issues(""), invalid("count"))
      assert.deepStrictEqual(yield* issues("?from=0"), invalid("to"))
      assert.deepStrictEqual(yield* issues("?to=1"), invalid("from"))
      assert.deepStrictEqual(yield* issues("?from=2&to=1"), invalid("to"))
      assert.deepStrictEqual(yield* issues("?from=1&to=1"), invalid("to"))
      assert.deepStrictEqual(yield* issues("?count=1&from=0&to=1"), invalid("count"))
      assert.deepStrictEqual(yield* issues("?count=0&from=x&until=3"), invalid("count", "from", "until"))
    })
  )

  it.live("DLT-29 a dead letter topic that is only compacted is not purgeable: 409", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* start()
      yield* memory.createTopic("orders.DLT", { partitions: 1, config: new Map([["cleanup.policy", "compact"]]) })
      yield* memory.append("orders.DLT", 0, [{ key: null, value: null }])
      const answer = yield* call("DELETE", "/eventbus/bindings/orders/dlt?olderThan=1ms")
      assert.deepStrictEqual(shown(answer), [409, "NotPurgeable"])
      assert.deepStrictEqual(answer.body.cleanupPolicy, "compact")
    })
  )

  it.live("a cluster that refuses is 502 with its error", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* start()
      const refusal = new BrokerError.UnexpectedBrokerError({
        operation: "describe",
        code: "POLICY_VIOLATION",
        detail: "not today",
        retryable: false
      })
      yield* memory.addFault(FaultPlan.chance(1, { operation: "admin" }, { _tag: "Refuse", error: refusal }))
      const answer = yield* call("GET", "/eventbus/bindings/orders/dlt/stats")
      assert.deepStrictEqual(shown(answer), [502, "ClusterFailed"])
      assert.deepStrictEqual([answer.body.error, answer.body.message], ["UnexpectedBrokerError", refusal.message])
    })
  )

  it.live("an unknown route is 404, a method that a path does not take is 405 with those that it takes", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      assert.deepStrictEqual(shown(yield* call("GET", "/eventbus/nothing")), [404, "RouteNotFound"])
      assert.deepStrictEqual(shown(yield* call("GET", "/elsewhere")), [404, "RouteNotFound"])
      const answer = yield* call("PUT", "/eventbus/bindings/orders")
      assert.deepStrictEqual(shown(answer), [405, "MethodNotAllowed"])
      assert.strictEqual(answer.headers.get("allow"), "DELETE, GET")
      const pause = yield* call("GET", "/eventbus/bindings/orders/pause")
      assert.deepStrictEqual([pause.status, pause.headers.get("allow")], [405, "POST"])
      const head = yield* call("HEAD", "/eventbus/bindings/orders")
      assert.deepStrictEqual([head.status, head.text], [200, ""])
      for (const path of [
        "/eventbus/bindings/%E0%A4%A",
        "/eventbus/bindings/%",
        "/eventbus/",
        "/eventbus/bindings/a%2Fb"
      ])
        assert.include([404, 400], (yield* call("GET", path)).status, path)
    })
  )

  it.live("a defect is 500 and says nothing of it", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ metrics: Effect.die(new Error("canary-defect")) })
      const answer = yield* call("GET", "/metrics")
      assert.deepStrictEqual(shown(answer), [500, "InternalError"])
      assert.notInclude(answer.text, "canary-defect")
    })
  )
})
