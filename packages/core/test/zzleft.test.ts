import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as UserFunction from "../src/UserFunction.ts"

it.effect("x", () =>
  Effect.gen(function* () {
    const log = (s: string) => Effect.clockWith((c) => Effect.sync(() => console.log(c.currentTimeMillisUnsafe(), s)))
    const cleaned = Effect.andThen(log("fin begins"), Effect.andThen(Effect.sleep("900 millis"), log("cleaned")))
    const call = UserFunction.runBounded(
      "p",
      UserFunction.callEffect("p", () => Effect.ensuring(Effect.never, cleaned))
    )
    const caller = yield* Effect.forkChild(Effect.ensuring(call, log("call over")), { startImmediately: true })
    console.log("caller", caller.pollUnsafe())
    const interrupting = yield* Effect.forkChild(Fiber.interrupt(caller), { startImmediately: true })
    console.log("i", interrupting.pollUnsafe(), caller.pollUnsafe())
    yield* TestClock.adjust("800 millis")
    console.log("i", interrupting.pollUnsafe(), caller.pollUnsafe())
  })
)
