/** The ends of holds: who has released, and which processes obey by now. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber } from "effect"
import { advance, inTime, scenario } from "../bus.ts"
import { control, entries, fleetTopic, noting, operator, release, soon, startIn, target, write } from "./fleet.ts"

const hold = { ...target, reason: "the bank is down", by: "ann" }

const topic = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
})

describe("releases of a fleet", () => {
  scenario("OPS-13 a release keeps who has released and why, for operators who come later and under a new hold", () =>
    Effect.gen(function* () {
      const fleet = yield* operator
      yield* inTime(fleet.hold(hold))
      assert.isTrue(yield* inTime(fleet.release(release)))
      const log = yield* entries(control)
      // The hold itself is gone, for versions that know no releases, too.
      assert.isNull(log.get("hold/default/billing/orders"))
      const kept = log.get("released/default/billing/orders")
      assert.deepInclude(kept, { v: 1, minV: 1, by: "bob", reason: "the bank is back" })
      assert.deepInclude(kept?.["held"], { by: "ann", reason: "the bank is down" })
      yield* inTime(fleet.hold({ ...hold, tier: 2 }))
      yield* inTime(fleet.release({ ...release, tier: 2, by: "cleo" }))
      yield* inTime(fleet.hold(hold))
      const { holds, releases } = yield* inTime((yield* operator).view)
      assert.strictEqual(holds.length, 1)
      assert.deepStrictEqual(
        releases.map(({ tier, by, held }) => [tier, by, held.by]),
        [
          [2, "cleo", "ann"],
          [undefined, "bob", "ann"]
        ]
      )
    })
  )

  scenario("OPS-13 a release without a hold leaves the last one as it is", () =>
    Effect.gen(function* () {
      const fleet = yield* operator
      yield* inTime(fleet.hold(hold))
      yield* inTime(fleet.release(release))
      assert.isFalse(yield* inTime(fleet.release({ ...release, by: "eve" })))
      assert.deepStrictEqual(
        (yield* inTime(fleet.view)).releases.map(({ by }) => by),
        ["bob"]
      )
    })
  )

  scenario("OPS-13 a release that cannot be read is left out, and holds nothing", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      for (const value of ["{", { v: 7, minV: 7 }, { v: 1, minV: 1, by: "bob" }])
        yield* write(control, "released/default/billing/orders", value)
      const { connector } = yield* startIn({}, noting([]))
      yield* soon
      assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
      assert.deepStrictEqual((yield* inTime(fleet.view)).releases, [])
    })
  )

  scenario("OPS-13 arguments of another kind are refused by path and value", () =>
    Effect.gen(function* () {
      const fleet = yield* operator
      const { message } = yield* Effect.flip(fleet.release({ ...target, reason: " " }))
      assert.include(message, "release: reason is ' '")
      assert.include((yield* Effect.flip(fleet.applied(target, -1))).message, "applied: wait is -1")
    })
  )
})

describe("how far a hold has come", () => {
  scenario("OPS-13 every process with the binding obeys within a second, and says so at once", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      const one = yield* startIn({}, noting([]))
      const two = yield* startIn({}, noting([]))
      yield* startIn({}, noting([], { groupId: "others" }))
      yield* advance("7 seconds")
      yield* inTime(fleet.hold(hold))
      const held = yield* inTime(fleet.applied(target), "1 second")
      assert.deepStrictEqual([held.answers.map(({ state }) => state), held.missing], [["done", "done"], []])
      for (const { connector } of [one, two])
        assert.deepStrictEqual((yield* connector.snapshot("orders")).pausedBy, ["fleet"])
      yield* inTime(fleet.release(release))
      const released = yield* inTime(fleet.applied(target), "1 second")
      assert.deepStrictEqual([released.answers.length, released.missing], [2, []])
      for (const { connector } of [one, two]) assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
    })
  )

  scenario("OPS-13 OPS-14 a live process that does not say so is named; one without the binding is not asked", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      const beat = { v: 1, minV: 1, version: "1", configHash: "0", sentAt: 0, control: "known", bindings: [] }
      yield* write(fleetTopic, "process/full", { ...beat, host: "b", pid: 7, omitted: 3 })
      yield* write(fleetTopic, "process/other", { ...beat, host: "c", pid: 8, omitted: 0 })
      yield* write(fleetTopic, "process/early", { ...beat, host: "d", pid: 9, omitted: 3, obeys: "0" })
      yield* inTime(fleet.hold(hold))
      yield* inTime(fleet.hold({ ...hold, tier: 1 }))
      const asked = yield* Effect.forkChild(fleet.applied(target, "3 seconds"))
      yield* advance("4 seconds")
      const { answers, missing } = yield* Fiber.join(asked)
      assert.deepStrictEqual(
        [answers, missing],
        [
          [],
          [
            { process: "full", host: "b", pid: 7, accepted: false },
            { process: "early", host: "d", pid: 9, accepted: false }
          ]
        ]
      )
    })
  )
})
