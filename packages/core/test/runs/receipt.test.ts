import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, headersOf, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { setUp } from "../replay/replayProcesses.ts"
import { ofRun, withOrders } from "./ordersBinding.ts"
import { atOnce, commitAll, returned, runsOf } from "./runProcesses.ts"

const values = Array.from({ length: 60 }, (_, index) => String(index).padStart(2, "0"))

describe("receipts of runs", () => {
  scenario("OPS-09 a receipt counts passed, came back and waiting as the logs have them, and closes itself", () =>
    Effect.gen(function* () {
      const { failing, runs } = yield* withOrders(values)
      // Six fail for good, and four more only in the main topic: those wait in the tier, and then pass.
      for (const value of values.slice(0, 6)) failing.set(value, () => true)
      for (const value of values.slice(6, 10)) failing.set(value, (tier) => tier === 0)
      const plan = yield* inTime(runs.plan(atOnce))
      assert.strictEqual(plan.count, 60)
      const first = yield* inTime(runs.apply(plan.id), "100 millis")
      assert.strictEqual(first.dealtWith, 60)
      assert.strictEqual(first.passed + first.cameBack + first.waiting, 60)
      yield* advance("5 seconds")
      const open = yield* inTime(runs.receipt(plan.id), "100 millis")
      assert.deepInclude(open, { passed: 50, cameBack: 0, waiting: 10, elsewhere: 0, closed: false })
      assert.lengthOf(yield* ofRun("orders.retry-1", plan.id), 10)
      for (let step = 0; step < 12; step++) yield* advance("10 seconds")
      const closed = yield* inTime(runs.receipt(plan.id))
      assert.deepInclude(closed, { state: "done", passed: 54, cameBack: 6, waiting: 0, closed: true })
      assert.deepStrictEqual(yield* ofRun("orders", plan.id), values)
      assert.deepStrictEqual(yield* ofRun("orders.DLT", plan.id), values.slice(0, 6))
    })
  )

  scenario("OPS-09 a closed receipt stays what it is when its letters are purged, and replayed by another run", () =>
    Effect.gen(function* () {
      const { failing, runs, letters } = yield* withOrders(values.slice(0, 10))
      failing.set("00", () => true)
      const first = yield* inTime(runs.plan(atOnce))
      yield* inTime(runs.apply(first.id))
      for (let step = 0; step < 12; step++) yield* advance("10 seconds")
      const closed = yield* inTime(runs.receipt(first.id))
      assert.deepInclude(closed, { passed: 9, cameBack: 1, waiting: 0, closed: true })
      failing.clear()
      const second = yield* inTime(runs.plan(atOnce))
      assert.strictEqual(second.count, 1)
      yield* inTime(runs.apply(second.id))
      yield* advance("10 seconds")
      assert.deepInclude(yield* inTime(runs.receipt(second.id)), { passed: 1, cameBack: 0, closed: true })
      assert.isAbove(yield* inTime(letters.purge(Number.POSITIVE_INFINITY)), 0)
      assert.deepStrictEqual(yield* inTime(runs.receipt(first.id)), closed)
    })
  )

  scenario("OPS-09 a letter shows the run whose copy it is, and the next replay of it does not", () =>
    Effect.gen(function* () {
      const { failing, runs, letters, memory } = yield* withOrders(values.slice(0, 1))
      failing.set("00", () => true)
      const plan = yield* inTime(runs.plan(atOnce))
      yield* inTime(runs.apply(plan.id))
      for (let step = 0; step < 12; step++) yield* advance("10 seconds")
      const listed = yield* Effect.forEach([0, 1], (partition) => inTime(letters.list({ partition, count: 10 })))
      assert.deepStrictEqual(
        listed.flat().map(({ letter, state }) => [letter.runId, state]),
        [
          [undefined, "dealt-with"],
          [plan.id, "waiting"]
        ]
      )
      yield* inTime(letters.replay(1))
      const logs = yield* Effect.forEach([0, 1], (partition) => memory.log("orders", partition))
      const marks = logs.flat().map((record) => headersOf(record).has("x-eventbus-run-id"))
      assert.strictEqual(marks.filter((isMarked) => isMarked).length, 1)
    })
  )

  scenario("OPS-09 a stranger's run id does nothing: it goes no further, and no receipt counts it", () =>
    Effect.gen(function* () {
      const { failing, runs, memory } = yield* withOrders(values.slice(0, 2))
      const plan = yield* inTime(runs.plan(atOnce))
      yield* inTime(runs.apply(plan.id))
      yield* advance("10 seconds")
      failing.set("forged", () => true)
      const forged = ["0@0", "1@0"].map((letter) => ({
        ...{ key: bytes("k"), value: bytes("forged") },
        headers: Object.entries({
          "x-eventbus-run-id": `${plan.id}/${letter}`,
          "x-eventbus-replay-group": "billing",
          "x-eventbus-replay-count": "1",
          "x-eventbus-replay-bond": "another-cluster/orders/0/5"
        }).map(([key, value]) => ({ key, value: bytes(value) }))
      }))
      yield* memory.append("orders", 0, forged)
      // Without an owner, nobody knows who has put it there.
      yield* memory.append("orders.DLT", 0, [{ ...forged[0]!, headers: forged[0]!.headers.slice(0, 1) }])
      for (let step = 0; step < 12; step++) yield* advance("10 seconds")
      assert.deepStrictEqual(yield* ofRun("orders.DLT", plan.id), ["forged"])
      assert.deepInclude(yield* inTime(runs.receipt(plan.id)), { passed: 2, cameBack: 0, waiting: 0 })
    })
  )

  scenario(
    "OPS-09 a copy that is dead-lettered twice counts once, and a letter of no copy of the run counts never",
    () =>
      Effect.gen(function* () {
        const memory = yield* setUp()
        const runs = yield* runsOf("host-a")
        const plan = yield* inTime(runs.plan({ ...atOnce, select: { records: [{ partition: 0, offset: 5n }] } }))
        yield* inTime(runs.apply(plan.id))
        const back = returned(plan.id, { partition: 0, offset: 5n })
        yield* memory.append("orders.DLT", 0, [back, back, returned(plan.id, { partition: 0, offset: 6n })])
        yield* commitAll
        assert.deepInclude(yield* inTime(runs.receipt(plan.id)), { passed: 0, cameBack: 1, waiting: 0, closed: true })
      })
  )

  scenario("OPS-09 copies in a topic that the binding does not read are elsewhere", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const topic of ["orders", "returns", "orders.DLT"]) yield* memory.createTopic(topic)
      yield* memory.append(
        "orders.DLT",
        0,
        ["orders", "returns"].map((topic) => ({
          ...{ key: bytes("k"), value: bytes(topic) },
          headers: Object.entries({ topic, partition: "0", offset: "7" }).map(([name, value]) => ({
            key: `x-eventbus-original-${name}`,
            value: bytes(value)
          }))
        }))
      )
      const runs = yield* runsOf("host-a", { origins: ["returns"] })
      const plan = yield* inTime(runs.plan(atOnce))
      yield* inTime(runs.apply(plan.id))
      yield* commitAll
      assert.deepInclude(yield* inTime(runs.receipt(plan.id)), { passed: 1, elsewhere: 1, waiting: 0, closed: true })
      assert.lengthOf(yield* memory.log("returns", 0), 1)
    })
  )
})
