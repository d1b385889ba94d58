/** OPS-22: the admin API over bindings that other processes run, straight on a cluster in memory: what it sees, what it does, and what it refuses. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Effect } from "effect"
import { binding, eventually, start } from "./api.ts"
import { outsideOf } from "./outsideOf.ts"

/** A cluster with these orders, and nobody who handles them. */
const waiting = Effect.fnUntraced(function* (...values: ReadonlyArray<string>) {
  const { memory, append } = yield* start({ bindings: [] })
  yield* append("orders", ...values)
  return memory
})

const orders = "/eventbus/bindings/orders"

describe("the admin API from outside", () => {
  it.live("OPS-22 shows lag, members and settings; joins no group, handles nothing, commits nothing", () =>
    Effect.gen(function* () {
      const memory = yield* waiting("one", "two", "three")
      const before = yield* memory.usage
      let handled = 0
      const count = binding("orders", { handler: () => Effect.sync(() => void handled++) })
      const { call, close } = yield* outsideOf(memory, { bindings: [count] })
      const [listed] = (yield* call("GET", "/eventbus/bindings")).body
      assert.deepInclude(listed, { key: "default:orders", state: "CREATED", lag: 3, partitions: 1, deadLetters: 0 })
      assert.strictEqual(listed.outside.members, 0)
      assert.isTrue(Math.abs(Date.parse(listed.outside.asOf) - Date.now()) < 60_000)
      const { body: detail } = yield* call("GET", orders)
      assert.deepStrictEqual(detail.committed, [{ topic: "orders", partition: 0, tier: 0, logEnd: "3", lag: 3 }])
      assert.deepInclude(detail, { assigned: [], consumers: [], held: [], problems: [] })
      assert.deepStrictEqual((yield* call("GET", `${orders}/held`)).body, { held: [] })
      const { body: health } = yield* call("GET", "/eventbus/health")
      assert.deepStrictEqual(health, { status: "UP", live: true, ready: true, reasons: [], outside: true })
      assert.deepStrictEqual((yield* call("GET", "/health/ready")).status, 200)
      yield* close
      assert.deepInclude(yield* memory.group("orders-group"), { state: "Dead", members: [] })
      assert.deepStrictEqual(yield* memory.commits("orders-group"), [])
      assert.deepStrictEqual([handled, yield* memory.usage], [0, before])
    })
  )

  it.live("OPS-22 refuses every command that only a process can obey, and says so in one sentence", () =>
    Effect.gen(function* () {
      const memory = yield* waiting("one")
      const { call } = yield* outsideOf(memory)
      const started = yield* call("POST", `${orders}/start`, { body: { reason: "INC-1204" } })
      assert.deepStrictEqual(
        [started.status, started.body],
        [
          409,
          {
            ...{ _tag: "NotRunHere", operation: "start", binding: "default:orders" },
            message:
              "This console runs no bindings, so it cannot start 'default:orders': use the fleet, or the process that runs it."
          }
        ]
      )
      const refusals = [
        yield* call("POST", `${orders}/stop`),
        yield* call("POST", `${orders}/pause`),
        yield* call("POST", `${orders}/pause?tier=1`),
        yield* call("POST", `${orders}/resume`),
        yield* call("DELETE", orders),
        yield* call("POST", "/eventbus/bindings", { body: { name: "more", topic: "orders", groupId: "more" } }),
        yield* call("POST", `${orders}/held/0@0/skip?reason=INC-1204`),
        yield* call("POST", `${orders}/held/0@0/dead-letter?reason=INC-1204`)
      ]
      for (const { status, body } of refusals) assert.deepStrictEqual([status, body._tag], [409, "NotRunHere"])
      assert.strictEqual((yield* call("POST", "/eventbus/bindings/none/start")).status, 404)
      assert.deepInclude(yield* memory.group("orders-group"), { state: "Dead", members: [] })
    })
  )

  it.live("OPS-22 dead letters are grouped, planned and applied without a process, and the group's offsets stay", () =>
    Effect.gen(function* () {
      const program = yield* start()
      yield* program.append("orders", "bad", "good", "bad")
      yield* eventually(program.call("GET", `${orders}/dlt/stats`), ({ body }) => body.count === 2)
      yield* eventually(program.memory.committed("orders-group", "orders", 0), (offset) => offset === 3n)
      yield* program.close
      const { memory } = program
      const commits = (yield* memory.commits("orders-group")).length
      const { call } = yield* outsideOf(memory)
      const [seen] = (yield* call("GET", "/eventbus/bindings")).body
      assert.deepInclude(seen, { lag: 0, deadLetters: 2 })
      const { groups } = (yield* call("GET", `${orders}/dlt/groups`)).body
      assert.deepStrictEqual([groups.length, groups[0].count], [1, 2])
      const rehearsal = (yield* call("POST", `${orders}/dlt/rehearsals`, { body: { select: { all: true } } })).body
      const { body: rehearsed } = yield* eventually(
        call("GET", `${orders}/dlt/rehearsals/${rehearsal.id}`),
        ({ body }) => body.status !== "running"
      )
      assert.deepInclude(rehearsed, { status: "done" })
      assert.deepInclude(rehearsed.report, { mode: "decode", selected: 2 })
      const plan = yield* call("POST", `${orders}/dlt/plans`, {
        body: { action: "replay", select: { all: true }, reason: "the gateway is back" },
        headers: { "idempotency-key": "k-1" }
      })
      assert.deepStrictEqual([plan.status, plan.body.count], [201, 2], plan.text)
      assert.strictEqual((yield* call("POST", `${orders}/dlt/plans/${plan.body.id}/apply`)).status, 202)
      const { body: receipt } = yield* eventually(
        call("GET", `${orders}/dlt/runs/${plan.body.id}`),
        ({ body }) => body.state === "done"
      )
      assert.deepInclude(receipt, { state: "done", waiting: 2 })
      assert.strictEqual((yield* memory.log("orders", 0)).length, 5)
      // The copies wait for the process, and nothing was committed in its place.
      assert.strictEqual((yield* memory.commits("orders-group")).length, commits)
      assert.deepInclude(yield* memory.group("orders-group"), { members: [] })
    })
  )

  it.live(
    "OPS-13 OPS-22 holds and releases a binding in all processes, and is none of them",
    () =>
      Effect.gen(function* () {
        const settings = { version: "1.4.2" }
        const { memory, connector } = yield* start({ fleet: settings })
        const { call, admin } = yield* outsideOf(memory, { fleet: settings })
        yield* eventually(
          Effect.orDie(admin.fleet),
          ({ processes }) => processes.length > 0 && processes.every(({ control }) => control === "known")
        )
        const body = { scope: "fleet", reason: "the bank is down" }
        const held = yield* call("POST", `${orders}/pause`, { body })
        assert.deepStrictEqual([held.status, held.body.missing, held.body.answers.length], [202, [], 1], held.text)
        assert.deepStrictEqual((yield* connector.snapshot("orders")).pausedBy, ["fleet"])
        const shown = yield* eventually(call("GET", orders), ({ body: { holds } }) => holds !== undefined)
        assert.deepInclude(shown.body.holds[0], { by: "operator", reason: "the bank is down" })
        assert.deepInclude((yield* eventually(call("GET", orders), ({ body }) => body.outside.members === 1)).body, {
          state: "CREATED",
          pausedBy: []
        })
        const released = yield* call("POST", `${orders}/resume`, { body })
        assert.deepStrictEqual([released.status, released.body.wasHeld, released.body.missing], [202, true, []])
        assert.strictEqual((yield* connector.snapshot("orders")).state, "RUNNING")
        assert.strictEqual((yield* Effect.orDie(admin.fleet)).processes.length, 1)
      }),
    30_000
  )

  it.live("OPS-22 a cluster that does not answer is a problem with its name, and no state of the binding", () =>
    Effect.gen(function* () {
      const memory = yield* waiting("one")
      const away = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "nobody listens" })
      yield* memory.addFault(FaultPlan.chance(1, { operation: "admin" }, { _tag: "Refuse", error: away }))
      const { call } = yield* outsideOf(memory)
      const [listed] = (yield* call("GET", "/eventbus/bindings")).body
      assert.strictEqual(listed.state, "CREATED")
      assert.notProperty(listed, "lag")
      assert.deepStrictEqual(listed.outside, { problem: away.message })
      const { body: health } = yield* call("GET", "/eventbus/health")
      assert.deepInclude(health, { status: "DOWN", live: true, ready: false, outside: true })
      assert.deepInclude(health.reasons[0], { reason: "ClusterUnreachable", bindings: ["orders"] })
      assert.strictEqual((yield* call("GET", "/health/ready")).status, 503)
    })
  )
})
