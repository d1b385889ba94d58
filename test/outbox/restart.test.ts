/** The database goes away and comes back while events are written and delivered. */
import { assert, describe, it } from "@effect/vitest"
import { EventRetryPolicy, ListenerRegistry, Outbox, OutboxSchema } from "@eventbus/outbox"
import { Effect, Exit, Fiber, Layer, Logger, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import * as PrivatePostgres from "./privatePostgres.ts"
import { perAggregate } from "./processes.ts"

const shapes = {
  singleNode: Outbox.singleNode({ interval: "200 millis", retryPolicy: EventRetryPolicy.fixed("50 millis") }),
  multiNode: Outbox.multiNode({
    interval: "200 millis",
    retryPolicy: EventRetryPolicy.fixed("50 millis"),
    claimLocking: { lockTimeout: "3 seconds" }
  }),
  orderedNodes: Outbox.orderedNodes({ interval: "200 millis", leases: { lease: "3 seconds" } })
} as const

/** Committed as far as the caller knows; where the answer got lost, the table knows. */
const write = Effect.fnUntraced(function* (eventId: string, aggregateId: string) {
  const sql = yield* SqlClient.SqlClient
  const event = Outbox.write({ eventType: "E", eventId, aggregateType: "a", aggregateId, payload: 1 })
  // A ROLLBACK on a connection that is gone dies.
  const exit = yield* Effect.exit(sql.withTransaction(event))
  return Exit.isSuccess(exit) ? [eventId] : []
})

/** Lets a fresh database stop and start under a running outbox; returns what was written, stored and delivered. */
const throughRestarts = (
  shape: (typeof shapes)[keyof typeof shapes],
  restart: (db: PrivatePostgres.PrivatePostgres) => Effect.Effect<void>
) =>
  Effect.gen(function* () {
    const server = yield* PrivatePostgres.make
    const seen: Array<string> = []
    const outbox = shape.pipe(
      Layer.provide(
        ListenerRegistry.layerAll((e) =>
          Effect.delay(
            Effect.sync(() => seen.push(e.eventId)),
            "3 millis"
          )
        )
      ),
      Layer.provide(Layer.effectDiscard(OutboxSchema.migrate())),
      Layer.provideMerge(PrivatePostgres.client(server)),
      Layer.provideMerge(Logger.layer([]))
    )
    return yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writing = yield* Effect.forEach(Array(1000).keys(), (n) =>
        Effect.delay(write(`${n % 7}/${n}`, `${n % 7}`), "4 millis")
      ).pipe(Effect.forkChild)
      for (let times = 0; times < 2; times++) {
        yield* Effect.sleep("900 millis")
        yield* restart(server)
      }
      const committed = (yield* Fiber.join(writing)).flat()
      const rows = sql<{ event_id: string; status: number }>`SELECT event_id, status FROM outbox_event ORDER BY seq`
      const stored = yield* rows.pipe(
        Effect.repeat({
          until: (found) => found.every((row) => row.status === 1),
          schedule: Schedule.spaced("100 millis")
        }),
        Effect.retry(Schedule.spaced("100 millis")),
        Effect.timeout("40 seconds")
      )
      return { committed, stored: stored.map((row) => row.event_id), seen }
    }).pipe(Effect.provide(outbox))
  }).pipe(Effect.scoped)

const required = process.env.CI === "true"

describe.skipIf(!PrivatePostgres.isAvailable && !required)("PostgreSQL restarted in mid-flight", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it.live(
      `OUT-K-03 OUT-D-18 ${name}: after crashes of the database no committed event is lost`,
      () =>
        Effect.gen(function* () {
          const { committed, stored, seen } = yield* throughRestarts(shape, ({ start, stop }) =>
            stop("immediate").pipe(Effect.andThen(Effect.sleep("500 millis")), Effect.andThen(start))
          )
          assert.isAbove(committed.length, 300)
          assert.includeMembers(stored, committed)
          const once = [...new Set(seen)]
          assert.sameMembers(once, stored)
          if (name === "orderedNodes") assert.deepStrictEqual(perAggregate(once), perAggregate(stored))
        }),
      90_000
    )
  }

  it.live(
    "OUT-K-03 orderedNodes: an orderly restart that takes longer than the lease",
    () =>
      Effect.gen(function* () {
        const { committed, stored, seen } = yield* throughRestarts(shapes.orderedNodes, ({ start, stop }) =>
          stop("fast").pipe(Effect.andThen(Effect.sleep("4 seconds")), Effect.andThen(start))
        )
        const once = [...new Set(seen)]
        assert.includeMembers(stored, committed)
        assert.sameMembers(once, stored)
        assert.deepStrictEqual(perAggregate(once), perAggregate(stored))
      }),
    90_000
  )
})
