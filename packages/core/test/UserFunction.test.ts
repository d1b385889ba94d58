import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as UserFunction from "../src/UserFunction.ts"

const stubborn = Effect.uninterruptible(Effect.never)

/** The log's lines beside the result. */
const withLines = <A, E>(body: (lines: ReadonlyArray<string>) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    return Effect.provide(
      body(lines),
      Logger.layer([Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))])
    )
  })

const start = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

const timeout = "3 seconds"

describe("a call within bounds", () => {
  it.effect(
    "ruling 86: has the result of its effect, at once or later, a failure and an interruption of its own too",
    () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* UserFunction.runBounded("f", Effect.succeed(1), { timeout }), 1)
        assert.strictEqual(yield* UserFunction.runBounded("f", Effect.as(Effect.yieldNow, 2), { timeout }), 2)
        assert.strictEqual(yield* Effect.flip(UserFunction.runBounded("f", Effect.fail("no"), { timeout })), "no")
        const own = yield* Effect.exit(UserFunction.runBounded("f", Effect.andThen(Effect.yieldNow, Effect.interrupt)))
        assert.isTrue(Exit.isFailure(own) && Cause.hasInterruptsOnly(own.cause))
        const slow = yield* start(UserFunction.runBounded("f", Effect.as(Effect.sleep("2999 millis"), 3), { timeout }))
        yield* TestClock.adjust("2999 millis")
        assert.strictEqual(yield* Fiber.join(slow), 3)
      })
  )

  it.effect("ruling 86: fails after its timeout, when the finalizers of its effect have run", () =>
    withLines((lines) =>
      Effect.gen(function* () {
        let isReleased = false
        const release = Effect.andThen(
          Effect.sleep("500 millis"),
          Effect.sync(() => {
            isReleased = true
          })
        )
        const call = yield* start(
          UserFunction.runBounded(
            "listener a:b",
            Effect.onInterrupt(Effect.never, () => release),
            { timeout }
          )
        )
        yield* TestClock.adjust("3499 millis")
        assert.isUndefined(call.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.isTrue(isReleased)
        const error = yield* Effect.flip(Fiber.join(call))
        assert.deepInclude(error, { _tag: "FunctionTimedOut", what: "listener a:b", millis: 3000, retryable: true })
        assert.strictEqual(error.message, "listener a:b did not end within 3s and was interrupted")
        assert.deepStrictEqual(lines, [])
      })
    )
  )

  it.effect("ruling 86: leaves an effect behind that resists its interruption for a second, and says so", () =>
    withLines((lines) =>
      Effect.gen(function* () {
        const call = yield* start(UserFunction.runBounded("listener a:b", stubborn, { timeout }))
        yield* TestClock.adjust("3999 millis")
        assert.isUndefined(call.pollUnsafe())
        assert.deepStrictEqual(lines, [])
        yield* TestClock.adjust("1 millis")
        assert.strictEqual((yield* Effect.flip(Fiber.join(call)))._tag, "FunctionTimedOut")
        assert.lengthOf(lines, 1)
        assert.match(lines[0]!, /^listener a:b resists its interruption/)
      })
    )
  )

  it.effect("ruling 86: ends with its caller, and holds it for no longer than its end timeout", () =>
    withLines((lines) =>
      Effect.gen(function* () {
        let interrupted = 0
        const noted = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void interrupted++))
        const call = yield* start(UserFunction.runBounded("purger", noted))
        yield* Fiber.interrupt(call)
        assert.strictEqual(interrupted, 1)
        assert.deepStrictEqual(lines, [])
        const resisting = yield* start(UserFunction.runBounded("purger", stubborn, { endTimeout: "5 seconds" }))
        const ending = yield* start(Fiber.interrupt(resisting))
        yield* TestClock.adjust("4999 millis")
        assert.isUndefined(ending.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.isDefined(ending.pollUnsafe())
        assert.lengthOf(lines, 1)
      })
    )
  )
})
