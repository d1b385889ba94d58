/**
 * The idempotency stores that the contract runs on. Redis is looked for at `REDIS_TEST` (`host:port`), default the local one; like a
 * database, its tests are skipped without it, and fail under CI. Keys in Redis have names of their own and go by themselves.
 */
import { IdempotencyStore } from "@eventbus/core"
import { SqlIdempotencyStore } from "@eventbus/outbox"
import { RedisIdempotencyStore } from "@eventbus/redis"
import { type Duration, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { onDatabases } from "../outbox/databases.ts"

export interface StoreUnderTest {
  readonly layer: Layer.Layer<IdempotencyStore.IdempotencyStore>
  /** Whose time decides: virtual time can be moved, that of a server only waited for. */
  readonly time: "virtual" | "real"
  /** Lets so much of the store's time go by. */
  readonly pass: (duration: Duration.Input) => Effect.Effect<void>
  /** Lets others go on. */
  readonly yielding: Effect.Effect<void>
}

const virtual = { time: "virtual", pass: TestClock.adjust, yielding: Effect.yieldNow } as const
const real = { time: "real", pass: Effect.sleep, yielding: Effect.sleep("1 milli") } as const

const [host = "127.0.0.1", port = "6379"] = (process.env["REDIS_TEST"] ?? "127.0.0.1:6379").split(":")
export const redisAddress = { host, port: Number(port) }

export const redisOptions = (): RedisIdempotencyStore.Options => ({
  ...redisAddress,
  prefix: `test:${crypto.randomUUID()}:`
})

const redisAnswers = await Effect.runPromise(
  Layer.build(RedisIdempotencyStore.layer({ ...redisOptions(), connectTimeout: "2 seconds" })).pipe(
    Effect.scoped,
    Effect.exit,
    Effect.map(Exit.isSuccess)
  )
)

const required = process.env["CI"] === "true"

/** Runs the suite where Redis is. */
export const onRedis = (title: string, suite: () => void): void => {
  if (!redisAnswers) console.warn(`${title}: Redis does not answer; its tests are ${required ? "failing" : "skipped"}`)
  describe.skipIf(!redisAnswers && !required)(`${title} in Redis`, suite)
}

/** Runs the suite once per store. */
export const onStores = (title: string, suite: (store: StoreUnderTest) => void): void => {
  describe(`${title} in memory`, () => suite({ ...virtual, layer: IdempotencyStore.layerMemory() }))
  onRedis(title, () =>
    suite({ ...real, layer: Layer.unwrap(Effect.sync(() => Layer.orDie(RedisIdempotencyStore.layer(redisOptions())))) })
  )
  onDatabases(title, (db) =>
    suite({
      ...(db.name === "SQLite" ? virtual : real),
      layer: SqlIdempotencyStore.layer().pipe(
        Layer.provide(Layer.effectDiscard(SqlIdempotencyStore.migrate())),
        Layer.provide(db.empty),
        Layer.orDie
      )
    })
  )
}
