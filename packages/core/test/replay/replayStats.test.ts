import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber } from "effect"
import { advance, bytes, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import * as Stats from "../../src/internal/deadLetters/replayStats.ts"
import type * as Replay from "../../src/Replay.ts"

const target = Effect.map(MemoryBroker.MemoryBroker, ({ broker }) => ({
  ...{
    broker,
    groupId: "billing",
    adopts: [],
    deadLetterTopic: "orders.DLT",
    maxReplays: 3,
    maxBufferedBytes: 16_777_216
  }
}))
const stats = Effect.flatMap(target, (of) => inTime(Stats.stats(of), "1 second"))
const purge = (beforeMillis: number) =>
  Effect.flatMap(target, (of) => inTime(Stats.purge(of, beforeMillis), "1 second"))

const letter = (value: string, millis: number, exceptionClass = "Down") => ({
  key: null,
  value: bytes(value),
  headers: Object.entries({
    "x-eventbus-dlt-timestamp": String(millis),
    "x-eventbus-last-exception-class": exceptionClass
  }).map(([key, header]) => ({ key, value: bytes(header) }))
})

const remaining = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  const logs = yield* Effect.forEach([0, 1, 2], (partition) => memory.log("orders.DLT", partition))
  return logs.map((records) => records.map(({ value }) => text(value)))
})

const mixed = Effect.fnUntraced(function* (policy = "delete") {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders.DLT", { partitions: 3, config: new Map([["cleanup.policy", policy]]) })
  yield* memory.append("orders.DLT", 0, [letter("old", 10), letter("new", 100), letter("old2", 20)])
  yield* memory.append("orders.DLT", 1, [letter("young", 99)])
  return memory
})

describe("statistics of dead letters", () => {
  scenario("DLT-30 an empty or missing topic has zero records and no dates", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const nothing: Replay.Stats = {
        count: 0,
        exhausted: 0,
        failed: 0,
        stored: 0,
        unreadable: 0,
        oldestMillis: undefined,
        newestMillis: undefined,
        byExceptionClass: new Map(),
        foreign: new Map()
      }
      assert.deepStrictEqual({ ...(yield* stats) }, nothing)
      yield* memory.createTopic("orders.DLT")
      yield* memory.appendControl("orders.DLT", 0, 2)
      assert.deepStrictEqual({ ...(yield* stats) }, nothing)
    })
  )

  scenario("DLT-28 DLT-30 ruling 61 counts records that are not replayed yet, beside all stored records", () =>
    Effect.gen(function* () {
      const memory = yield* mixed()
      yield* memory.append("orders.DLT", 2, [letter("a", 5, "constructor"), letter("b", 7, "__proto__")])
      yield* memory.appendAborted("orders.DLT", 2, [letter("never", 1)])
      yield* memory.setCommitted("billing.dlt", "orders.DLT", 0, 1n)
      const { byExceptionClass, ...found } = yield* stats
      const counts = { count: 5, exhausted: 0, failed: 0, stored: 6, unreadable: 0 }
      assert.deepStrictEqual(found, { ...counts, oldestMillis: 5, newestMillis: 100, foreign: new Map() })
      assert.deepStrictEqual([...byExceptionClass].sort(), [
        ["Down", 3],
        ["__proto__", 1],
        ["constructor", 1]
      ])
    })
  )

  scenario("DLT-30 the number of error classes is bounded", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders.DLT")
      yield* memory.append(
        "orders.DLT",
        0,
        Array.from({ length: 300 }, (_, index) => letter("x", 1, `Class${index}`))
      )
      const { byExceptionClass } = yield* stats
      assert.strictEqual(byExceptionClass.size, 201)
      assert.strictEqual(byExceptionClass.get("other"), 100)
    })
  )
})

describe("purge of dead letters", () => {
  scenario("C25 DLT-29 ruling 32 only the old beginning of a partition is deleted, and the number is true", () =>
    Effect.gen(function* () {
      yield* mixed()
      assert.strictEqual(yield* purge(0), 0)
      assert.strictEqual(yield* purge(10), 0)
      assert.strictEqual(yield* purge(50), 1)
      assert.deepStrictEqual(yield* remaining, [["new", "old2"], ["young"], []])
      assert.strictEqual(yield* purge(50), 0)
      assert.strictEqual(yield* purge(Number.NaN), 0)
      assert.strictEqual(yield* purge(1_000), 3)
      assert.deepStrictEqual(yield* remaining, [[], [], []])
      assert.strictEqual(yield* purge(1_000), 0)
    })
  )

  scenario(
    "C25 a compacted topic is refused, and no deletion is reported; a topic with compact and delete is purged",
    () =>
      Effect.gen(function* () {
        const memory = yield* mixed("compact")
        const failed = yield* Effect.flip(purge(1_000))
        assert.strictEqual(failed._tag, "NotPurgeable")
        assert.deepStrictEqual(yield* remaining, [["old", "new", "old2"], ["young"], []])
        const admin = yield* memory.broker.admin
        yield* admin.alterTopicConfig("orders.DLT", new Map([["cleanup.policy", "compact, delete"]]))
        assert.strictEqual(yield* purge(1_000), 4)
      })
  )

  for (const apartMillis of [0, 5, 20, 60]) {
    scenario(
      `DLT-29 ruling 32 purges that run at once, begun ${apartMillis} ms apart, report together what was deleted`,
      () =>
        Effect.gen(function* () {
          yield* mixed()
          const begin = (beforeMillis: number) =>
            Effect.flatMap(target, (of) => Effect.forkChild(Stats.purge(of, beforeMillis), { startImmediately: true }))
          const first = yield* begin(1_000)
          yield* advance(apartMillis)
          const [older, same] = [yield* begin(50), yield* begin(1_000)]
          const counts = yield* inTime(Effect.all([first, older, same].map(Fiber.join)), "5 millis")
          assert.strictEqual(
            counts.reduce((sum, count) => sum + count, 0),
            4
          )
          assert.deepStrictEqual(yield* remaining, [[], [], []])
        }),
      { latency: { admin: 20, fetch: 20 } }
    )
  }

  scenario("C25 a missing topic has nothing to purge", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* purge(1_000), 0)
    })
  )
})
