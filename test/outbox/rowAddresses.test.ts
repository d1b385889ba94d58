/** Marks find rows where they were read; a place that is out of date never decides what is marked. */
import { assert, it } from "@effect/vitest"
import { EventEnvelope, OutboxStore } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "./databases.ts"

const Store = OutboxStore.OutboxStore

/** Ids that would mean something else if they were not quoted. */
const hostile = ['"', "\\", '\\"', "{a,b}", "NULL", "a b", ",", "'); --", "}"]

const insert = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const store = yield* Store
  yield* store.insertNew(
    yield* Effect.forEach(ids, (eventId) => EventEnvelope.make({ eventType: "t", eventId, payload: eventId }))
  )
})
const pendingIds = Store.use((store) =>
  Effect.map(store.pollPending({ limit: 100 }), (rows) => rows.map((row) => row.eventId))
)
const idsAndAddresses = (rows: ReadonlyArray<OutboxStore.PolledEvent>) =>
  [rows.map((row) => row.eventId), rows.map((row) => row.rowAddress)] as const

for (const onDone of ["keep", "delete"] as const) {
  onDatabases(`row addresses, onDone ${onDone}`, (db) => {
    const storeLayer = Layer.orDie(OutboxStore.layer({ onDone })).pipe(Layer.provideMerge(db.migrated))
    const openFence: OutboxStore.Fence = { _tag: "Open" }

    it.effect(
      "OUT-S-05 OUT-S-16: rows are marked at the address where they were read, whatever their ids contain",
      () =>
        Effect.gen(function* () {
          const store = yield* Store
          yield* insert([...hostile, "other"])
          const rows = (yield* store.pollPending({ limit: 100 })).filter((row) => row.eventId !== "other")
          const [ids, rowAddresses] = idsAndAddresses(rows)
          assert.sameMembers([...ids], hostile)
          assert.strictEqual(yield* store.markDone(ids, openFence, rowAddresses), hostile.length)
          assert.strictEqual(yield* store.markDone(ids, openFence, rowAddresses), 0, "a second time")
          assert.deepStrictEqual(yield* pendingIds, ["other"])
        }).pipe(Effect.provide(storeLayer))
    )

    it.effect("OUT-S-08: a moved row is found by its id, and the row at its old address is untouched", () =>
      Effect.gen(function* () {
        const store = yield* Store
        const sql = yield* SqlClient.SqlClient
        yield* insert(["a", "b", "c"])
        const rows = yield* store.pollPending({ limit: 10 })
        yield* sql`UPDATE outbox_event SET attempts = attempts + 1 WHERE event_id = 'a'`
        const [, [a, b, c]] = idsAndAddresses(rows)
        // The address of `b` holds another event than the one that is marked.
        assert.strictEqual(yield* store.markDone(["a", "c"], openFence, [a, b]), 2)
        assert.deepStrictEqual(yield* pendingIds, ["b"])
        assert.strictEqual(yield* store.markDone(["b"], openFence, [c]), 1)
        assert.deepStrictEqual(yield* pendingIds, [])
      }).pipe(Effect.provide(storeLayer))
    )

    it.effect(
      "OUT-S-08 OUT-S-13: the owner can mark rows of a renewed claim; nobody can mark rows of an expired one",
      () =>
        Effect.gen(function* () {
          const store = yield* Store
          const sql = yield* SqlClient.SqlClient
          const claim = (owner: string) => store.claimPending({ owner, lockTimeout: "1 minute", limit: 10 })
          yield* insert(["a", "b", "c"])
          const [ids, rowAddresses] = idsAndAddresses(yield* claim("one"))
          yield* store.renewClaims("one", ["a"])
          yield* sql`UPDATE outbox_event SET locked_by = 'two' WHERE event_id = 'b'`
          assert.strictEqual(yield* store.markDone(ids, { _tag: "Claim", owner: "one" }, rowAddresses), 2)
          assert.deepStrictEqual(yield* pendingIds, ["b"])
        }).pipe(Effect.provide(storeLayer))
    )

    it.effect("OUT-S-03: all rows are marked even when only some addresses are known", () =>
      Effect.gen(function* () {
        const store = yield* Store
        yield* insert(["a", "b"])
        const [ids, [a]] = idsAndAddresses(yield* store.pollPending({ limit: 10 }))
        assert.strictEqual(yield* store.markDone(ids, openFence, [a, undefined]), 2)
        assert.strictEqual(yield* store.markDone([], openFence, []), 0)
      }).pipe(Effect.provide(storeLayer))
    )
  })
}
