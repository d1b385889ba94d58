/** Functions of users that resist their interruption: nothing waits for them longer than a second. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as UserFunction from "../../src/UserFunction.ts"

const resisting: Readonly<Record<string, Effect.Effect<unknown>>> = {
  "one that is uninterruptible": Effect.uninterruptible(Effect.never),
  "one whose acquisition hangs": Effect.scoped(Effect.acquireRelease(Effect.never, () => Effect.void)),
  "one whose finalizer hangs": Effect.ensuring(Effect.never, Effect.never)
}

const logged = <A, E, R>(body: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => {
  const lines: Array<string> = []
  return Effect.provide(
    body(lines),
    Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))])
  )
}

const line = "Error the probe resists its interruption: nobody waits for it any longer, and it goes on by itself"

const bounded = <A, E>(call: () => Effect.Effect<A, E>) =>
  UserFunction.runBounded("the probe", UserFunction.callEffect("the probe", call))

describe("ruling 86: a function that resists its interruption is left behind, and the log says so", () => {
  for (const [name, effect] of Object.entries(resisting)) {
    it.effect(`${name}: a timeout around its call holds`, () =>
      logged((lines) =>
        Effect.gen(function* () {
          const call = bounded(() => effect)
          const fiber = yield* Effect.forkChild(Effect.timeoutOption(call, "10 seconds"), { startImmediately: true })
          yield* TestClock.adjust("10 seconds")
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust("1 second")
          assert.strictEqual((yield* Fiber.join(fiber))._tag, "None")
          yield* Effect.yieldNow
          assert.deepStrictEqual(lines, [line])
        })
      )
    )

    it.effect(`${name}: its caller ends a second after its own interruption`, () =>
      logged((lines) =>
        Effect.gen(function* () {
          const call = bounded(() => effect)
          const caller = yield* Effect.forkChild(call, { startImmediately: true })
          const interrupting = yield* Effect.forkChild(Fiber.interrupt(caller), { startImmediately: true })
          yield* TestClock.adjust("1 second")
          yield* Fiber.join(interrupting)
          yield* Effect.yieldNow
          assert.deepStrictEqual(lines, [line])
        })
      )
    )
  }

  it.effect("one that cleans up within the second is waited for, and needs no line", () =>
    logged((lines) =>
      Effect.gen(function* () {
        // Before its first adjustment, a TestClock ends sleeps of fibers that are interrupted.
        yield* TestClock.adjust("1 second")
        const ended: Array<string> = []
        const cleaned = Effect.andThen(
          Effect.sleep("900 millis"),
          Effect.sync(() => ended.push("cleaned up"))
        )
        const call = bounded(() => Effect.ensuring(Effect.never, cleaned))
        const caller = yield* Effect.forkChild(call, { startImmediately: true })
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(caller), { startImmediately: true })
        yield* TestClock.adjust("800 millis")
        assert.isUndefined(interrupting.pollUnsafe())
        yield* TestClock.adjust("100 millis")
        yield* Fiber.join(interrupting)
        assert.deepStrictEqual([ended, lines], [["cleaned up"], []])
      })
    )
  )

  it.effect("an answer, a failure and a defect are those of the function", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<number>()
      const answered = yield* Effect.forkChild(bounded(() => Deferred.await(gate)))
      yield* Deferred.succeed(gate, 7)
      assert.strictEqual(yield* Fiber.join(answered), 7)
      assert.strictEqual(yield* Effect.flip(bounded(() => Effect.fail("no"))), "no")
      const thrown = yield* Effect.exit(
        bounded(() => {
          throw new Error("thrown")
        })
      )
      assert(Exit.isFailure(thrown))
      assert.include(String(thrown.cause), "thrown")
    })
  )
})
