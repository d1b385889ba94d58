import { connect, createServer, type Server, type Socket } from "node:net"
import { assert, it } from "@effect/vitest"
import { IdempotencyStore } from "@eventbus/core"
import { RedisIdempotencyStore } from "@eventbus/redis"
import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { onRedis, redisLogin, redisOptions } from "./stores.ts"

const minute = { lease: Duration.minutes(1) }

/** A way to Redis that can be cut and mended. */
class Way {
  port = 0
  readonly #sockets = new Set<Socket>()
  readonly #server: Server = createServer((socket) => {
    const redis = connect({ host: redisLogin.host, port: redisLogin.port })
    for (const end of [socket, redis]) {
      end.on("error", () => {})
      this.#sockets.add(end)
    }
    socket.pipe(redis).pipe(socket)
  })

  static readonly make = Effect.acquireRelease(
    Effect.suspend(() => {
      const way = new Way()
      return Effect.as(way.open, way)
    }),
    (way) => Effect.sync(() => way.cut())
  )

  /** At first on any free port, then on the same again. */
  readonly open = Effect.callback<void>((resume) => {
    this.#server.listen(this.port, "127.0.0.1", () => {
      const address = this.#server.address()
      if (address !== null && typeof address === "object") this.port = address.port
      resume(Effect.void)
    })
  })

  cut(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }
}

onRedis("idempotency", () => {
  it.live(
    "calls fail soon while Redis is unreachable, claim nothing afterwards, and succeed again once it is back",
    () =>
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
        yield* way.open
        const again = Effect.retry(store.begin("before", minute), Schedule.spaced("50 millis")).pipe(
          Effect.timeout("20 seconds")
        )
        assert.strictEqual((yield* again)._tag, "InProgress")
        assert.strictEqual((yield* store.begin("away", minute))._tag, "Started")
      })
  )

  it.live("prefixes separate programs that share a Redis", () =>
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
