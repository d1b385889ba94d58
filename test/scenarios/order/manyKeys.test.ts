/** Many records and keys beside those that wait: nothing stops, and nothing runs for ever. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, inTime, scenario, start, until } from "../bus.ts"
import { keyed, publishKeyed } from "./keys.ts"

const ready = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders"))

/** Lets time pass second by second. */
const seconds = (count: number) => Effect.forEach(Array.from({ length: count }), () => advance("1 second"))

const tier = "orders.retry-1"

/** More than the records that a partition begins behind one that is not finished. */
const many = 12_000

describe("many keys", () => {
  for (const order of ["partition", "key"] as const) {
    scenario(
      `PKO-03 ${order}: what follows a dead letter may take long, and no record of another key waits for ever`,
      () =>
        Effect.gen(function* () {
          yield* ready
          const { binding, handled } = keyed({ order, wrong: ["a1"], takes: { a2: 60_000 } })
          yield* start(binding)
          yield* publishKeyed("a1", "a2", ...Array.from({ length: many }, (_, index) => `b${index}`), "c1")
          yield* until(() => handled.length >= many + 2, "1 second")
          assert.deepStrictEqual([handled.length, handled.includes("c1")], [many + 2, true])
        })
    )

    scenario(
      `PKO-03 ${order}: more keys are held than a partition begins records, and others are retried in time`,
      () =>
        Effect.gen(function* () {
          yield* ready
          const memory = yield* MemoryBroker.MemoryBroker
          const held = Array.from({ length: many }, (_, index) => `h${index}`)
          const { binding, handled } = keyed({ order, wrong: held, fails: { z1: 1 }, perKey: { onDeadLetter: "hold" } })
          const app = yield* start(binding)
          yield* memory.append(
            "orders",
            0,
            held.map((value) => ({ key: bytes(value), value: bytes(value) }))
          )
          for (let round = 0; round < 120 && (yield* memory.log(tier, 0)).length <= many; round++)
            yield* advance("1 second")
          const parked = yield* app.connector.parked("orders")
          assert.strictEqual((yield* inTime(parked.list)).filter(({ state }) => state === "held").length, many)
          yield* publishKeyed("z1", "z2")
          yield* advance("11 seconds")
          assert.deepStrictEqual(handled, ["z1", "z2"])
        }),
      { timeoutMillis: 240_000 }
    )
  }

  scenario("PKO-06 keys that are held write nothing while nothing happens", () =>
    Effect.gen(function* () {
      yield* ready
      const memory = yield* MemoryBroker.MemoryBroker
      const { binding } = keyed({ wrong: ["a1", "b1", "c1"], perKey: { onDeadLetter: "hold" } })
      yield* start(binding)
      yield* publishKeyed("a1", "b1", "c1")
      yield* seconds(60)
      assert.strictEqual((yield* memory.log(tier, 0)).length, 4)
    })
  )
})
