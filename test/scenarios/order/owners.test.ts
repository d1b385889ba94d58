/** Order per key from one owner of a unit to the next: what is said, what is believed, and what is found again. */
import { assert, describe } from "@effect/vitest"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, inTime, scenario, start } from "../bus.ts"
import { changed, keyed, locks, publishKeyed } from "./keys.ts"

const ready = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders"))

const tier = "orders.retry-1"

describe("owners of keys", () => {
  for (const order of ["partition", "key"] as const) {
    scenario(`PKO-01 ${order}: a lock that waits outlasts owners that come and go`, () =>
      Effect.gen(function* () {
        yield* ready
        const first = keyed({ order, fails: { a1: 1 }, tiers: ["60 seconds"] })
        const app = yield* start(first.binding)
        yield* publishKeyed("a1", "a2", "b1")
        yield* advance("1 second")
        yield* app.close
        for (let owner = 0; owner < 3; owner++) {
          const between = keyed({ order, tiers: ["60 seconds"] })
          const running = yield* start(between.binding)
          yield* advance("5 seconds")
          yield* running.close
          assert.deepStrictEqual(between.handled, [])
        }
        const last = keyed({ order, tiers: ["60 seconds"] })
        yield* start(last.binding)
        yield* advance("60 seconds")
        assert.deepStrictEqual(last.handled, ["a1", "a2"])
      })
    )

    scenario(`PKO-02 ${order}: a key that is done to the end of the topic is not handled again by the next owner`, () =>
      Effect.gen(function* () {
        yield* ready
        // The lock of b stays in front of that of a: a is not free when it is done.
        const first = keyed({ order, perKey: { onDeadLetter: "hold" }, wrong: ["b1"], fails: { a1: 1 } })
        const app = yield* start(first.binding)
        yield* publishKeyed("b1", "a1", "a2")
        yield* advance("11 seconds")
        yield* inTime(app.close)
        assert.deepStrictEqual(first.handled, ["a1", "a2"])
        const { binding, handled } = keyed({ order, perKey: { onDeadLetter: "hold" } })
        yield* start(binding)
        yield* advance("30 seconds")
        assert.deepStrictEqual(handled, [])
      })
    )
  }

  scenario(
    "PKO-02 what stands before records that a free key has done is handled while the partition is given up",
    () =>
      Effect.gen(function* () {
        yield* ready
        const first = keyed({ fails: { a1: 1 }, takes: { b1: 18_000, b2: 1_000 } })
        const app = yield* start(first.binding)
        yield* publishKeyed("b1", "b2", "a1", "a2")
        yield* advance("12 seconds")
        // b1 is in work, a1 and a2 are done, and a is free.
        yield* inTime(app.close, "1 second")
        assert.deepStrictEqual(first.handled, ["a1", "a2", "b1", "b2"])
        const { binding, handled } = keyed({})
        yield* start(binding)
        yield* advance("30 seconds")
        assert.deepStrictEqual(handled, [])
      })
  )

  scenario("PKO-01 a superseded lock is found again where its successor has not arrived", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const first = keyed({ fails: { a1: 1, b1: 1 }, takes: { a2: 1_000 } })
      const app = yield* start(first.binding)
      yield* publishKeyed("a1", "a2", "a3")
      yield* advance("5 seconds")
      yield* publishKeyed("b1")
      yield* advance("5500 millis")
      // While a2 is in work: the lock of a says that a3 is next. It stands behind that of b, which waits.
      yield* inTime(app.close, "1 second")
      assert.deepStrictEqual(first.handled, ["a1", "a2"])
      const second = keyed({ fails: { a3: 9 }, takes: { a3: 1_000 } })
      const going = yield* start(second.binding)
      for (let nth = 1; nth <= 3; nth++)
        yield* memory.addFault(FaultPlan.nth(nth, { operation: "produce", topic: tier }, { _tag: "LoseRequest" }))
      // a3 fails, its lock does not arrive, b1 is handled, and the superseded lock is read.
      yield* advance("10 seconds")
      assert.deepStrictEqual(second.handled, ["b1"])
      yield* inTime(going.close)
      const third = keyed({})
      yield* start(third.binding)
      yield* advance("60 seconds")
      assert.deepStrictEqual(third.handled, ["a3"])
    })
  )

  scenario("PKO-01 the record behind a dead letter that arrives while its partition is given up is found again", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const app = yield* start(keyed({ wrong: ["a1"] }).binding)
      yield* memory.addFault(
        FaultPlan.nth(1, { operation: "produce", topic: "orders.DLT" }, { _tag: "Delay", duration: "3 seconds" })
      )
      yield* publishKeyed("a1")
      yield* advance("1 second")
      yield* inTime(app.close, "1 second")
      yield* publishKeyed("a2")
      // It does not get done with a2, and has committed behind it.
      const second = yield* start(keyed({ takes: { a2: 600_000 } }).binding)
      yield* advance("10 seconds")
      yield* inTime(second.close)
      const { binding, handled } = keyed({})
      yield* start(binding)
      yield* advance("30 seconds")
      assert.deepStrictEqual(handled, ["a2"])
    })
  )

  scenario("PKO-01 a key drains although the answer for its lock comes after its retry", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const { binding, handled } = keyed({ fails: { a1: 1, a2: 1 }, takes: { a2: 500 }, tiers: ["1 seconds"] })
      yield* start(binding)
      yield* publishKeyed("a1", "a2", "a3")
      yield* advance("1200 millis")
      yield* memory.addFault(
        FaultPlan.nth(1, { operation: "produce", topic: tier }, { _tag: "Delay", duration: "20 seconds" })
      )
      yield* advance("60 seconds")
      assert.deepStrictEqual(handled, ["a1", "a2", "a3"])
    })
  )

  scenario("PKO-09 a lock that a former owner publishes late is void", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const first = yield* start(keyed({ fails: { a1: 1 }, tiers: ["60 seconds"] }).binding)
      yield* publishKeyed("a1", "a2", "a3")
      yield* advance("1 second")
      const [lock] = yield* locks
      yield* inTime(first.close)
      const second = yield* start(keyed({ tiers: ["60 seconds"] }).binding)
      yield* advance("1 second")
      // The first owner says that a1 and a2 are done. The second one does not know of it.
      yield* memory.append(tier, 0, [changed(lock!, { offset: "2", hop: "1", next: "3" })])
      yield* inTime(second.close)
      const third = keyed({ tiers: ["60 seconds"] })
      yield* start(third.binding)
      yield* advance("120 seconds")
      assert.deepStrictEqual(third.handled, ["a1", "a2", "a3"])
    })
  )

  scenario("PKO-02 a lock that a former owner publishes late repeats nothing once its key is done", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const tiers = ["60 seconds"] as const
      const first = yield* start(keyed({ fails: { a1: 1 }, tiers }).binding)
      yield* publishKeyed("a1", "a2")
      yield* advance("30 seconds")
      const [lock] = yield* locks
      yield* inTime(first.close)
      // The lock of b waits for half a minute longer, and the late lock of a lies behind it.
      const second = yield* start(keyed({ fails: { b1: 1 }, tiers }).binding)
      yield* publishKeyed("b1")
      yield* advance("1 second")
      yield* memory.append(tier, 0, [changed(lock!, {})])
      yield* inTime(second.close)
      const third = keyed({ tiers })
      const going = yield* start(third.binding)
      yield* advance("40 seconds")
      assert.deepStrictEqual(third.handled, ["a1", "a2"])
      yield* inTime(going.close)
      const fourth = keyed({ tiers })
      yield* start(fourth.binding)
      yield* advance("120 seconds")
      assert.deepStrictEqual(fourth.handled, ["b1"])
    })
  )

  for (const [title, change] of [
    ["of another group", { bond: "memory//orders/0/others" }],
    ["of another partition", { bond: "memory//orders/7/billing" }],
    ["with an offset that is no number", { offset: "-5" }]
  ] as const) {
    scenario(`PKO-09 a lock ${title} changes nothing`, () =>
      Effect.gen(function* () {
        yield* ready
        const memory = yield* MemoryBroker.MemoryBroker
        const first = yield* start(keyed({ fails: { a1: 1 }, tiers: ["60 seconds"] }).binding)
        yield* publishKeyed("a1", "a2", "a3")
        yield* advance("1 second")
        const [lock] = yield* locks
        yield* memory.append(tier, 0, [
          { ...changed(lock!, { hop: "50", kind: "next", offset: "2", ...change }), value: null }
        ])
        yield* inTime(first.close)
        const { binding, handled } = keyed({ tiers: ["60 seconds"] })
        yield* start(binding)
        yield* advance("120 seconds")
        assert.deepStrictEqual(handled, ["a1", "a2", "a3"])
      })
    )
  }
})
