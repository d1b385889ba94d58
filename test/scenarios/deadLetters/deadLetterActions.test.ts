import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, type DeadLetterRecord, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, settle, start, text, until, valuesOf } from "../bus.ts"

/** A binding whose handler fails while `broken` says so. */
const failing = <R>(deadLetter: DeadLetter.DeadLetter<R>, broken: { is: boolean } = { is: true }) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.none,
    deadLetter,
    handler: ({ value }) => (broken.is && value.startsWith("bad") ? Effect.die(new RangeError(value)) : Effect.void)
  })

describe("dead letter strategies of a binding", () => {
  scenario(
    "DLT-18 each stored dead letter raises an alert after it is stored; an alert that hangs or fails changes nothing",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const alerts: Array<string> = []
        const alert = (letter: DeadLetterRecord.DeadLetterRecord) =>
          Effect.suspend(() => {
            const value = text(letter.value) ?? ""
            alerts.push(`${value} ${letter.lastExceptionClass} ${letter.record.topic}@${letter.record.offset}`)
            if (value === "bad-hangs") return Effect.never
            return value === "bad-fails" ? Effect.fail("pager") : Effect.void
          })
        const app = yield* start(failing(DeadLetter.alertAndStore(alert, { alertTimeout: "10 seconds" })))
        yield* append("orders", 0, ["bad-1", "bad-hangs", "bad-fails", "good", "bad-2"])
        yield* settle
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 5n)
        assert.strictEqual((yield* valuesOf("orders.DLT")).length, 4)
        yield* advance("10 seconds")
        assert.deepStrictEqual(alerts, [
          "bad-1 RangeError orders.DLT@0",
          "bad-hangs RangeError orders.DLT@1",
          "bad-fails RangeError orders.DLT@2",
          "bad-2 RangeError orders.DLT@3"
        ])
        assert.strictEqual(app.of("AlertFailed").length, 2)
      })
  )

  scenario(
    "DLT-19 DLT-21 DLT-26 a scheduled replay runs after the cooldown, up to maxReplays; then the record stays",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const broken = { is: true }
        const replay = DeadLetter.scheduledReplay({ cooldown: "10 minutes", maxReplays: 2 })
        yield* start(failing(replay, broken))
        yield* append("orders", 0, ["bad"])
        yield* advance("9 minutes")
        assert.deepStrictEqual(yield* valuesOf("orders"), ["bad"])
        yield* Effect.repeat(advance("1 minute"), { times: 2 })
        assert.deepStrictEqual(yield* valuesOf("orders"), ["bad", "bad"])
        yield* Effect.repeat(advance("1 minute"), { times: 60 })
        assert.deepStrictEqual(yield* valuesOf("orders"), ["bad", "bad", "bad"])
        assert.strictEqual((yield* valuesOf("orders.DLT")).length, 3)
      })
  )

  scenario(
    "DLT-20 NAM-07 ruling 33 ruling 34 a custom handler gets each dead letter; a failing call leaves the record, once",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const seen: Array<string | null> = []
        const custom = DeadLetter.custom(({ value }) =>
          Effect.suspend(() => {
            seen.push(text(value))
            return text(value) === "bad-2" ? Effect.die("cannot") : Effect.void
          })
        )
        const app = yield* start(failing(custom))
        yield* append("orders", 0, ["bad-1", "bad-2", "bad-3"])
        yield* until(() => seen.length === 3, "5 seconds")
        yield* advance("1 minute")
        assert.deepStrictEqual(seen, ["bad-1", "bad-2", "bad-3"])
        assert.strictEqual(app.of("LetterHandlerFailed").length, 1)
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 3n)
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad-1", "bad-2", "bad-3"])
        yield* app.close
        assert.strictEqual((yield* memory.usage).consumers, 0)
      })
  )
})
