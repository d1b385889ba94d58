/** Addresses that do not answer, for a program whose logger throws. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { makeSilentAddresses } from "../../src/internal/connection/silentAddresses.ts"

describe("silent addresses", () => {
  it.effect("ruling 86: a logger that throws does not end the request to an address that answers late", () =>
    Effect.gen(function* () {
      const silent = makeSilentAddresses()
      const request = Effect.as(Effect.sleep("3 seconds"), "the answer")
      const asking = Effect.tap(silent.watch("kafka-1:9092")(request), () => silent.noteAnswer("kafka-1:9092"))
      const fiber = yield* Effect.forkChild(asking, { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "the answer")
    }).pipe(
      Effect.provide(
        Logger.layer([
          Logger.make(() => {
            throw new Error("ENOSPC: no space left on device, write")
          })
        ])
      )
    )
  )
})
