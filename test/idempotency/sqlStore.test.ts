import { assert, it } from "@effect/vitest"
import { IdempotencyStore } from "@eventbus/core"
import { SqlIdempotencyStore } from "@eventbus/outbox"
import { Duration, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { onDatabases } from "../outbox/databases.ts"

const minute = { lease: Duration.minutes(1) }
const table = "claims"

const rows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [count] = yield* sql.unsafe<{ readonly n: number | string }>(`SELECT COUNT(*) AS n FROM ${table}`)
  return Number(count?.n)
})

/** `count` keys that were given up, which is to have run out. */
const runOut = Effect.fnUntraced(function* (store: IdempotencyStore.IdempotencyStore["Service"], count: number) {
  for (let n = 0; n < count; n++) {
    const claim = yield* store.begin(`run out ${n}`, minute)
    if (claim._tag === "Started") yield* store.abandon(claim.token)
  }
})

onDatabases("idempotency in SQL", (db) => {
  it.effect("a purge deletes only expired keys, up to its limit; the table may be made again", () =>
    Effect.gen(function* () {
      yield* SqlIdempotencyStore.migrate({ table })
      yield* SqlIdempotencyStore.migrate({ table })
      const store = yield* SqlIdempotencyStore.make({ table })
      yield* runOut(store, 5)
      const done = yield* store.begin("done", minute)
      assert(done._tag === "Started")
      yield* store.complete(done.token, { retention: Duration.minutes(1) })
      yield* store.begin("in progress", minute)
      assert.strictEqual(yield* SqlIdempotencyStore.purge({ table, limit: 2 }), 2)
      assert.strictEqual(yield* SqlIdempotencyStore.purge({ table }), 3)
      assert.strictEqual(yield* SqlIdempotencyStore.purge({ table }), 0)
      assert.strictEqual((yield* store.begin("done", minute))._tag, "Done")
      assert.strictEqual((yield* store.begin("in progress", minute))._tag, "InProgress")
    }).pipe(Effect.provide(db.empty))
  )

  it.live("claims, takeovers and purges at once: none fails, and no valid claim is purged", () =>
    Effect.gen(function* () {
      yield* SqlIdempotencyStore.migrate({ table })
      const store = yield* SqlIdempotencyStore.make({ table })
      const works = Effect.fnUntraced(function* (worker: number) {
        for (let n = 0; n < 40; n++) {
          const claim = yield* store.begin(`k${(worker + n) % 5}`, minute)
          if (claim._tag === "Started") assert.isTrue(yield* store.abandon(claim.token))
        }
      })
      const purges = Effect.repeat(SqlIdempotencyStore.purge({ table, limit: 3 }), { times: 100 })
      const all = [...Array.from({ length: 8 }, (_, worker) => works(worker)), purges]
      yield* Effect.all(all, { concurrency: "unbounded", discard: true })
    }).pipe(Effect.provide(db.empty))
  )

  it.effect("fails with a typed error when the table is missing, and with another when its name is invalid", () =>
    Effect.gen(function* () {
      const store = yield* SqlIdempotencyStore.make({ table })
      const error = yield* Effect.flip(store.begin("k", minute))
      assert.instanceOf(error, IdempotencyStore.IdempotencyStoreError)
      assert.strictEqual(error.operation, "begin")
      const named = yield* Effect.exit(SqlIdempotencyStore.make({ table: "k; DROP TABLE x" }))
      assert(Exit.isFailure(named))
    }).pipe(Effect.provide(db.empty))
  )
})

onDatabases(
  "the purge in the background",
  (db) => {
    it.effect("runs as long as the layer is open", () =>
      Effect.gen(function* () {
        yield* SqlIdempotencyStore.migrate({ table })
        const store = yield* IdempotencyStore.IdempotencyStore.pipe(
          Effect.provide(SqlIdempotencyStore.layer({ table, purgeInterval: "1 minute" })),
          Effect.andThen(SqlIdempotencyStore.make({ table }))
        )
        yield* runOut(store, 3)
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(yield* rows, 3)
        const context = yield* Layer.build(SqlIdempotencyStore.layer({ table, purgeInterval: "1 minute" }))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* rows, 0)
        yield* runOut(store, 1_500)
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* rows, 0)
        assert.isDefined(context)
      }).pipe(Effect.provide(db.empty))
    )
  },
  ["SQLite"]
)
