import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, type DeadLetterRecord, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, headersOf, inTime, now, orders, publish, scenario, settle, start, text, until } from "../bus.ts"

const failing = (deadLetter: DeadLetter.DeadLetter, calls: Array<number> = []) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.none,
    deadLetter,
    handler: () =>
      Effect.andThen(
        Effect.map(now, (millis) => calls.push(millis)),
        Effect.die(new RangeError("no"))
      )
  })

const strategies: ReadonlyArray<readonly [string, DeadLetter.DeadLetter]> = [
  ["STORE_ONLY", DeadLetter.storeOnly],
  ["ALERT_AND_STORE", DeadLetter.alertAndStore(() => Effect.never)],
  ["SCHEDULED_REPLAY", DeadLetter.scheduledReplay({ cooldown: "1 second" })],
  ["CUSTOM", DeadLetter.custom(() => Effect.never)]
]

describe("strategies of a binding's dead letters", () => {
  scenario(
    "DLT-19 DLT-26 DLT-27 SCHEDULED_REPLAY gives a record its attempts again until maxReplays, then it stays",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const calls: Array<number> = []
        yield* start(failing(DeadLetter.scheduledReplay({ cooldown: "10 minutes", maxReplays: 2 }), calls))
        yield* publish("orders", ["x"])
        yield* settle
        for (let minute = 0; minute < 120; minute++) yield* advance("1 minute")
        assert.lengthOf(calls, 3)
        // Not before the cooldown, and at most a minute after it.
        const waits = [calls[1]! - calls[0]!, calls[2]! - calls[1]!]
        for (const wait of waits) assert.isTrue(wait >= 600_000 && wait <= 660_000, String(wait))
        const letters = yield* memory.log("orders.DLT", 0)
        assert.deepStrictEqual(
          letters.map((letter) => headersOf(letter).get("x-eventbus-replay-count")),
          [undefined, "1", "2"]
        )
        assert.isTrue(letters.every((letter) => headersOf(letter).get("x-eventbus-original-offset") === "0"))
      })
  )

  for (const [name, deadLetter] of strategies) {
    scenario(`C22 ruling 36 ${name}: after stop and destroy nothing is left, and a start continues`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const app = yield* start(failing(deadLetter))
        yield* publish("orders", ["a", "b"])
        yield* advance("500 millis")
        const before = yield* now
        yield* inTime(app.connector.stop("orders"), "1 second")
        assert.isAtMost((yield* now) - before, 15_000)
        const { consumers, members, readers, admins } = yield* memory.usage
        assert.deepStrictEqual([consumers, members, readers, admins], [0, 0, 0, 0])
        const stored = (yield* memory.log("orders", 0)).length
        yield* advance("1 hour")
        assert.lengthOf(yield* memory.log("orders", 0), stored)
        yield* app.connector.start("orders")
        yield* publish("orders", ["c"])
        yield* advance("500 millis")
        const values = (yield* memory.log("orders.DLT", 0)).map(({ value }) => text(value))
        assert.includeMembers(values, ["a", "b", "c"])
        yield* inTime(app.connector.destroy("orders"), "1 second")
        yield* inTime(app.close)
        const end = yield* memory.usage
        assert.deepStrictEqual([end.consumers, end.producers, end.admins, end.members], [0, 0, 0, 0])
      })
    )
  }

  scenario("DLT-18 DLT-22 ruling 35 records that are dead-lettered while the binding stops raise their alerts", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const got: Array<DeadLetterRecord.DeadLetterRecord> = []
      const alert = (letter: DeadLetterRecord.DeadLetterRecord) =>
        Effect.andThen(
          Effect.sleep("1 second"),
          Effect.sync(() => got.push(letter))
        )
      const app = yield* start(failing(DeadLetter.alertAndStore(alert)))
      yield* publish("orders", ["a", "b", "c"])
      yield* until(() => app.of("Settled").length === 3)
      yield* inTime(app.close, "1 second")
      assert.deepStrictEqual(
        got.map(({ value, originalOffset, record }) => [text(value), originalOffset, record.topic, record.offset]),
        [
          ["a", 0n, "orders.DLT", 0n],
          ["b", 1n, "orders.DLT", 1n],
          ["c", 2n, "orders.DLT", 2n]
        ]
      )
    })
  )
})
