import { connect, createServer, type Server, type Socket } from "node:net"
import { assert, it } from "@effect/vitest"
import { IdempotencyStore } from "@eventbus/core"
import { RedisIdempotencyStore } from "@eventbus/redis"
import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { onRedis, redisAddress, redisOptions } from "./stores.ts"

const minute = { lease: Duration.minutes(1) }

/** A way to Redis that can be cut and mended. */
class Way {
  readonly #sockets = new Set<Socket>()
  #cut = false
  readonly #server: Server = createServer((socket) => {
    socket.on("error", () => {})
    if (this.#cut) return void socket.destroy()
    const redis = connect(redisAddress)
    redis.on("error", () => socket.destroy())
    this.#sockets.add(socket).add(redis)
    socket.pipe(redis).pipe(socket)
  })

  static readonly make = Effect.acquireRelease(
    Effect.callback<Way>((resume) => {
      const way = new Way()
      way.#server.listen(0, "127.0.0.1", () => resume(Effect.succeed(way)))
    }),
    (way) =>
      Effect.sync(() => {
        way.cut()
        way.#server.close()
      })
  )

  get port(): number {
    const address = this.#server.address()
    return address !== null && typeof address === "object" ? address.port : 0
  }

  cut(): void {
    this.#cut = true
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }

  mend(): void {
    this.#cut = false
  }
}

onRedis("idempotency", () => {
  it.live("calls fail soon while Redis is away, claim nothing later on, and succeed again once it is back", () =>
    Effect.gen(function* () {
      const way = yield* Way.make
      const context = yield* Layer.build(
        RedisIdempotencyStore.layer({ ...redisOptions(), host: "127.0.0.1", port: way.port })
      )
      const store = Context.get(context, IdempotencyStore.IdempotencyStore)
      assert.strictEqual((yield* store.begin("before", minute))._tag, "Started")
      way.cut()
      for (let n = 0; n < 5; n++) {
        const error = yield* Effect.flip(store.begin("away", minute)).pipe(Effect.timeout("1 second"))
        assert(error instanceof IdempotencyStore.IdempotencyStoreError && error.retryable)
      }
      way.mend()
      const again = Effect.retry(store.begin("before", minute), Schedule.spaced("50 millis")).pipe(
        Effect.timeout("20 seconds")
      )
      assert.strictEqual((yield* again)._tag, "InProgress")
      assert.strictEqual((yield* store.begin("away", minute))._tag, "Started")
    })
  )

  it.live("prefixes keep programs apart that share a Redis", () =>
    Effect.gen(function* () {
      const built = Effect.suspend(() => Layer.build(RedisIdempotencyStore.layer(redisOptions()))).pipe(
        Effect.map((context) => Context.get(context, IdempotencyStore.IdempotencyStore))
      )
      for (const store of [yield* built, yield* built]) {
        assert.strictEqual((yield* store.begin("k", minute))._tag, "Started")
      }
    })
  )
})
