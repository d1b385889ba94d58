/** The view of a fleet: processes, versions, liveness and clock skew. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, scenario } from "../bus.ts"
import { fleetTopic, noting, operator, startIn, write } from "./fleet.ts"

const topic = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  return memory
})

const beat = {
  host: "b",
  pid: 7,
  version: "2",
  configHash: "00",
  sentAt: 0,
  control: "known",
  bindings: [],
  omitted: 0
}

describe("the view of a fleet", () => {
  scenario("OPS-15 processes with version, bindings, lag and the hash of their settings", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      yield* startIn({ version: "1.4.2" }, noting([]))
      yield* startIn({ version: "1.4.2" }, noting([]))
      const other = yield* startIn({ version: "1.5.0" }, noting([], { maxPollRecords: 7 }))
      yield* other.connector.pause("orders")
      yield* append("orders", 0, ["a"])
      yield* append("orders", 1, ["b"])
      yield* advance("11 seconds")
      const { processes, problems, asOfMillis } = yield* inTime(fleet.view)
      assert.deepStrictEqual(problems, [])
      assert.isAtLeast(asOfMillis, 10_000)
      assert.deepStrictEqual(processes.map(({ version }) => version).sort(), ["1.4.2", "1.4.2", "1.5.0"])
      assert.strictEqual(new Set(processes.map(({ configHash }) => configHash)).size, 2)
      for (const process of processes) {
        assert.deepInclude(process, {
          status: "live",
          isSkewed: false,
          isReadable: true,
          protocol: 1,
          control: "known"
        })
        assert.deepInclude(process.bindings[0], { name: "orders", cluster: "default", groupId: "billing" })
      }
      const paused = processes.find(({ version }) => version === "1.5.0")?.bindings[0]
      assert.deepInclude(paused, { state: "PAUSED", pausedBy: ["operator"] })
    })
  )

  scenario(
    "OPS-15 a process that ends is gone at once; a silent one is stale after 15 seconds, gone after an hour",
    () =>
      Effect.gen(function* () {
        yield* topic
        const fleet = yield* operator
        yield* inTime(fleet.createTopics)
        yield* startIn({}, noting([]))
        const ending = yield* startIn({}, noting([]))
        yield* write(fleetTopic, "process/silent", { v: 1, minV: 1, ...beat })
        const status = Effect.map(inTime(fleet.view), ({ processes }) => processes.map((each) => each.status).sort())
        yield* advance("5 seconds")
        assert.deepStrictEqual(yield* status, ["live", "live", "live"])
        yield* inTime(ending.close)
        assert.deepStrictEqual(yield* status, ["live", "live"])
        yield* advance("16 seconds")
        assert.deepStrictEqual(yield* status, ["live", "stale"])
        yield* advance("1 hour")
        assert.deepStrictEqual(yield* status, ["live"])
      })
  )

  scenario("OPS-15 clocks that are an hour off are flagged, and decide nothing", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      yield* startIn({ offMillis: 3_600_000, version: "ahead" }, noting([]))
      yield* startIn({ offMillis: -3_600_000, version: "behind" }, noting([]))
      yield* startIn({ offMillis: 1_000, version: "right" }, noting([]))
      yield* advance("6 seconds")
      const { processes } = yield* inTime(fleet.view)
      assert.deepStrictEqual(
        new Map(
          processes.map(({ version, status, isSkewed, skewMillis }) => [version, [status, isSkewed, skewMillis]])
        ),
        new Map([
          ["ahead", ["live", true, 3_600_000]],
          ["behind", ["live", true, -3_600_000]],
          ["right", ["live", false, 1_000]]
        ])
      )
      const { answers, missing } = yield* inTime(
        fleet.command({ verb: "pause", binding: "orders", reason: "test" }),
        "500 millis"
      )
      assert.deepStrictEqual([answers.map(({ state }) => state), missing], [["done", "done", "done"], []])
    })
  )

  scenario("OPS-15 a process of a newer version is shown, though its heartbeat cannot be read", () =>
    Effect.gen(function* () {
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      yield* write(fleetTopic, "process/newer", { v: 3, minV: 3, all: "new" })
      yield* write(fleetTopic, "process/next", { v: 2, minV: 1, ...beat, more: true })
      const { processes } = yield* inTime(fleet.view)
      assert.deepStrictEqual(
        processes.map(({ id, protocol, isReadable, version }) => [id, protocol, isReadable, version]),
        [
          ["newer", 3, false, ""],
          ["next", 2, true, "2"]
        ]
      )
    })
  )

  scenario("OPS-15 a fleet whose processes all died is stale for an operator who comes later", () =>
    Effect.gen(function* () {
      yield* inTime((yield* operator).createTopics)
      yield* write(fleetTopic, "process/dead", { v: 1, minV: 1, ...beat })
      yield* advance("10 minutes")
      const { processes } = yield* inTime((yield* operator).view, "500 millis")
      assert.deepStrictEqual(
        processes.map(({ status }) => status),
        ["stale"]
      )
    })
  )

  scenario("OPS-15 without topics the view names what is missing", () =>
    Effect.gen(function* () {
      const { processes, holds, problems } = yield* inTime((yield* operator).view)
      assert.deepStrictEqual([processes, holds], [[], []])
      assert.deepStrictEqual(
        problems.map(({ topic, found }) => `${topic} is ${found}`),
        ["__eventbus.control is missing", "__eventbus.fleet is missing"]
      )
    })
  )
})
