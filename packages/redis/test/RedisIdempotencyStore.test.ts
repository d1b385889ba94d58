import { createServer, type Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { IdempotencyStore } from "@eventbus/core"
import { Duration, Effect, Layer } from "effect"
import * as RedisIdempotencyStore from "../src/RedisIdempotencyStore.ts"

const minute = { lease: Duration.minutes(1) }

/** The port of a server that accepts connections and never answers. */
const silentPort = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const listening = createServer((socket) => socket.on("error", () => {}))
    listening.listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
  }),
  (listening) => Effect.sync(() => listening.close())
).pipe(
  Effect.map((listening) => {
    const address = listening.address()
    return address !== null && typeof address === "object" ? address.port : 0
  })
)

describe("the store in Redis", () => {
  it.effect("a failed call of the client is a typed, retryable error", () =>
    Effect.gen(function* () {
      const store = RedisIdempotencyStore.make({ eval: () => Promise.reject(new Error("LOADING")) })
      const token = { key: "k", id: "1" }
      const errors = [
        yield* Effect.flip(store.begin("k", minute)),
        yield* Effect.flip(store.complete(token, { retention: Duration.hours(1) })),
        yield* Effect.flip(store.abandon(token)),
        yield* Effect.flip(store.renew(token, minute))
      ]
      assert.deepStrictEqual(
        errors.map((error) => error.message),
        ["begin", "complete", "abandon", "renew"].map((call) => `Idempotency store 'redis' failed to ${call}: LOADING`)
      )
      assert(errors.every((error) => error.retryable))
    })
  )

  it.effect("durations become whole milliseconds, at least 1", () =>
    Effect.gen(function* () {
      const sent: Array<ReadonlyArray<string>> = []
      const store = RedisIdempotencyStore.make(
        {
          eval: async (_, { keys, arguments: [, millis = ""] }) => {
            sent.push([...keys, millis])
            return 1
          }
        },
        { prefix: "p:" }
      )
      for (const lease of [Duration.nanos(1n), Duration.millis(1.5), Duration.hours(24)]) {
        yield* store.renew({ key: "k", id: "1" }, { lease })
      }
      assert.deepStrictEqual(sent, [
        ["p:k", "1"],
        ["p:k", "2"],
        ["p:k", "86400000"]
      ])
    })
  )

  it.live("opening fails with a typed error when Redis does not answer in time", () =>
    Effect.gen(function* () {
      const port = yield* silentPort
      const error = yield* Effect.flip(Layer.build(RedisIdempotencyStore.layer({ port, connectTimeout: "200 millis" })))
      assert.instanceOf(error, IdempotencyStore.IdempotencyStoreError)
      assert.strictEqual(error.operation, "open")
    })
  )
})
