/** Locks and claims that no owner wrote, and commits that have lost what they said. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, inTime, scenario, start } from "../bus.ts"
import { changed, type Given, keyed, locks, publishKeyed } from "./keys.ts"

const ready = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders"))

const tier = "orders.retry-1"

/** A program whose key a is parked: its first record waits in the first tier, the second one behind it. */
const parked = Effect.fnUntraced(function* (tiers: NonNullable<Given["tiers"]>) {
  yield* ready
  const memory = yield* MemoryBroker.MemoryBroker
  const app = yield* start(keyed({ fails: { a1: 1 }, tiers }).binding)
  yield* publishKeyed("a1", "a2")
  yield* advance("1 second")
  return { app, memory }
})

describe("false locks and claims", () => {
  scenario("PKO-09 a false claim makes no lock of the owner void", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const first = keyed({ fails: { a1: 1 }, tiers: ["60 seconds"] })
      const app = yield* start(first.binding)
      yield* advance("1 second")
      const [claim] = yield* memory.log(tier, 0)
      yield* memory.append(tier, 0, [changed(claim!, { epoch: "1099511627776" })])
      yield* publishKeyed("a1", "a2", "b1")
      yield* advance("1 second")
      yield* inTime(app.close)
      const { binding, handled } = keyed({ tiers: ["60 seconds"] })
      const next = yield* start(binding)
      assert.deepStrictEqual((yield* inTime((yield* next.connector.parked("orders")).list)).length, 1)
      yield* advance("60 seconds")
      assert.deepStrictEqual([first.handled, handled], [["b1"], ["a1", "a2"]])
    })
  )

  scenario("PKO-09 a commit that has lost its epoch loses no lock", () =>
    Effect.gen(function* () {
      const { app, memory } = yield* parked(["60 seconds"])
      yield* inTime(app.close)
      // As Kafka's own tools do it: the same offset, without a text.
      yield* memory.setCommitted("billing", tier, 0, 1n)
      const { binding, handled } = keyed({ tiers: ["60 seconds"] })
      yield* start(binding)
      yield* advance("60 seconds")
      assert.deepStrictEqual(handled, ["a1", "a2"])
    })
  )

  scenario("PKO-09 a void lock of a record that the main topic comes to again is passed over", () =>
    Effect.gen(function* () {
      const { app, memory } = yield* parked(["60 seconds"])
      yield* inTime(app.close)
      yield* memory.setCommitted("billing", tier, 0, 1n)
      yield* memory.setCommitted("billing", "orders", 0, 0n)
      const { binding, handled } = keyed({ tiers: ["60 seconds"] })
      yield* start(binding)
      yield* advance("90 seconds")
      assert.deepStrictEqual(handled, ["a1", "a2"])
    })
  )

  scenario("PKO-09 a false lock with the highest number, or a false claim of it, leaves later locks readable", () =>
    Effect.gen(function* () {
      const tiers = ["10 seconds", "20 seconds"] as const
      const { app, memory } = yield* parked(tiers)
      const [lock] = yield* locks
      const [claim] = yield* memory.log(tier, 0)
      yield* memory.append(tier, 0, [
        changed(lock!, { hop: "1000000000" }),
        changed(claim!, { epoch: String(Number.MAX_SAFE_INTEGER) })
      ])
      yield* inTime(app.close)
      const { binding, handled } = keyed({ fails: { a1: 1, b1: 1 }, tiers })
      yield* start(binding)
      yield* publishKeyed("b1", "b2")
      yield* advance("60 seconds")
      assert.deepStrictEqual([...handled].sort(), ["a1", "a2", "b1", "b2"])
      assert.deepStrictEqual(
        handled.filter((value) => value.startsWith("a")),
        ["a1", "a2"]
      )
      assert.deepStrictEqual(
        handled.filter((value) => value.startsWith("b")),
        ["b1", "b2"]
      )
    })
  )

  scenario("PKO-09 a unit that waits for an operator, since its locks are of another cluster, writes nothing", () =>
    Effect.gen(function* () {
      const { app, memory } = yield* parked(["60 seconds"])
      const [lock] = yield* locks
      yield* memory.append(tier, 0, [changed(lock!, { bond: "another//orders/0/billing" })])
      yield* inTime(app.close)
      const before = (yield* memory.log(tier, 0)).length
      const { binding, handled } = keyed({ tiers: ["60 seconds"] })
      const next = yield* start(binding)
      yield* Effect.repeat(advance("5 seconds"), { times: 30 })
      const { reasons } = yield* next.connector.health
      assert.deepStrictEqual(
        [reasons.some(({ _tag }) => _tag === "UnitIncomplete"), handled, (yield* memory.log(tier, 0)).length],
        [true, [], before]
      )
    })
  )

  scenario("PKO-09 a lock of an offset that the source does not have is not dropped: its unit waits, and says so", () =>
    Effect.gen(function* () {
      const { app, memory } = yield* parked(["60 seconds"])
      const [lock] = yield* locks
      yield* inTime(app.close)
      yield* memory.append(tier, 0, [changed(lock!, { offset: "5", next: "6" })])
      const { binding, handled } = keyed({ tiers: ["60 seconds"] })
      const next = yield* start(binding)
      yield* publishKeyed("b1", "b2")
      yield* Effect.repeat(advance("5 seconds"), { times: 20 })
      const problem =
        "1 parked key of another incarnation of the topic, of another cluster, or of a former name of the group (offset 5, which the source does not have)"
      const told = next.of("UnitWaits").map((event) => [event.topic, event.partition, event.problem.includes(problem)])
      assert.deepStrictEqual([told, handled], [[["orders", 0, true]], []])
      const { status, reasons } = yield* next.connector.health
      const shown = reasons.flatMap((reason) => (reason._tag === "UnitIncomplete" ? [reason.problem] : []))
      assert.strictEqual(status, "DOWN")
      assert.isTrue(shown.length > 0 && shown.every((each) => each.includes(problem)), shown[0])
      // An operator accepts the loss: the lock's record goes to the dead letter topic, and the unit begins.
      const parkedKeys = yield* next.connector.parked("orders")
      yield* inTime(parkedKeys.acceptLoss(1, "the source was made anew"))
      yield* Effect.repeat(advance("5 seconds"), { times: 5 })
      // The true lock of the key goes on.
      assert.deepStrictEqual(handled, ["b1", "b2", "a1", "a2"])
      assert.lengthOf(yield* memory.log("orders.DLT", 0), 1)
    })
  )
})
