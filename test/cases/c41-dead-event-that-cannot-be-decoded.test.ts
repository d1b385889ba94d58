/** A dead event whose headers cannot be decoded is shown, counted and archived like every other one. */
import { assert, it } from "@effect/vitest"
import { DeadEventManager, EventEnvelope, OutboxStore, PurgeScheduler } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "../outbox/databases.ts"

const layers = DeadEventManager.layer().pipe(Layer.provideMerge(Layer.orDie(OutboxStore.layer())))

/** Three dead events; the headers of the second are broken. */
const threeDead = Effect.gen(function* () {
  const store = yield* OutboxStore.OutboxStore
  const sql = yield* SqlClient.SqlClient
  const events = yield* Effect.forEach(["e1", "e2", "e3"], (eventId) =>
    EventEnvelope.make({
      eventType: "OrderPlaced",
      eventId,
      aggregateType: "order",
      aggregateId: "o-1",
      headers: { trace: eventId },
      payloadJson: `"${eventId}"`
    })
  )
  yield* store.insertNew(events)
  for (const { eventId } of events) yield* store.markDead(eventId, "Error: no")
  yield* sql.unsafe("UPDATE outbox_event SET headers = '{\"trace\": broken' WHERE event_id = 'e2'").unprepared
})

onDatabases("C41 dead event whose headers cannot be decoded", (db) => {
  it.effect("query shows it with what is known, and count equals query; it can be replayed", () =>
    Effect.gen(function* () {
      yield* threeDead
      const manager = yield* DeadEventManager.DeadEventManager
      const found = yield* manager.query({ eventType: "OrderPlaced" })
      assert.deepStrictEqual(
        found.map(({ eventId }) => eventId),
        ["e1", "e2", "e3"]
      )
      assert.strictEqual(yield* manager.count({ eventType: "OrderPlaced" }), found.length)
      const broken = found[1]!
      assert.deepStrictEqual(broken.unreadable, {
        reason: "Event envelope: 'headers' is not JSON.",
        rawHeaders: '{"trace": broken'
      })
      assert.deepInclude(broken.envelope, { eventType: "OrderPlaced", aggregateType: "order", aggregateId: "o-1" })
      assert.strictEqual(EventEnvelope.payloadJson(broken.envelope), '"e2"')
      assert.strictEqual(broken.lastError, "Error: no")
      assert.isUndefined(found[0]!.unreadable)
      assert.strictEqual(found[0]!.envelope.headers.get("trace"), "e1")
      assert.strictEqual(yield* manager.replayAll(), 3)
      assert.strictEqual(yield* manager.count(), 0)
    }).pipe(Effect.provide(Layer.provideMerge(layers, db.migrated)))
  )

  it.live("the archiver gets it before its row goes", () =>
    Effect.gen(function* () {
      yield* threeDead
      yield* Effect.sleep("10 millis")
      const store = yield* OutboxStore.OutboxStore
      const archived: Array<readonly [string, string | null | undefined, string]> = []
      const purger = PurgeScheduler.archiving(store, (events) =>
        Effect.sync(() => {
          for (const { eventId, unreadable, envelope } of events) {
            archived.push([eventId, unreadable?.rawHeaders, EventEnvelope.payloadJson(envelope)])
          }
        })
      )
      assert.strictEqual(yield* purger("1 millis", 10), 3)
      assert.deepStrictEqual(archived.toSorted(), [
        ["e1", undefined, '"e1"'],
        ["e2", '{"trace": broken', '"e2"'],
        ["e3", undefined, '"e3"']
      ])
      assert.strictEqual((yield* store.lag).dead, 0)
    }).pipe(Effect.provide(Layer.provideMerge(layers, db.migrated)))
  )
})
