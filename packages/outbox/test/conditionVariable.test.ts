import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ConditionVariable } from "../src/internal/base/conditionVariable.ts"

describe("ConditionVariable", () => {
  it.effect("a condition that becomes true between check and wait is not missed", () =>
    Effect.gen(function* () {
      let looks = 0
      yield* new ConditionVariable().await(() => ++looks > 1)
      assert.strictEqual(looks, 2)
    })
  )

  it.effect("a notification resumes ready waiters, oldest first, and stops when the first took everything", () =>
    Effect.gen(function* () {
      const condition = new ConditionVariable()
      const [items, taken]: [Array<number>, Array<string>] = [[], []]
      const taker = (name: string) =>
        Effect.andThen(
          condition.await(() => items.length > 0),
          Effect.sync(() => void taken.push(`${name}${items.splice(0).join()}`))
        )
      yield* Effect.forkChild(taker("a"), { startImmediately: true })
      yield* Effect.forkChild(taker("b"), { startImmediately: true })
      condition.notifyReady()
      assert.deepStrictEqual(taken, [])
      items.push(1, 2)
      condition.notifyReady()
      assert.deepStrictEqual(taken, ["a1,2"])
      items.push(3)
      condition.notifyReady()
      assert.deepStrictEqual(taken, ["a1,2", "b3"])
      assert.isTrue(condition.isEmpty)
    })
  )

  it.effect("an interrupted fiber leaves the list; notifyOne resumes one fiber", () =>
    Effect.gen(function* () {
      const condition = new ConditionVariable()
      const fibers = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(
          condition.await(() => false),
          { startImmediately: true }
        )
      )
      yield* Fiber.interrupt(fibers[0]!)
      condition.notifyOne()
      yield* Fiber.join(fibers[1]!)
      assert.isFalse(condition.isEmpty)
      yield* Fiber.interrupt(fibers[2]!)
      assert.isTrue(condition.isEmpty)
    })
  )
})
