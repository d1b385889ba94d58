/** Many large events in one write are split into statements that the database accepts. An event that is too large is refused before. */
import { assert, it } from "@effect/vitest"
import { EventEnvelope, OutboxError, OutboxStore, OutboxWriter, TxContext } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "../outbox/databases.ts"

const mebibyte = 1_048_576

const layers = OutboxWriter.layer().pipe(
  Layer.provideMerge(Layer.mergeAll(Layer.orDie(OutboxStore.layer()), TxContext.layer))
)

const large = (n: number): EventEnvelope.Input => ({
  eventType: "e",
  eventId: `e${String(n).padStart(2, "0")}`,
  payloadBytes: new Uint8Array(mebibyte).fill(n)
})

const rows = SqlClient.SqlClient.use((sql) =>
  Effect.map(
    sql.unsafe<{ event_id: string; bytes: number }>(
      "SELECT event_id, LENGTH(payload) AS bytes FROM outbox_event ORDER BY seq"
    ),
    (found) => found.map(({ event_id, bytes }) => [event_id, Number(bytes)])
  )
)

onDatabases("C42 many large events in one writeAll", (db) => {
  it.live("20 events of 1 MiB in one transaction are all stored, in order", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      const events = Array.from({ length: 20 }, (_, n) => large(n))
      yield* sql.withTransaction(writer.writeAll(events))
      assert.deepStrictEqual(
        yield* rows,
        events.map(({ eventId }) => [eventId, mebibyte])
      )
    }).pipe(Effect.provide(Layer.provideMerge(layers, db.migrated)))
  )

  it.effect("a statement has at most 200 rows and 2 MiB, and small events still share one", () =>
    Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      const sizes = Effect.fnUntraced(function* (inputs: ReadonlyArray<EventEnvelope.Input>) {
        const events = yield* Effect.forEach(inputs, EventEnvelope.make)
        return store.insertStatements(events).map(({ params }) => ({
          rows: params.filter((param) => param === "e").length,
          bytes: params.reduce(
            (sum: number, p) => sum + (p instanceof Uint8Array || typeof p === "string" ? p.length : 0),
            0
          )
        }))
      })
      const small = yield* sizes(Array.from({ length: 450 }, () => ({ eventType: "e", payload: 1 })))
      assert.deepStrictEqual(
        small.map((one) => one.rows),
        [200, 200, 50]
      )
      const mixed = yield* sizes([
        ...Array.from({ length: 5 }, (_, n) => large(n)),
        ...Array.from({ length: 100 }, () => ({ eventType: "e", payload: 1, headers: { big: "h".repeat(100_000) } }))
      ])
      for (const { bytes } of mixed) assert.isAtMost(bytes, 2 * mebibyte)
      assert.strictEqual(
        mixed.reduce((sum, one) => sum + one.rows, 0),
        105
      )
    }).pipe(Effect.provide(Layer.provideMerge(layers, db.migrated)))
  )

  it.live("an event that is too large is a typed error, and nothing of the write is sent", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      const write = (event: EventEnvelope.Input) =>
        sql.withTransaction(Effect.flip(writer.writeAll([large(1), { eventType: "small", payload: 1 }, event])))
      const payload = yield* write({ eventType: "e", payloadBytes: new Uint8Array(mebibyte + 1) })
      assert.instanceOf(payload, OutboxError.PayloadTooLarge)
      const headers = yield* write({ eventType: "e", payload: 1, headers: { big: "🎉".repeat(300_000) } })
      assert.instanceOf(headers, OutboxError.InvalidEnvelope)
      assert.include(headers.message, "at most")
      assert.deepStrictEqual(yield* rows, [])
      const largest = { ...large(2), headers: { big: "h".repeat(1_000_000) } }
      yield* sql.withTransaction(writer.writeAll([largest, large(3)]))
      assert.strictEqual((yield* rows).length, 2)
    }).pipe(Effect.provide(Layer.provideMerge(layers, db.migrated)))
  )
})
