import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as OpenWait from "../../src/internal/breaker/openWait.ts"

it.effect("ruling 86: the wait of an open breaker that dies goes on, so that the breaker does not stay open", () =>
  Effect.gen(function* () {
    let ends = 0
    const wait = yield* OpenWait.make<never>({
      untilMillis: () => 1_000,
      probe: undefined,
      onOver: () => {
        if (ends++ === 0) throw new Error("a bug")
      },
      onProbeFailed: () => {}
    })
    wait.start()
    yield* TestClock.adjust("1 second")
    assert.strictEqual(ends, 1)
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(ends, 2)
  }).pipe(Effect.scoped)
)
