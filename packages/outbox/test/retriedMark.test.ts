/** The database refuses the mark of one event: the first refusal is in the log, and the mark is tried again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { retriedMark } from "../src/internal/delivery/batchMarker.ts"
import { OutboxStoreError } from "../src/OutboxError.ts"

describe("the mark of one event", () => {
  it.effect("OUT-D-18: the first refusal is logged at once, and no other one", () => {
    const lines: Array<string> = []
    let calls = 0
    const mark = Effect.suspend(() =>
      calls++ < 3
        ? Effect.fail(new OutboxStoreError({ operation: "mark retry", retryable: true, cause: new Error("no answer") }))
        : Effect.succeed(1)
    )
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        retriedMark("e1", () => mark),
        { startImmediately: true }
      )
      assert.deepStrictEqual(lines, [
        "outbox: marking e1 failed; trying again: OutboxStoreError: Outbox store: mark retry failed: no answer, caused by Error: no answer"
      ])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), 1)
      assert.strictEqual(calls, 4)
      assert.strictEqual(lines.length, 1)
    }).pipe(
      Effect.provide(
        Logger.layer([Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))])
      )
    )
  })
})
