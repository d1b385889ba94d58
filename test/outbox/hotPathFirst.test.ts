/** A hook of the user's behind the commit holds up nothing: the poller may have delivered an event long before such a hook ends. */
import { assert, describe, it } from "@effect/vitest"
import { ListenerRegistry, Outbox, OutboxSchema } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

describe("the hot path", () => {
  it.live("OUT-W-05: an event is delivered once, though a hook behind its commit takes longer than the poller", () => {
    const delivered: Array<string> = []
    const listener = ListenerRegistry.layerAll(({ eventId }) => Effect.sync(() => void delivered.push(eventId)))
    const outbox = Outbox.singleNode({
      interval: "20 millis",
      hook: { afterCommit: () => Effect.sleep("300 millis") }
    }).pipe(Layer.provide(listener), Layer.provideMerge(database))
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = yield* sql.withTransaction(Outbox.writeJson("Placed", "{}"))
      yield* Effect.sleep("300 millis")
      assert.deepStrictEqual(delivered, [id])
    }).pipe(Effect.provide(outbox))
  })
})
