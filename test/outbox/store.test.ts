/** The table and its state changes, on every database. Time is the database's, so tests age rows instead of waiting. */
import { assert, describe, it } from "@effect/vitest"
import { EventEnvelope, type JsonCodec, type OutboxError, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "./databases.ts"

const Store = OutboxStore.OutboxStore
const storeOn = (db: { readonly migrated: Layer.Layer<SqlClient.SqlClient> }, options?: OutboxStore.StoreOptions) =>
  Layer.orDie(OutboxStore.layer(options)).pipe(Layer.provideMerge(db.migrated))

const insert = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
  const store = yield* Store
  const events = yield* Effect.forEach(ids, (eventId) =>
    EventEnvelope.make({
      eventType: `type-${eventId}`,
      eventId,
      aggregateType: "order",
      aggregateId: "1",
      payload: eventId
    })
  )
  yield* store.insertNew(events)
})

/** Moves a time column of a row into the past. */
const age = Effect.fnUntraced(function* (id: string, column: string, millis: number) {
  const sql = yield* SqlClient.SqlClient
  const { dialect } = yield* Store
  const past = dialect.minusMillis(dialect.now, String(millis))
  yield* sql.unsafe(`UPDATE outbox_event SET ${column} = ${past} WHERE event_id = '${id}'`)
})

const row = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql.unsafe<Record<string, unknown>>(
    `SELECT status, attempts, last_error, locked_by, locked_at, done_at FROM outbox_event WHERE event_id = '${id}'`
  )
  const r = found[0]
  return r === undefined
    ? undefined
    : {
        status: r.status,
        attempts: r.attempts,
        error: r.last_error,
        owner: r.locked_by,
        locked: r.locked_at !== null,
        done: r.done_at !== null
      }
})

const ids = (events: ReadonlyArray<OutboxStore.PolledEvent>) => events.map((e) => e.eventId)
const polled = Store.use((store) => Effect.map(store.pollPending({ limit: 100 }), ids))
const claim = (owner: string, options?: Partial<OutboxStore.ClaimOptions>) =>
  Store.use((store) => Effect.map(store.claimPending({ owner, lockTimeout: "1 minute", limit: 100, ...options }), ids))

const pristine = { status: 0, attempts: 0, error: null, owner: null, locked: false, done: false }

onDatabases("OutboxStore", (db) => {
  it.effect("OUT-S-01 OUT-S-02 OUT-S-04: columns, limits and first values", () =>
    Effect.gen(function* () {
      yield* OutboxSchema.verify()
      yield* OutboxSchema.migrate()
      yield* insert("a")
      assert.deepStrictEqual(yield* row("a"), pristine)
      const store = yield* Store
      const [event] = yield* store.pollPending({ limit: 1 })
      assert.strictEqual(event!.createdAtMicros, event!.availableAtMicros)
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-T-09: a missing table and a missing column are named", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const none = yield* Effect.flip(OutboxSchema.verify())
      assert.deepInclude(none, { _tag: "SchemaMismatch", missing: ["the table itself"] })
      yield* OutboxSchema.migrate()
      yield* sql.unsafe("ALTER TABLE outbox_event RENAME COLUMN headers TO heads")
      assert.deepInclude(yield* Effect.flip(OutboxSchema.verify()), { _tag: "SchemaMismatch", missing: ["headers"] })
      const store = yield* OutboxStore.make()
      const refused = yield* Effect.flip(store.pollPending({ limit: 1 }))
      assert.strictEqual(refused._tag, "OutboxStoreError")
      assert.include(refused.message, "headers")
    }).pipe(Effect.provide(db.empty))
  )

  it.effect("OUT-S-05 OUT-S-08: markDone once", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* insert("a", "b", "c")
      assert.strictEqual(yield* store.markDone(["a", "c", "unknown"]), 2)
      assert.strictEqual(yield* store.markDone(["a", "c"]), 0)
      assert.strictEqual(yield* store.markDone([]), 0)
      assert.deepStrictEqual(yield* row("a"), { ...pristine, status: 1, done: true })
      assert.strictEqual(yield* store.markRetry("a", "1 second", "late"), 0)
      assert.strictEqual(yield* store.markDead("a", "late"), 0)
      assert.deepStrictEqual(yield* polled, ["b"])
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("finished rows can be deleted at once instead of marked", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* insert("a", "b")
      assert.strictEqual(yield* store.markDone(["a"]), 1)
      assert.strictEqual(yield* row("a"), undefined)
      assert.deepStrictEqual(yield* polled, ["b"])
    }).pipe(Effect.provide(storeOn(db, { onDone: "delete" })))
  )

  it.effect("OUT-S-06 OUT-S-16: markRetry counts, delays on the database's clock, and cuts the error", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* insert("a")
      assert.strictEqual(yield* store.markRetry("a", "1 hour", `x\0\ud800${"y".repeat(5000)}`), 1)
      const retried = yield* row("a")
      assert.deepInclude(retried!, { status: 2, attempts: 1, owner: null, locked: false, done: false })
      assert.strictEqual(String(retried!.error).length, 4000)
      assert.deepStrictEqual(yield* polled, [])
      yield* age("a", "available_at", 0)
      assert.deepStrictEqual(yield* polled, ["a"])
      assert.strictEqual(yield* store.markRetry("a", 0, "again"), 1)
      assert.deepInclude((yield* row("a"))!, { status: 2, attempts: 2, error: "again" })
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-S-07: markDead sets the terminal time and releases the claim", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* insert("a")
      yield* claim("me")
      assert.strictEqual(yield* store.markDead("a", "poison"), 1)
      assert.deepStrictEqual(yield* row("a"), { ...pristine, status: 3, error: "poison", done: true })
      assert.strictEqual(yield* store.markDone(["a"]), 0)
      assert.deepStrictEqual(yield* polled, [])
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-S-09 OUT-S-10: pending rows come in insertion order, limited, after a cursor", () =>
    Effect.gen(function* () {
      const store = yield* Store
      const many = Array.from({ length: 30 }, (_, i) => `e${29 - i}`)
      yield* insert(...many)
      const first = yield* store.pollPending({ limit: 10 })
      assert.deepStrictEqual(ids(first), many.slice(0, 10))
      const second = yield* store.pollPending({ limit: 100, after: first[9]! })
      assert.deepStrictEqual(ids(second), many.slice(10))
      yield* age("e0", "created_at", 60_000)
      assert.deepStrictEqual(ids(yield* store.pollPending({ limit: 9, skipRecent: "30 seconds" })), ["e0"])
      assert.deepStrictEqual(yield* claim("me", { skipRecent: "30 seconds" }), ["e0"])
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-S-03 OUT-S-12 OUT-S-13: claims exclude others, expire, are renewed and released", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* insert("a", "b", "c")
      assert.deepStrictEqual(yield* claim("A", { limit: 2 }), ["a", "b"])
      assert.deepInclude((yield* row("a"))!, { owner: "A", locked: true, status: 0 })
      assert.deepStrictEqual(yield* claim("B"), ["c"])
      assert.deepStrictEqual(yield* claim("B"), [])
      yield* age("a", "locked_at", 61_000)
      yield* age("b", "locked_at", 61_000)
      assert.deepStrictEqual(yield* store.renewClaims("A", ["a", "c"]), ["a"])
      assert.deepStrictEqual(yield* claim("B"), ["b"])
      assert.strictEqual(yield* store.releaseClaims("B", ["a", "b"]), 1)
      assert.deepStrictEqual(yield* claim("A"), ["b"])
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-S-08: a late result of an expired claim changes nothing", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* insert("a", "b")
      yield* claim("A")
      yield* age("a", "locked_at", 61_000)
      assert.deepStrictEqual(yield* claim("B"), ["a"])
      const fence = { _tag: "Claim", owner: "A" } as const
      assert.strictEqual(yield* store.markRetry("a", 0, "late", fence), 0)
      assert.strictEqual(yield* store.markDead("a", "late", fence), 0)
      assert.strictEqual(yield* store.markDone(["a", "b"], fence), 1)
      assert.deepInclude((yield* row("a"))!, { status: 0, attempts: 0, owner: "B" })
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-S-12: concurrent claimers never get the same row", () =>
    Effect.gen(function* () {
      const all = Array.from({ length: 400 }, (_, i) => `e${i}`)
      yield* insert(...all)
      const worker = (owner: string): Effect.Effect<ReadonlyArray<string>, unknown, OutboxStore.OutboxStore> =>
        Effect.flatMap(claim(owner, { limit: 7 }), (got) =>
          got.length === 0 ? Effect.succeed(got) : Effect.map(worker(owner), (more) => [...got, ...more])
        )
      const got = yield* Effect.forEach(["A", "B", "C", "D"], worker, { concurrency: 4 })
      assert.sameMembers(got.flat(), all)
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-E-01 OUT-E-03 C03: dead rows are listed oldest first and replayed; other rows are untouched", () =>
    Effect.gen(function* () {
      const store = yield* Store
      yield* insert("a", "b", "c", "d")
      yield* store.markRetry("b", 0, "x")
      yield* store.markDead("b", "b died")
      yield* store.markDead("a", "a died")
      yield* store.markDone(["c"])
      assert.deepStrictEqual(ids(yield* store.queryDead({}, 10)), ["a", "b"])
      assert.deepStrictEqual(ids(yield* store.queryDead({}, 1)), ["a"])
      assert.deepStrictEqual(ids(yield* store.queryDead({ eventType: "type-b", aggregateType: "order" }, 10)), ["b"])
      assert.strictEqual(yield* store.countDead({ aggregateType: "user" }), 0)
      assert.strictEqual(yield* store.countDead({}), 2)
      assert.strictEqual(yield* store.replayDead("b"), 1)
      assert.deepStrictEqual(yield* row("b"), pristine)
      for (const id of ["b", "c", "d", "unknown", "größe", "a ", "x".repeat(300)])
        assert.strictEqual(yield* store.replayDead(id), 0)
      assert.deepInclude((yield* row("c"))!, { status: 1, done: true })
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-G-01 OUT-G-02 OUT-G-03 C03: retention counts from the terminal transition", () =>
    Effect.gen(function* () {
      const store = yield* Store
      const day = 86_400_000
      yield* insert("E1", "E2", "E3", "E4", "E5", "E6", "E7")
      for (const id of ["E1", "E2", "E3", "E4", "E5", "E6", "E7"]) yield* age(id, "created_at", 30 * day)
      for (const id of ["E1", "E5", "E6"]) yield* store.markDead(id, "x")
      yield* store.markDone(["E2", "E3"])
      yield* age("E1", "done_at", 60_000)
      yield* age("E2", "done_at", 8 * day)
      yield* age("E3", "done_at", day)
      yield* age("E5", "done_at", 9 * day)
      yield* age("E6", "done_at", 9 * day)
      yield* store.replayDead("E6")
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe("UPDATE outbox_event SET status = 1 WHERE event_id = 'E7'")
      assert.strictEqual(yield* store.purgeTerminal("7 days", 2), 2)
      assert.isUndefined(yield* row("E7"))
      assert.isUndefined(yield* row("E5"))
      assert.strictEqual(yield* store.purgeTerminal("7 days", 2), 1)
      assert.strictEqual(yield* store.purgeTerminal("7 days", 2), 0)
      for (const id of ["E1", "E3", "E4", "E6"]) assert.isDefined(yield* row(id))
      assert.strictEqual(yield* store.purgeByAge("20 days", 100), 4)
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("lag counts pending rows; age counts only rows that are due", () =>
    Effect.gen(function* () {
      const store = yield* Store
      assert.deepStrictEqual(yield* store.lag, { pending: 0, dead: 0, oldestMillis: 0 })
      yield* insert("a", "b", "c", "d")
      yield* age("a", "created_at", 60_000)
      yield* age("b", "created_at", 90_000)
      yield* store.markRetry("b", "1 hour", "x")
      yield* store.markDead("c", "x")
      const lag = yield* store.lag
      assert.deepInclude(lag, { pending: 3, dead: 1 })
      assert.isTrue(lag.oldestMillis >= 60_000 && lag.oldestMillis < 85_000, String(lag.oldestMillis))
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("two purges of one table at the same time remove every row once", () =>
    Effect.gen(function* () {
      const store = yield* Store
      const all = Array.from({ length: 300 }, (_, i) => `e${i}`)
      yield* insert(...all, "pending")
      yield* store.markDone(all)
      const purgeAll: Effect.Effect<number, OutboxError.OutboxStoreError> = Effect.flatMap(
        store.purgeTerminal("-1 second", 20),
        (n) => (n === 0 ? Effect.succeed(0) : Effect.map(purgeAll, (more) => n + more))
      )
      const removed = yield* Effect.all([purgeAll, purgeAll], { concurrency: 2 })
      assert.strictEqual(removed[0] + removed[1] + (yield* purgeAll), 300)
      assert.deepStrictEqual(yield* polled, ["pending"])
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("OUT-S-14: the dialect is detected from the client, and a custom store can replace the built-in one", () =>
    Effect.gen(function* () {
      const store = yield* OutboxStore.make()
      assert.strictEqual({ pg: "PostgreSQL", mysql: "MariaDB", sqlite: "SQLite" }[store.dialect.name], db.name)
      const own = OutboxStore.OutboxStore.of({ ...store, countDead: () => Effect.succeed(42) })
      const count = Store.use((s) => s.countDead({})).pipe(Effect.provideService(Store, own))
      assert.strictEqual(yield* count, 42)
    }).pipe(Effect.provide(db.migrated))
  )

  it.effect("OUT-T-08 OUT-S-15: another table and another codec", () =>
    Effect.gen(function* () {
      yield* OutboxSchema.migrate({ table: "orders_outbox" })
      const codec: JsonCodec.JsonCodec = {
        toJson: (headers) => [...(headers ?? [])].flat().join("|"),
        parseObject: (text) => {
          const [key, value] = (text ?? "").split("|")
          return Result.succeed(new Map(key ? [[key, value ?? ""]] : []))
        }
      }
      const store = yield* OutboxStore.make({ table: "orders_outbox", codec })
      const event = yield* EventEnvelope.make({ eventType: "e", payload: 1, headers: { k: "v" } })
      yield* store.insertNew([event])
      const [got] = OutboxStore.separateUndecodable(yield* store.pollPending({ limit: 9 })).events
      assert.deepStrictEqual([...got!.envelope.headers], [["k", "v"]])
      assert.deepStrictEqual(yield* polled, [])
    }).pipe(Effect.provide(storeOn(db)))
  )

  it.effect("C30: times round-trip to the microsecond whatever the session's time zone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* Store
      yield* insert("a")
      const before = (yield* store.pollPending({ limit: 1 }))[0]!
      const read = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql.onDialectOrElse({
            pg: () => sql`SET LOCAL TIME ZONE 'Asia/Kolkata'`,
            mysql: () => sql`SET time_zone = '+05:30'`,
            orElse: () => sql`SELECT 1`
          })
          yield* insert("b")
          const [a, b] = yield* store.pollPending({ limit: 2 })
          yield* sql.onDialectOrElse({ mysql: () => sql`SET time_zone = 'SYSTEM'`, orElse: () => sql`SELECT 1` })
          return [a!.createdAtMicros, b!.createdAtMicros - a!.createdAtMicros] as const
        })
      )
      const [a, apart] = yield* read
      assert.strictEqual(a, before.createdAtMicros)
      assert.isTrue(apart >= 0 && apart < 60_000_000)
    }).pipe(Effect.provide(storeOn(db)))
  )
})

describe("names from outside", () => {
  it.effect("OUT-S-15: every component refuses a name that is not an identifier", () =>
    Effect.gen(function* () {
      const sqlite = (yield* Effect.promise(() => import("@eventbus/outbox/NodeSqlite"))).layer({
        filename: ":memory:"
      })
      for (const table of ["", "a b", "a;drop", 'a"', "1a", "a.b.c", "x".repeat(41), "ä", "a."]) {
        const store = yield* Effect.flip(
          OutboxStore.make({ table }).pipe(Effect.provide(sqlite), Effect.orDie, Effect.sandbox)
        )
        const schema = yield* Effect.flip(OutboxSchema.statements("pg", { table }))
        assert.strictEqual(schema._tag, "InvalidIdentifier", table)
        assert.include(String(store), "legal table name")
      }
      assert.isAbove((yield* OutboxSchema.statements("pg", { table: "app.outbox" })).length, 3)
    })
  )
})
