import { PassThrough } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { readerGone } from "../src/internal/output.ts"

describe("C64 a reader that goes away ends the command", () => {
  for (const code of ["EPIPE", "ECONNRESET", "EIO"]) {
    it.effect(`a stream that fails by ${code} tells that its reader is gone`, () =>
      Effect.gen(function* () {
        const stream = new PassThrough()
        const waiting = yield* Effect.forkChild(readerGone([stream]), { startImmediately: true })
        assert.isUndefined(waiting.pollUnsafe())
        stream.destroy(Object.assign(new Error(`write ${code}`), { code }))
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(waiting)))
      })
    )
  }
})
