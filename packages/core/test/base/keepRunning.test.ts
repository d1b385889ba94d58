import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { keepRunning } from "../../src/internal/base/keepRunning.ts"

describe("keepRunning", () => {
  it.effect(
    "ruling 86: a loop that dies or fails is logged and started again with backoff, until it is interrupted",
    () => {
      const lines: Array<string> = []
      let starts = 0
      const loop = Effect.suspend((): Effect.Effect<never, string> => {
        starts++
        if (starts === 1) throw new Error("a bug")
        return starts === 2 ? Effect.fail("a failure") : Effect.never
      })
      return Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(keepRunning("lag poller", loop), { startImmediately: true })
        assert.strictEqual(starts, 1)
        yield* TestClock.adjust("1 second")
        assert.strictEqual(starts, 2)
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(starts, 3)
        assert.strictEqual(lines.filter((line) => line.includes("'lag poller' died")).length, 2)
        yield* Fiber.interrupt(fiber)
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(starts, 3)
      }).pipe(
        Effect.provide(
          Logger.layer([Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))])
        )
      )
    }
  )

  it.effect("ruling 86: a logger that throws ends no loop, and has its lines again afterwards", () => {
    const lines: Array<string> = []
    let isFull = true
    let starts = 0
    const loop = Effect.suspend((): Effect.Effect<never> => {
      starts++
      throw new Error("a bug")
    })
    const logger = Logger.make(({ message }) => {
      if (isFull) throw new Error("ENOSPC: no space left on device, write")
      lines.push([message].flat().map(String).join(" "))
    })
    return Effect.gen(function* () {
      yield* Effect.forkChild(keepRunning("lag poller", loop), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([starts, lines.length], [2, 0])
      isFull = false
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual([starts, lines.length], [3, 1])
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})
