/** Holds of a fleet: what processes do under them, and how they begin and end. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, inTime, orders, scenario, settle, start, until } from "../bus.ts"
import { control, entries, noting, operator, release, soon, startIn, target, write } from "./fleet.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

const reason = "the bank is down"
const hold = { ...target, reason, by: "ann" }

const topic = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  return memory
})

describe("holds of a fleet", () => {
  scenario("OPS-13 a process that starts under a hold handles no record, and goes on after the release", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a", "b"])
      const fleet = yield* operator
      yield* inTime(fleet.hold(hold))
      for (let deploy = 0; deploy < 3; deploy++) {
        const handled: Array<string> = []
        const app = yield* startIn({}, noting(handled))
        yield* advance("1 minute")
        assert.deepStrictEqual(app.of("Started"), [])
        assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
        yield* inTime(app.close)
      }
      const handled: Array<string> = []
      yield* startIn({}, noting(handled))
      yield* inTime(fleet.release(release))
      yield* until(() => handled.length === 2, "1 second")
      assert.deepStrictEqual(handled, ["a", "b"])
    })
  )

  scenario("OPS-13 a hold reaches the processes that run, within a second", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      const handled: Array<string> = []
      const apps = [yield* startIn({}, noting(handled)), yield* startIn({}, noting(handled))]
      yield* soon
      yield* fleet.hold(hold)
      yield* advance("1 second")
      yield* append("orders", 0, ["a"])
      yield* append("orders", 1, ["b"])
      yield* advance("10 minutes")
      assert.deepStrictEqual(handled, [])
      for (const { connector } of apps) {
        const { pausedBy, fleetHolds } = yield* connector.snapshot("orders")
        assert.deepStrictEqual(pausedBy, ["fleet"])
        assert.deepInclude(fleetHolds[0], { by: "ann", reason, tier: undefined, untilMillis: undefined })
      }
    })
  )

  scenario("OPS-13 LIF-11 no process lifts a hold by itself, and its error says who can", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.hold(hold))
      const app = yield* startIn({}, noting([]))
      yield* soon
      const error = yield* Effect.flip(app.connector.resume("orders"))
      assert.include(error.message, "ann holds it in the whole fleet: the bank is down")
      assert.include(error.message, "Fleet.release")
      // A local pause and resume is one's own, beside the hold.
      yield* app.connector.pause("orders")
      yield* app.connector.resume("orders")
      assert.deepStrictEqual((yield* app.connector.snapshot("orders")).pausedBy, ["fleet"])
      // So is a stop.
      yield* inTime(app.connector.stop("orders"))
      yield* app.connector.start("orders")
      yield* append("orders", 0, ["a"])
      yield* advance("1 minute")
      assert.deepStrictEqual(app.of("Started"), [])
      const { reasons } = yield* app.connector.health
      assert.deepStrictEqual(
        reasons.map(({ _tag }) => _tag),
        ["Paused"]
      )
    })
  )

  scenario("OPS-13 a local pause outlives the release of a hold", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.hold(hold))
      const handled: Array<string> = []
      const app = yield* startIn({}, noting(handled))
      yield* soon
      yield* app.connector.pause("orders")
      yield* inTime(fleet.release(release))
      yield* append("orders", 0, ["a"])
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, [])
      yield* app.connector.resume("orders")
      yield* until(() => handled.length === 1, "1 second")
    })
  )

  scenario("OPS-13 `until` ends a hold by itself", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a"])
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      const { sinceMillis } = yield* inTime(fleet.hold({ ...hold, until: 600_000 }))
      assert.isBelow(sinceMillis, 600_000)
      const handled: Array<string> = []
      yield* startIn({}, noting(handled))
      for (let minute = 0; minute < 9; minute++) yield* advance("1 minute")
      assert.deepStrictEqual(handled, [])
      yield* advance("70 seconds")
      assert.deepStrictEqual(handled, ["a"])
      assert.deepStrictEqual((yield* inTime(fleet.view)).holds, [])
    })
  )

  for (const offMillis of [3_600_000, -3_600_000]) {
    scenario(
      `OPS-13 OPS-15 \`until\` follows the cluster's clock where that of the process is ${offMillis} ms ahead`,
      () =>
        Effect.gen(function* () {
          yield* topic
          yield* append("orders", 0, ["a"])
          yield* advance("2 hours")
          const fleet = yield* operator
          yield* inTime(fleet.createTopics)
          yield* inTime(fleet.hold({ ...hold, until: 7_200_000 + 600_000 }))
          const handled: Array<string> = []
          yield* startIn({ offMillis }, noting(handled))
          for (let minute = 0; minute < 9; minute++) yield* advance("1 minute")
          assert.deepStrictEqual(handled, [])
          yield* advance("70 seconds")
          assert.deepStrictEqual(handled, ["a"])
        })
    )
  }

  scenario("OPS-13 a hold on a retry tier leaves the main topic alone", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.hold({ ...hold, tier: 1 }))
      const calls: Array<string> = []
      const app = yield* startIn(
        {},
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ tiers: [{ delay: "1 second" }], blocking: { maxAttempts: 1 } }),
          handler: ({ value }) =>
            Effect.suspend(() => (calls.push(value) === 1 ? Effect.fail(new Boom()) : Effect.void)),
          onError: { Boom: Route.retry }
        })
      )
      yield* append("orders", 0, ["broken", "fine"])
      yield* advance("1 minute")
      assert.deepStrictEqual(calls, ["broken", "fine"])
      const { pausedBy, containers } = yield* app.connector.snapshot("orders")
      assert.deepStrictEqual(pausedBy, [])
      assert.deepStrictEqual(
        containers.map(({ state }) => state),
        ["RUNNING", "PAUSED"]
      )
      const error = yield* Effect.flip(app.connector.resume("orders", { tier: 1 }))
      assert.include(error.message, "ann holds it in the whole fleet")
      yield* inTime(fleet.release({ ...release, tier: 1 }))
      yield* advance("10 seconds")
      assert.deepStrictEqual(calls, ["broken", "fine", "broken"])
    })
  )

  scenario(
    "OPS-13 OPS-20 a process that reads the holds says so, and is neither paused nor held; a hold that it finds pauses it",
    () =>
      Effect.gen(function* () {
        yield* topic
        const fleet = yield* operator
        const app = yield* startIn({}, noting([]))
        const reading = yield* app.connector.snapshot("orders")
        assert.deepInclude(reading, { state: "RUNNING", pausedBy: [], fleetHolds: [], readsHolds: true })
        assert.deepStrictEqual(
          (yield* app.connector.health).reasons.map((found) => found._tag === "ReadingHolds" && found.binding),
          ["orders"]
        )
        yield* inTime(fleet.hold(hold))
        yield* soon
        assert.deepInclude(yield* app.connector.snapshot("orders"), {
          ...{ state: "PAUSED", pausedBy: ["fleet"], readsHolds: false }
        })
        assert.deepStrictEqual(
          app.of("StateChanged").map(({ to }) => to),
          ["RUNNING", "PAUSED"]
        )
      })
  )

  scenario("OPS-13 nothing is fetched before the holds are known: under `run` for 10 seconds at most", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a"])
      const handled: Array<string> = []
      const app = yield* startIn({}, noting(handled))
      yield* advance("9 seconds")
      assert.deepStrictEqual(handled, [])
      const error = yield* Effect.flip(app.connector.resume("orders"))
      assert.include(error.message, "it is reading topic '__eventbus.control'")
      yield* advance("2 seconds")
      assert.deepStrictEqual(handled, ["a"])
    })
  )

  scenario("OPS-13 under `hold` a process without control topic handles nothing until the topic can be read", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a"])
      const handled: Array<string> = []
      const app = yield* startIn({ onControlUnavailable: "hold" }, noting(handled))
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, [])
      const error = yield* Effect.flip(app.connector.resume("orders"))
      const why = "topic '__eventbus.control' cannot be read, and onControlUnavailable is 'hold'"
      assert.include(error.message, `its own process holds it: ${why}. It goes on when the process has read that topic`)
      const [held] = (yield* app.connector.snapshot("orders")).fleetHolds
      assert.deepInclude(held, { condition: "control-unavailable", reason: why, tier: undefined })
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      yield* advance("10 seconds")
      assert.deepStrictEqual(handled, ["a"])
    })
  )

  scenario("OPS-13 a hold stays while its topic is deleted, and after it was made again, until it is released", () =>
    Effect.gen(function* () {
      const memory = yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.hold(hold))
      const handled: Array<string> = []
      yield* startIn({}, noting(handled))
      yield* append("orders", 0, ["a"])
      yield* soon
      yield* Effect.scoped(Effect.flatMap(memory.broker.admin, ({ deleteTopics }) => deleteTopics([control])))
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, [])
      yield* inTime(fleet.createTopics)
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, [])
      yield* inTime(fleet.release(release))
      yield* advance("10 seconds")
      assert.deepStrictEqual(handled, ["a"])
    })
  )

  scenario("OPS-13 an entry of a newer operator, or one that cannot be read, holds too", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a"])
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      const handled: Array<string> = []
      const app = yield* startIn({}, noting(handled))
      for (const [value, why] of [
        [{ v: 7, minV: 7, from: "tomorrow" }, "newer version"],
        ["{", "cannot be read"]
      ] as const) {
        yield* write(control, "hold/default/billing/orders", value)
        yield* soon
        assert.include((yield* Effect.flip(app.connector.resume("orders"))).message, why)
      }
      yield* inTime(fleet.release(release))
      yield* soon
      yield* settle
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
    })
  )

  scenario("OPS-13 an operator keeps the fields of a newer one that it does not know", () =>
    Effect.gen(function* () {
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      yield* write(control, "hold/default/billing/orders", {
        ...{ v: 2, minV: 1, by: "bob", reason: "x", until: 5, ticket: "T-1" }
      })
      yield* inTime(fleet.hold(hold))
      assert.deepStrictEqual((yield* entries(control)).get("hold/default/billing/orders"), {
        ...{ v: 1, minV: 1, by: "ann", reason, ticket: "T-1" }
      })
    })
  )

  scenario("OPS-13 a hold is for one group and one cluster, whatever characters their names have", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.hold({ ...hold, groupId: "a/b%", binding: "orders" }))
      const handled: Array<string> = []
      const other: Array<string> = []
      yield* append("orders", 0, ["a"])
      yield* startIn({}, noting(handled, { groupId: "a/b%" }))
      yield* startIn({}, noting(other))
      yield* advance("1 minute")
      assert.deepStrictEqual([handled, other], [[], ["a"]])
      assert.deepStrictEqual(
        (yield* inTime(fleet.view)).holds.map(({ groupId }) => groupId),
        ["a/b%"]
      )
    })
  )

  scenario("OPS-13 without the layer a connector writes and reads nothing of a fleet", () =>
    Effect.gen(function* () {
      const memory = yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.hold(hold))
      const handled: Array<string> = []
      yield* append("orders", 0, ["a"])
      yield* start(noting(handled))
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, ["a"])
      assert.strictEqual(yield* memory.partitionCount("__eventbus.fleet"), 0)
    })
  )

  scenario("OPS-13 a topic that does not fit is refused, with the setting, before anything is written to it", () =>
    Effect.gen(function* () {
      const memory = yield* topic
      yield* memory.createTopic(control, { partitions: 2 })
      const fleet = yield* operator
      const error = yield* Effect.flip(inTime(fleet.hold(hold)))
      assert.strictEqual(
        error.message,
        "Nothing was written: topic '__eventbus.control': partitions is 2, allowed is 1; " +
          "topic '__eventbus.control': cleanup.policy is delete, allowed is compact; " +
          "topic '__eventbus.control': message.timestamp.type is CreateTime, allowed is LogAppendTime. " +
          "Alter the topic, or delete it and have it created anew."
      )
      assert.deepStrictEqual(yield* memory.log(control, 0), [])
      const { problems } = yield* inTime(fleet.view)
      assert.deepStrictEqual(
        problems.map(({ topic, setting }) => `${topic} ${setting}`),
        [
          "__eventbus.control partitions",
          "__eventbus.control cleanup.policy",
          "__eventbus.control message.timestamp.type",
          "__eventbus.fleet topic"
        ]
      )
    })
  )

  scenario("OPS-13 arguments of another kind are refused by path and value", () =>
    Effect.gen(function* () {
      const fleet = yield* operator
      const refused = (request: object) =>
        Effect.map(Effect.flip(fleet.hold(request as never)), ({ message }) => message)
      assert.include(yield* refused({ ...hold, reason: " " }), "hold: reason is ' '")
      assert.include(yield* refused({ groupId: "billing", reason }), "hold: binding is undefined")
      assert.include(yield* refused({ ...hold, tier: 0 }), "hold: tier is 0, expected the number of a tier, from 1")
      assert.include(yield* refused({ ...hold, until: "noon" }), "hold: until is 'noon', expected epoch milliseconds")
    })
  )
})
