import { assert, it } from "@effect/vitest"
import { DeadEventManager, EventEnvelope, OutboxSchema, OutboxStore, PurgeScheduler } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "../outbox/databases.ts"

const day = 86_400_000

/** Moves a time column of a row into the past, on the database's clock. */
const age = Effect.fnUntraced(function* (id: string, column: "created_at" | "done_at", millis: number) {
  const sql = yield* SqlClient.SqlClient
  const { dialect } = yield* OutboxStore.OutboxStore
  const past = dialect.minusMillis(dialect.now, String(millis))
  yield* sql.unsafe(`UPDATE outbox_event SET ${column} = ${past} WHERE event_id = '${id}'`)
})

const remaining = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql<{ event_id: string }>`SELECT event_id FROM outbox_event ORDER BY event_id`, (rows) =>
    rows.map((row) => row.event_id)
  )
)

onDatabases("C03 purge counts from the moment an event became terminal", (db) => {
  const layers = DeadEventManager.layer().pipe(
    Layer.provideMerge(Layer.orDie(OutboxStore.layer())),
    Layer.provide(Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate()))),
    Layer.provideMerge(db.empty)
  )

  it.effect("OUT-G-01 OUT-G-02 OUT-G-05 ruling 40: only rows that were terminal for a full retention are deleted", () =>
    Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      const createdDaysAgo = { E1: 8, E2: 8, E3: 30, E4: 30, E5: 9, E6: 30 }
      for (const [eventId, days] of Object.entries(createdDaysAgo)) {
        yield* store.insertNew([yield* EventEnvelope.make({ eventType: "E", eventId, payload: 1 })])
        yield* age(eventId, "created_at", days * day)
      }
      for (const id of ["E1", "E5", "E6"]) yield* store.markDead(id, "given up")
      yield* store.markDone(["E2", "E3"])
      yield* age("E1", "done_at", 60_000)
      yield* age("E2", "done_at", 8 * day)
      yield* age("E3", "done_at", day)
      yield* age("E5", "done_at", 9 * day)
      yield* age("E6", "done_at", 29 * day)
      assert.isTrue(yield* DeadEventManager.DeadEventManager.use((manager) => manager.replay("E6")))

      const scheduler = yield* PurgeScheduler.make({
        retention: "7 days",
        batchSize: 2,
        purger: PurgeScheduler.terminal(store)
      })
      // E2 and E5 fill a batch: the run ends although its last batch was full.
      assert.strictEqual(yield* scheduler.runOnce, 2)
      assert.deepStrictEqual(yield* remaining, ["E1", "E3", "E4", "E6"])
      assert.strictEqual(yield* scheduler.runOnce, 0)
    }).pipe(Effect.scoped, Effect.provide(layers))
  )
})
