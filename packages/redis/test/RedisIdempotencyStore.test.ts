import { createServer, type Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { EventBusError, IdempotencyStore } from "@eventbus/core"
import { Cause, Duration, Effect, Exit, Layer, Redacted } from "effect"
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

  it.effect("SEC-01 options of another kind are refused, and no message shows the password", () =>
    Effect.gen(function* () {
      for (const [options, path, found] of [
        [{ password: "hunter2" }, "RedisIdempotencyStore.password", "a value of type string"],
        [{ password: Redacted.make(5) }, "RedisIdempotencyStore.password", "a value of type object"],
        [{ tls: "yes" }, "RedisIdempotencyStore.tls", "'yes'"],
        ["redis://app:hunter2@host", "RedisIdempotencyStore", "a value of type string"]
      ] as const) {
        const layer = RedisIdempotencyStore.layer(options as RedisIdempotencyStore.Options)
        const exit = yield* Effect.exit(Layer.build(layer))
        const refused = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        assert.instanceOf(refused, EventBusError.ConfigurationValidation)
        assert.deepInclude((refused as EventBusError.ConfigurationValidation).issues[0], { path, found })
        assert.notInclude(String(exit), "hunter2")
      }
      for (const client of [undefined, {}, { eval: "eval" }])
        assert.throws(() => RedisIdempotencyStore.make(client as RedisIdempotencyStore.Scripting))
    })
  )

  it.effect("whole numbers of Redis may come as texts or as BigInts; any other reply is a failure of the store", () =>
    Effect.gen(function* () {
      const begin = (reply: unknown) => RedisIdempotencyStore.make({ eval: async () => reply }).begin("k", minute)
      for (const started of [-1, "-1", -1n]) assert.strictEqual((yield* begin(started))._tag, "Started")
      for (const reply of [null, undefined, "", "OK", Number.NaN, 0.5, true, {}, [-1]]) {
        const error = yield* Effect.flip(begin(reply))
        assert.include(error.message, "the script's reply is no whole number")
      }
    })
  )
})
