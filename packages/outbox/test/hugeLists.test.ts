/** Lists of ids of any length: no database's limit of placeholders in a statement is met. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as NodeSqlite from "../src/drivers/NodeSqlite.ts"
import * as EventEnvelope from "../src/EventEnvelope.ts"
import { makeClaims } from "../src/internal/store/claims.ts"
import type { StoreContext } from "../src/internal/store/context.ts"
import * as OutboxSchema from "../src/OutboxSchema.ts"
import * as OutboxStore from "../src/OutboxStore.ts"
import * as PurgeScheduler from "../src/PurgeScheduler.ts"

const database = Layer.orDie(OutboxStore.layer()).pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate()))),
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

/** More than SQLite allows as placeholders of one statement. */
const count = 33_000
const ids = Array.from({ length: count }, (_, n) => `e${n}`)
const claim = { owner: "a", lockTimeout: "1 minute", limit: 100_000 } as const

/** Inserts an event per id: one by the store, and the others as copies of it. */
const insertAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const store = yield* OutboxStore.OutboxStore
  yield* store.insertNew([yield* EventEnvelope.make({ eventType: "t", eventId: "e0", payload: 1 })])
  const columns =
    "event_type, aggregate_type, payload, content_type, bucket, occurred_at, status, attempts, available_at, created_at"
  yield* sql.unsafe(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
     INSERT INTO outbox_event (event_id, ${columns}) SELECT 'e' || i, ${columns} FROM n, outbox_event WHERE event_id = 'e0'`
  )
  return store
})

describe("a store", () => {
  it.live("claims, renews, postpones, releases and marks any number of events", () =>
    Effect.gen(function* () {
      const store = yield* insertAll
      assert.strictEqual((yield* store.claimPending(claim)).length, count)
      assert.sameMembers([...(yield* store.renewClaims("a", ids))], ids)
      assert.strictEqual(yield* store.postpone(ids, 0, "waits", { _tag: "Claim", owner: "a" }), count)
      assert.strictEqual((yield* store.claimPending(claim)).length, count)
      assert.strictEqual(yield* store.releaseClaims("b", ids), 0)
      assert.strictEqual(yield* store.releaseClaims("a", ids), count)
      assert.strictEqual(yield* store.markDone(ids), count)
      assert.strictEqual(yield* store.deleteTerminal(ids), count)
    }).pipe(Effect.provide(database))
  )

  it.live("OUT-G-01: a purge with an archive deletes a batch of any allowed size", () =>
    Effect.gen(function* () {
      const store = yield* insertAll
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe("UPDATE outbox_event SET status = 1, done_at = 1000")
      let archived = 0
      const archive = PurgeScheduler.archiving(store, (events) =>
        Effect.sync(() => {
          archived += events.length
        })
      )
      const scheduler = yield* PurgeScheduler.make({ purger: archive, batchSize: 100_000, retention: "1 hour" })
      assert.strictEqual(yield* scheduler.runOnce, count)
      assert.strictEqual(archived, count)
    }).pipe(Effect.scoped, Effect.provide(database))
  )

  it.live("on MySQL, each statement of a large claim has fewer placeholders than 65,536", () =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      const { dialect, names } = yield* OutboxStore.OutboxStore
      const claims = makeClaims({
        sql: { withTransaction: <A>(self: A) => self },
        dialect: { ...dialect, name: "mysql" },
        names,
        events: () => Effect.succeed([...ids, ...ids].map((eventId) => ({ eventId }))),
        change: (_: string, __: string, values: ReadonlyArray<unknown>) =>
          Effect.sync(() => {
            sizes.push(values.length)
            return 0
          })
      } as unknown as StoreContext)
      assert.strictEqual((yield* claims.claimPending(claim)).length, 2 * count)
      assert.isAtMost(Math.max(...sizes), 65_535)
      assert.isAtLeast(
        sizes.reduce((sum, size) => sum + size, 0),
        2 * count
      )
    }).pipe(Effect.provide(database))
  )
})
