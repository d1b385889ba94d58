/** kill -9 and broken connections, with real processes on a real PostgreSQL. */
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { EventRetryPolicy, ListenerRegistry, Outbox, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { pgIn, pgLogin } from "./clients.ts"
import { onDatabases } from "./databases.ts"
import { insert, namedSchema, perAggregate, startProcess } from "./processes.ts"

interface Delivered {
  readonly event_id: string
  readonly node: string
  readonly at: number
}

const delivered = SqlClient.SqlClient.use(
  (sql) => sql<Delivered>`SELECT event_id, node, extract(epoch from at)::float8 * 1000 AS at FROM delivered ORDER BY n`
)

const pendingCount = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql<{ n: number }>`SELECT count(*)::int4 AS n FROM outbox_event WHERE status <> 1`, (rows) => rows[0]!.n)
)

const untilDone = Effect.sleep("50 millis").pipe(
  Effect.andThen(pendingCount),
  Effect.repeat({ until: (n) => n === 0 }),
  Effect.timeout("30 seconds")
)

/** However busy the machine is, the node that is killed must have something under way. */
const untilDeliveredBy = (node: string) =>
  delivered.pipe(
    Effect.delay("20 millis"),
    Effect.repeat({ until: (log) => log.some((each) => each.node === node) }),
    Effect.timeout("30 seconds")
  )

const scenario = (shape: "ordered" | "multi") =>
  Effect.gen(function* () {
    const schema = yield* namedSchema
    return yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE delivered (n bigserial, event_id text, node text, at timestamptz DEFAULT clock_timestamp())`
      const ids = Array.from({ length: 800 }, (_, i) => `a${i % 20}/${i}`)
      const a = yield* startProcess("node", schema, shape, "A")
      yield* startProcess("node", schema, shape, "B")
      yield* Effect.sleep("1500 millis")
      // In portions: of one large portion, one node could claim everything before the other one looks.
      const portions = Array.from({ length: 40 }, (_, index) => ids.slice(index * 20, (index + 1) * 20))
      const inserting = yield* Effect.forkChild(
        Effect.forEach(portions, (portion) => Effect.delay(insert(portion), "25 millis"), { discard: true })
      )
      yield* untilDeliveredBy("A")
      a.kill("SIGKILL")
      const killedAt = Date.now()
      yield* Fiber.join(inserting)
      yield* untilDone
      return { ids, killedAt, log: yield* delivered }
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          Layer.orDie(OutboxStore.layer()),
          Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(Layer.provideMerge(pgIn(schema)))
        )
      )
    )
  })

onDatabases("kill -9", () => {
  it.live("OUT-O-01 OUT-K-03: ordered: the other node goes on within lease + 1 s, in order, nothing lost", () =>
    Effect.gen(function* () {
      const { ids, killedAt, log } = yield* scenario("ordered")
      const byA = new Set(log.filter((d) => d.node === "A").map((d) => d.event_id.split("/")[0]!))
      assert.isAbove(byA.size, 0)
      assert.deepStrictEqual(perAggregate([...new Set(log.map((d) => d.event_id))]), perAggregate(ids))
      // Twice at most what one process had under way or not yet marked.
      assert.isBelow(log.length, ids.length + 400)
      const takenOver = log.find((d) => d.node === "B" && byA.has(d.event_id.split("/")[0]!))
      assert.isBelow(takenOver!.at - killedAt, 3000 + 500)
    }).pipe(Effect.scoped)
  )

  it.live("OUT-S-13 OUT-K-03: claims: the other node takes over the claimed events, and nothing is lost", () =>
    Effect.gen(function* () {
      const { ids, log } = yield* scenario("multi")
      assert.isTrue(log.some((d) => d.node === "A") && log.some((d) => d.node === "B"))
      assert.sameMembers([...new Set(log.map((d) => d.event_id))], ids)
    }).pipe(Effect.scoped)
  )

  it.live("when the database breaks every connection again and again, committed events are delivered", () =>
    Effect.gen(function* () {
      const schema = yield* namedSchema
      const seen: Array<string> = []
      const client = PgClient.layer({
        ...pgLogin,
        maxConnections: 6,
        applicationName: schema,
        startupOptions: `-c search_path=${schema}`
      })
      const admin = yield* Layer.build(Layer.fresh(pgIn("public", 1)))
      const breakAll = SqlClient.SqlClient.use(
        (sql) => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ${schema}`
      ).pipe(Effect.provideContext(admin))
      const outbox = Outbox.singleNode({
        interval: "200 millis",
        retryPolicy: EventRetryPolicy.fixed("50 millis")
      }).pipe(
        Layer.provide(ListenerRegistry.layerAll((e) => Effect.sync(() => seen.push(e.eventId)))),
        Layer.provideMerge(Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate()))),
        Layer.provideMerge(client)
      )
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const write = (eventId: string) => sql.withTransaction(Outbox.write({ eventType: "E", eventId, payload: 1 }))
        yield* Effect.forkScoped(Effect.repeat(Effect.andThen(Effect.sleep("120 millis"), breakAll), { times: 20 }))
        for (let i = 0; i < 300; i++) {
          yield* Effect.exit(write(`e${i}`))
          yield* Effect.sleep("10 millis")
        }
        yield* Effect.sleep("500 millis")
        const rows = yield* Effect.retry(sql<{ event_id: string }>`SELECT event_id FROM outbox_event`, { times: 5 })
        assert.isAbove(rows.length, 100)
        yield* Effect.retry(untilDone, { times: 5 })
        assert.sameMembers(
          [...new Set(seen)],
          rows.map((r) => r.event_id)
        )
      }).pipe(Effect.scoped, Effect.provide(outbox))
    }).pipe(Effect.scoped)
  )
}, ["PostgreSQL"])
