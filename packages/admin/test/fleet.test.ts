/** The fleet over HTTP: its view, and commands of scope `fleet`, on a cluster in memory. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { BrokerError } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Effect, Logger, Redacted } from "effect"
import { callOf, eventually, everything, start } from "./api.ts"

const fleet = { version: "1.4.2" }

const away = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "nobody listens" })

/** Two processes of a fleet that know its holds. */
const two = Effect.gen(function* () {
  const one = yield* start({ fleet })
  const other = yield* start({ fleet: { version: "1.5.0" }, memory: one.memory })
  yield* eventually(
    one.call("GET", "/eventbus/fleet"),
    ({ body }) =>
      body.processes.length === 2 &&
      body.processes.every(
        ({ control, bindings }: { control: string; bindings: ReadonlyArray<unknown> }) =>
          control === "known" && bindings.length === 1
      )
  )
  return { ...one, other }
})

const paths = (body: { readonly issues: ReadonlyArray<{ readonly path: string }> }) =>
  body.issues.map(({ path }) => path)

const pause = "/eventbus/bindings/orders/pause"
const resume = "/eventbus/bindings/orders/resume"

describe("the fleet over HTTP", () => {
  it.live("OPS-13 OPS-14 a pause of scope fleet holds all processes; a resume releases, and says who and why", () =>
    Effect.gen(function* () {
      const { call, other } = yield* two
      const until = new Date(Date.now() + 3_600_000).toISOString()
      const held = yield* call("POST", pause, { body: { scope: "fleet", reason: "the bank is down", until } })
      assert.deepStrictEqual([held.status, held.body.missing], [202, []], held.text)
      assert.deepInclude(held.body, { verb: "pause", key: "default:orders", by: "operator", until })
      assert.deepStrictEqual(
        held.body.answers.map(({ state, bindings }: Record<string, unknown>) => [state, bindings]),
        [
          ["done", 1],
          ["done", 1]
        ]
      )
      // It is so when the answer comes, in the other process, too.
      assert.deepStrictEqual((yield* other.connector.snapshot("orders")).pausedBy, ["fleet"])
      const { body: binding } = yield* other.call("GET", "/eventbus/bindings/orders")
      assert.deepInclude(binding.holds[0], { by: "operator", reason: "the bank is down", until })
      const view = (yield* other.call("GET", "/eventbus/fleet")).body
      assert.deepInclude(view.holds[0], { key: "default:orders", groupId: "orders-group", by: "operator", until })
      assert.deepStrictEqual(view.processes.map(({ version }: { version: string }) => version).sort(), [
        "1.4.2",
        "1.5.0"
      ])
      for (const process of view.processes) {
        assert.deepInclude(process, { status: "live", isSkewed: false })
        assert.strictEqual(Date.parse(process.leaseEnds) - Date.parse(process.lastSeen), 15_000)
      }

      const released = yield* other.call("POST", resume, { body: { scope: "fleet", reason: "the bank is back" } })
      assert.deepStrictEqual([released.status, released.body.wasHeld, released.body.missing], [202, true, []])
      assert.strictEqual((yield* other.connector.snapshot("orders")).state, "RUNNING")
      const after = (yield* call("GET", "/eventbus/fleet")).body
      assert.deepStrictEqual(after.holds, [])
      assert.deepInclude(after.releases[0], { key: "default:orders", by: "operator", reason: "the bank is back" })
      assert.deepInclude(after.releases[0].held, { by: "operator", reason: "the bank is down" })
      const again = yield* call("POST", resume, { body: { scope: "fleet", reason: "twice" } })
      assert.deepStrictEqual([again.status, again.body.wasHeld], [202, false])
    })
  )

  it.live(
    "OPS-13 OPS-18 a repeat of a hold with its key gets the first answer, and holds nothing that was released",
    () =>
      Effect.gen(function* () {
        const { call, other } = yield* two
        const hold = { body: { scope: "fleet", reason: "the bank is down" }, headers: { "idempotency-key": "k-1" } }
        const held = yield* call("POST", pause, hold)
        assert.strictEqual(held.status, 202, held.text)
        yield* other.call("POST", resume, { body: { scope: "fleet", reason: "the bank is back" } })
        const again = yield* call("POST", pause, hold)
        assert.deepStrictEqual([again.status, again.text], [202, held.text])
        assert.strictEqual((yield* other.connector.snapshot("orders")).state, "RUNNING")
        assert.deepStrictEqual((yield* call("GET", "/eventbus/fleet")).body.holds, [])
        // For this process alone it is another request.
        assert.strictEqual((yield* call("POST", pause, { headers: hold.headers })).status, 422)
      })
  )

  it.live("OPS-13 a hold of one retry tier leaves the binding running", () =>
    Effect.gen(function* () {
      const { call, other } = yield* two
      const body = { scope: "fleet", reason: "slow", tier: 2 }
      assert.deepInclude((yield* call("POST", pause, { body })).body, { tier: 2, missing: [] })
      assert.strictEqual((yield* other.connector.snapshot("orders")).state, "RUNNING")
      const [hold] = (yield* other.call("GET", "/eventbus/bindings/orders")).body.holds
      assert.deepInclude(hold, { tier: 2, reason: "slow" })
      const unknown = yield* call("POST", pause, { body: { ...body, tier: 3 } })
      assert.deepStrictEqual([unknown.status, unknown.body._tag], [400, "UnknownTier"])
    })
  )

  it.live("OPS-13 a process that cannot read the control topic says so, and that no operator holds", () =>
    Effect.gen(function* () {
      const { call: first, memory } = yield* start({ fleet })
      const held = yield* first("POST", pause, { body: { scope: "fleet", reason: "slow", tier: 2 } })
      assert.strictEqual(held.status, 202, held.text)
      const control = { operation: "fetch", topic: "__eventbus.control" } as const
      yield* memory.addFault(FaultPlan.chance(1, control, { _tag: "Refuse", error: away }))
      const settings = { onControlUnavailable: "hold", controlTimeout: "100 millis" } as const
      const { call } = yield* start({ memory, fleet: settings })
      const { body } = yield* eventually(
        call("GET", "/eventbus/bindings/orders"),
        ({ body: { state } }) => state === "PAUSED"
      )
      assert.deepInclude(body.holds[0], { condition: "control-unavailable" })
      assert.include(body.holds[0].reason, "topic '__eventbus.control' cannot be read")
    })
  )

  it.live("OPS-14 a process that owns no partition of a binding tells no lag of it", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* start({ fleet })
      const of = { cluster: "default", groupId: "orders-group", pausedBy: [], inFlight: 0, standing: [] }
      const bindings = [
        { ...of, name: "orders", state: "STOPPED", partitions: 0, lag: "0" },
        { ...of, name: "audit", state: "RUNNING", partitions: 3, lag: "0" }
      ]
      const heartbeat = {
        ...{ v: 1, minV: 1, host: "host-b", pid: 7, version: "1.3.0", configHash: "0" },
        ...{ sentAt: Date.now(), control: "known", bindings, omitted: 0 }
      }
      yield* memory.append("__eventbus.fleet", 0, [
        { key: new TextEncoder().encode("process/b"), value: new TextEncoder().encode(JSON.stringify(heartbeat)) }
      ])
      const { body } = yield* eventually(call("GET", "/eventbus/fleet"), ({ body: { processes } }) =>
        processes.some(({ id }: { readonly id: string }) => id === "b")
      )
      const [stopped, running] = body.processes.find(({ id }: { readonly id: string }) => id === "b").bindings
      assert.notProperty(stopped, "lag")
      assert.strictEqual(running.lag, "0")
    })
  )

  it.live("OPS-14 stop and start are commands to all, and name the process that does not answer", () =>
    Effect.gen(function* () {
      const { call, other, memory } = yield* two
      const stop = yield* call("POST", "/eventbus/bindings/orders/stop", { body: { scope: "fleet", reason: "INC-1" } })
      assert.deepStrictEqual([stop.status, stop.body.missing, stop.body.answers.length], [202, [], 2], stop.text)
      assert.match(stop.body.id, /^[\w-]{36}$/)
      assert.strictEqual(yield* other.connector.getState("orders"), "STOPPED")
      // A process that lives by its heartbeat, and does nothing.
      yield* Effect.scoped(
        Effect.flatMap(memory.broker.producer(), (producer) =>
          producer.send({
            ...{ topic: "__eventbus.fleet", partition: 0, key: new TextEncoder().encode("process/silent") },
            value: new TextEncoder().encode(
              JSON.stringify({
                ...{ v: 1, minV: 1, host: "b", pid: 7, version: "1", configHash: "0", sentAt: Date.now() },
                ...{ control: "known", bindings: [], omitted: 1 }
              })
            )
          })
        )
      )
      const silent = [{ process: "silent", host: "b", pid: 7, accepted: false }]
      const body = { scope: "fleet", reason: "INC-1 is over" }
      const [begun, held] = yield* Effect.all(
        [call("POST", "/eventbus/bindings/orders/start", { body }), call("POST", pause, { body })],
        { concurrency: "unbounded" }
      )
      for (const { status, body: answer } of [begun, held])
        assert.deepStrictEqual([status, answer.missing, answer.answers.length], [202, silent, 2])
    })
  )

  it.live("OPS-13 without a fleet everything about one is 409, and nothing is done", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start()
      for (const verb of ["start", "stop", "pause", "resume"]) {
        const body = { scope: "fleet", reason: "INC-1" }
        const { status, body: answer } = yield* call("POST", `/eventbus/bindings/orders/${verb}`, { body })
        assert.deepStrictEqual([status, answer._tag], [409, "FleetNotConfigured"], verb)
      }
      assert.strictEqual((yield* call("GET", "/eventbus/fleet")).status, 409)
      assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
      const unknown = yield* call("POST", "/eventbus/bindings/none/pause", { body: { scope: "fleet", reason: "x" } })
      assert.deepStrictEqual([unknown.status, unknown.body._tag], [404, "BindingNotFound"])
    })
  )

  it.live("OPS-18 a body is refused with all paths at once; what the query says, the body may say in its stead", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start()
      const refused = Effect.fnUntraced(function* (path: string, body: unknown) {
        const { status, body: answer } = yield* call("POST", path, { body })
        assert.deepStrictEqual([status, answer._tag], [400, "InvalidRequest"], JSON.stringify(body))
        return paths(answer)
      })
      assert.deepStrictEqual(yield* refused(pause, { scope: "fleet" }), ["reason"])
      assert.deepStrictEqual(yield* refused(pause, { scope: "all", tier: 0, until: "noon", by: "eve" }), [
        ...["by", "scope", "tier", "until"]
      ])
      assert.deepStrictEqual(yield* refused(pause, { until: 5 }), ["until"])
      assert.deepStrictEqual(yield* refused(`${pause}?reason=a`, { scope: "fleet", reason: "b" }), ["reason"])
      assert.deepStrictEqual(yield* refused(resume, { scope: "fleet", reason: "b", until: 5 }), ["until"])
      assert.deepStrictEqual(yield* refused("/eventbus/bindings/orders/stop", { tier: 1 }), ["tier"])
      assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
      const { status, body } = yield* call("POST", pause, { body: { scope: "process", reason: "INC-1" } })
      assert.deepStrictEqual([status, body.pausedBy, body.holds], [200, ["operator"], undefined])
    })
  )

  it.live("OPS-16 a hold needs operate on the binding, the view needs view; the log has the reason of a body", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      const one = yield* start({ fleet })
      const viewer = { token: Redacted.make("viewer"), name: "ben", permissions: ["view"] } as const
      const web = yield* AdminWeb.make({ authorizer: Authorizer.fromTokens([viewer]) }).pipe(
        Effect.provideContext(one.context)
      )
      const asBen = callOf(web)
      const body = { scope: "fleet", reason: "INC-1" }
      assert.strictEqual((yield* asBen("POST", pause, { token: "viewer", body })).status, 403)
      assert.strictEqual((yield* asBen("GET", "/eventbus/fleet", { token: "viewer" })).status, 200)
      assert.strictEqual((yield* asBen("GET", "/eventbus/fleet", { token: "wrong" })).status, 401)
      const logged = yield* AdminWeb.make({ authorizer: everything }).pipe(
        Effect.provideContext(one.context),
        Effect.provide(Logger.layer([logger]))
      )
      assert.strictEqual((yield* callOf(logged)("POST", pause, { body })).status, 202)
      assert.deepStrictEqual(lines, ["Admin API: pause of binding 'default:orders' by operator: done, because: INC-1"])
      assert.strictEqual((yield* one.call("GET", "/eventbus/fleet")).body.holds.length, 1)
    })
  )
})
