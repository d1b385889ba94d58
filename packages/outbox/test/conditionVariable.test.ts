import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ConditionVariable } from "../src/internal/base/conditionVariable.ts"

describe("Waiters", () => {
  it.effect("a condition that becomes true between check and wait is not missed", () =>
    Effect.gen(function* () {
      let looks = 0
      yield* new ConditionVariable().await(() => ++looks > 1)
      assert.strictEqual(looks, 2)
    })
  )

  it.effect("a wake-up resumes ready waiters, oldest first, and stops when the first took everything", () =>
    Effect.gen(function* () {
      const waiters = new ConditionVariable()
      const [items, taken]: [Array<number>, Array<string>] = [[], []]
      const taker = (name: string) =>
        Effect.andThen(
          waiters.await(() => items.length > 0),
          Effect.sync(() => void taken.push(`${name}${items.splice(0).join()}`))
        )
      yield* Effect.forkChild(taker("a"), { startImmediately: true })
      yield* Effect.forkChild(taker("b"), { startImmediately: true })
      waiters.notifyReady()
      assert.deepStrictEqual(taken, [])
      items.push(1, 2)
      waiters.notifyReady()
      assert.deepStrictEqual(taken, ["a1,2"])
      items.push(3)
      waiters.notifyReady()
      assert.deepStrictEqual(taken, ["a1,2", "b3"])
      assert.isTrue(waiters.isEmpty)
    })
  )

  it.effect("an interrupted fiber no longer waits; wakeOne resumes one", () =>
    Effect.gen(function* () {
      const waiters = new ConditionVariable()
      const fibers = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(
          waiters.await(() => false),
          { startImmediately: true }
        )
      )
      yield* Fiber.interrupt(fibers[0]!)
      waiters.notifyOne()
      yield* Fiber.join(fibers[1]!)
      assert.isFalse(waiters.isEmpty)
      yield* Fiber.interrupt(fibers[2]!)
      assert.isTrue(waiters.isEmpty)
    })
  )
})
