/** Listeners that block the whole process for longer than its claims and leases last: nobody can renew them meanwhile. */
import { assert, describe, it } from "@effect/vitest"
import { ListenerRegistry, Outbox, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { insert, perAggregate } from "./processes.ts"

const ids = Array.from({ length: 60 }, (_, n) => `a${n % 5}/${n}`)

const shapes = {
  multiNode: (owner: string) =>
    Outbox.multiNode({ interval: "100 millis", claimLocking: { owner, lockTimeout: "300 millis" } }),
  orderedNodes: (owner: string) =>
    Outbox.orderedNodes({ interval: "100 millis", leases: { owner, lease: "300 millis" } })
} as const

const world = Layer.orDie(OutboxStore.layer()).pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate()))),
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))),
  Layer.provideMerge(Logger.layer([]))
)

const blockFor = (millis: number) => {
  const end = performance.now() + millis
  while (performance.now() < end);
}

describe("a listener that blocks", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it.live(
      `OUT-S-08 OUT-S-13 ${name}: every claim expires meanwhile; nothing is lost, and promised order is kept`,
      () => {
        const seen: Array<string> = []
        const blocking = ListenerRegistry.layerAll((event) =>
          Effect.sync(() => {
            seen.push(event.eventId)
            if (seen.length === 10 || seen.length === 40) blockFor(500)
          })
        )
        const node = (owner: string) => Layer.build(shape(owner).pipe(Layer.provide(blocking), Layer.fresh))
        return Effect.gen(function* () {
          yield* node("A")
          yield* node("B")
          yield* insert(ids)
          const sql = yield* SqlClient.SqlClient
          yield* sql<{ n: number }>`SELECT count(*) AS n FROM outbox_event WHERE status <> 1`.pipe(
            Effect.delay("20 millis"),
            Effect.repeat({ until: ([row]) => row?.n === 0 }),
            Effect.timeout("20 seconds")
          )
          const once = [...new Set(seen)]
          assert.sameMembers(once, ids)
          if (name === "orderedNodes") assert.deepStrictEqual(perAggregate(once), perAggregate(ids))
        }).pipe(Effect.scoped, Effect.provide(world))
      }
    )
  }
})
