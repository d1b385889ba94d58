/**
 * The idempotency stores that the contract runs on. Redis is the local one, unless `REDIS_TEST` names another. Where logging in does not work, its tests are
 * skipped, as those of a database are. Keys in Redis expire by themselves.
 */
import { IdempotencyStore } from "@eventbus/core"
import { SqlIdempotencyStore } from "@eventbus/outbox"
import { RedisIdempotencyStore } from "@eventbus/redis"
import { Context, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { onDatabases } from "../outbox/databases.ts"
import { loginFrom, problemOf, type Service } from "../services/login.ts"
import { whenUsable } from "../services/suites.ts"

export interface StoreUnderTest {
  readonly layer: Layer.Layer<IdempotencyStore.IdempotencyStore>
  /** The clock that decides: tests move virtual time, and wait for the real time of a server. */
  readonly time: "virtual" | "real"
  /** Waits for this much of the store's time. */
  readonly pass: (duration: Duration.Input) => Effect.Effect<void>
  /** Lets other fibers run. */
  readonly yielding: Effect.Effect<void>
}

const virtual = { time: "virtual", pass: TestClock.adjust, yielding: Effect.yieldNow } as const
const real = { time: "real", pass: Effect.sleep, yielding: Effect.sleep("1 milli") } as const

export const redisLogin = loginFrom("REDIS_TEST", { host: "127.0.0.1", port: 6379, username: "", database: "0" })

const redisService: Service = {
  name: "Redis",
  variable: "REDIS_TEST",
  example: "redis://user:password@host:6379/0",
  login: redisLogin
}

/** Keys of each call have a prefix of their own. */
export const redisOptions = (): RedisIdempotencyStore.Options => {
  const { host, port, username, password, database } = redisLogin
  return {
    host,
    port,
    database: Number(database),
    ...(username !== "" && { username }),
    ...(password !== undefined && { password }),
    prefix: `test:${crypto.randomUUID()}:`
  }
}

const redisProblem = await problemOf(
  redisService,
  Effect.scoped(
    Effect.flatMap(
      Layer.build(RedisIdempotencyStore.layer({ ...redisOptions(), connectTimeout: "2 seconds" })),
      (context) => Context.get(context, IdempotencyStore.IdempotencyStore).begin("login", { lease: Duration.millis(1) })
    )
  )
)

/** Runs the suite in Redis. */
export const onRedis = (title: string, suite: () => void): void => whenUsable(`${title} in Redis`, redisProblem, suite)

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
