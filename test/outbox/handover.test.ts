/** Buckets move to a joining node while a listener is slow: its own aggregate waits, and no other. */
import { assert, describe, it } from "@effect/vitest"
import { Partitioner } from "@eventbus/core"
import { EventEnvelope, ListenerRegistry, OrderedRelay, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Clock, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { onDatabases } from "./databases.ts"

const base = Layer.orDie(OutboxStore.layer()).pipe(
  Layer.provideMerge(
    Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
      Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
    )
  )
)

const insert = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const store = yield* OutboxStore.OutboxStore
  const events = yield* Effect.forEach(ids, (eventId) =>
    EventEnvelope.make({ eventType: "E", eventId, aggregateType: "a", aggregateId: eventId.split("/")[0]!, payload: 1 })
  )
  yield* store.insertNew(events)
})

interface Seen {
  readonly id: string
  readonly node: string
  readonly startMillis: number
  endMillis: number | undefined
}

const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

/** Aggregates in all 64 buckets, several in each. */
const aggregates = Array.from({ length: 300 }, (_, i) => `agg${i}`)

/** One aggregate in each of the 64 buckets: whichever buckets move, a slow event is in them. */
const slowAggregates = [
  ...new Map(
    Array.from({ length: 1000 }, (_, i): [number, string] => [
      Partitioner.partitionFor(new TextEncoder().encode(`a\u0000slow${i}`), 64),
      `slow${i}`
    ])
  ).values()
]
const slowEvents = (n: number) => slowAggregates.map((name) => `${name}/${n}`)

const listener =
  (node: string, seen: Array<Seen>, slowMillis: number): ListenerRegistry.EventListener =>
  (event) =>
    Effect.gen(function* () {
      const one: Seen = {
        id: event.eventId,
        node,
        startMillis: yield* Clock.currentTimeMillis,
        endMillis: undefined
      }
      seen.push(one)
      yield* Effect.sleep(/^slow\d+\/0$/.test(event.eventId) ? slowMillis : 1)
      one.endMillis = yield* Clock.currentTimeMillis
    })

const relay = (node: string, seen: Array<Seen>, slowMillis: number, lease: `${number} seconds` = "10 seconds") =>
  OrderedRelay.make({ leases: { owner: node, lease }, workerCount: 100, interval: "1 second" }).pipe(
    Effect.provide(ListenerRegistry.layerAll(listener(node, seen, slowMillis)))
  )

const statusOf = (id: string) =>
  SqlClient.SqlClient.use((sql) =>
    Effect.map(
      sql.unsafe<{ status: number }>(`SELECT status FROM outbox_event WHERE event_id = '${id}'`),
      ([row]) => row?.status
    )
  )

describe("buckets move to a joining node", () => {
  it.effect("ruling 87: a slow event holds up its own aggregate only, and is delivered once and in order", () => {
    const seen: Array<Seen> = []
    return Effect.gen(function* () {
      const a = yield* relay("A", seen, 600_000)
      yield* pass(2)
      yield* insert([...slowEvents(0), ...slowEvents(1), ...slowEvents(2)])
      yield* pass(2)
      const b = yield* relay("B", seen, 600_000)
      yield* pass(8)
      assert.deepStrictEqual([a.heldBuckets(), b.heldBuckets()], [32, 32])
      const c = yield* relay("C", seen, 600_000)
      yield* pass(12)
      assert.deepStrictEqual([a.heldBuckets(), b.heldBuckets(), c.heldBuckets()], [22, 21, 21])
      for (let round = 0; round < 3; round++) {
        yield* insert(aggregates.map((name) => `${name}/${round}`))
        const from = yield* Clock.currentTimeMillis
        yield* pass(3)
        const late = aggregates.filter((name) => {
          const one = seen.find(({ id }) => id === `${name}/${round}`)
          return one?.endMillis === undefined || one.endMillis - from > 2500
        })
        assert.deepStrictEqual(late, [])
      }
      const slow = (name: string) => seen.filter(({ id }) => id.startsWith(`${name}/`))
      for (const name of slowAggregates) {
        assert.deepStrictEqual(
          slow(name).map(({ id, node }) => `${id} ${node}`),
          [`${name}/0 A`]
        )
      }
      yield* pass(600)
      for (const name of slowAggregates) {
        const [first, second, third] = slow(name)
        assert.deepStrictEqual([first?.id, second?.id, third?.id], [`${name}/0`, `${name}/1`, `${name}/2`])
        assert.isTrue(second!.startMillis >= first!.endMillis!)
        for (const n of [0, 1, 2]) assert.strictEqual(yield* statusOf(`${name}/${n}`), 1)
      }
      assert.isTrue(new Set(slowAggregates.map((name) => slow(name)[1]!.node)).size === 3, "successors on all nodes")
      assert.strictEqual(new Set(seen.map(({ id }) => id)).size, seen.length, "each event once")
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(base, Logger.layer([]))))
  })

  it.effect("ruling 87: the node dies after the handover: its aggregate waits for a lease, no longer", () => {
    const seen: Array<Seen> = []
    return Effect.gen(function* () {
      const scopeA = yield* Scope.make()
      yield* Scope.provide(relay("A", seen, 600_000), scopeA)
      yield* pass(2)
      yield* insert([...slowEvents(0), ...slowEvents(1)])
      yield* pass(2)
      yield* relay("B", seen, 100)
      yield* pass(10)
      const sql = yield* SqlClient.SqlClient
      // A dies without a word: its fibers end, and its lock stays in the table.
      yield* sql.unsafe(
        "CREATE TRIGGER no_release BEFORE UPDATE ON outbox_event WHEN NEW.locked_by IS NULL AND OLD.locked_by LIKE 'A%' BEGIN SELECT RAISE(IGNORE); END"
      )
      const closing = yield* Effect.forkChild(Scope.close(scopeA, Exit.void))
      yield* pass(7)
      yield* Fiber.join(closing)
      yield* sql.unsafe("DROP TRIGGER no_release")
      yield* pass(15)
      for (const name of slowAggregates) {
        const ids = seen.filter(({ id }) => id.startsWith(`${name}/`)).map(({ id }) => id)
        assert.deepStrictEqual(ids, [`${name}/0`, `${name}/0`, `${name}/1`])
        assert.strictEqual(yield* statusOf(`${name}/1`), 1)
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(base, Logger.layer([]))))
  })

  it.effect("ruling 89: while a node of the first version is alive, a bucket is drained before it is released", () => {
    const seen: Array<Seen> = []
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const a = yield* relay("A", seen, 20_000)
      yield* pass(2)
      yield* insert(slowEvents(0))
      yield* pass(1)
      const announce = sql.unsafe(
        "INSERT INTO outbox_event_node (owner, expires_at) VALUES ('old', outbox_now_micros() + 60000000) ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at"
      )
      yield* announce
      yield* pass(10)
      const locked = yield* sql.unsafe("SELECT event_id FROM outbox_event WHERE locked_by IS NOT NULL")
      assert.deepStrictEqual(locked, [])
      yield* announce
      yield* pass(20)
      assert.strictEqual(a.heldBuckets(), 32)
      for (const id of slowEvents(0)) assert.strictEqual(yield* statusOf(id), 1)
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(base, Logger.layer([]))))
  })
})

onDatabases(
  "buckets move in real time",
  (db) => {
    it.live(
      "ruling 87: nodes join and leave under load with slow listeners: order per aggregate, each event once",
      () => {
        const seen: Array<Seen> = []
        return Effect.gen(function* () {
          const ids = Array.from({ length: 600 }, (_, i) => `agg${i % 60}/${Math.floor(i / 60)}`)
          const slow =
            (node: string): ListenerRegistry.EventListener =>
            (event) =>
              Effect.gen(function* () {
                const one: Seen = { id: event.eventId, node, startMillis: Date.now(), endMillis: undefined }
                seen.push(one)
                yield* Effect.sleep(event.aggregateId === "agg7" ? 400 : 2)
                one.endMillis = Date.now()
              })
          const start = (node: string) =>
            OrderedRelay.make({
              leases: { owner: node, lease: "6 seconds" },
              workerCount: 8,
              interval: "100 millis",
              drainTimeout: "10 seconds"
            }).pipe(Effect.provide(ListenerRegistry.layerAll(slow(node))))
          yield* start("A")
          yield* insert(ids.slice(0, 200))
          yield* Effect.sleep("300 millis")
          const scopeB = yield* Scope.make()
          yield* Scope.provide(start("B"), scopeB)
          yield* insert(ids.slice(200, 400))
          yield* Effect.sleep("3 seconds")
          yield* start("C")
          yield* insert(ids.slice(400))
          yield* Effect.sleep("2 seconds")
          yield* Scope.close(scopeB, Exit.void)
          yield* Effect.repeat(Effect.sleep("50 millis"), { until: () => seen.length >= 600 }).pipe(
            Effect.timeout("25 seconds")
          )
          yield* Effect.sleep("1 second")
          assert.strictEqual(new Set(seen.map(({ id }) => id)).size, seen.length, "each event once")
          for (let i = 0; i < 60; i++) {
            const mine = seen.filter(({ id }) => id.startsWith(`agg${i}/`))
            assert.deepStrictEqual(
              mine.map(({ id }) => id),
              Array.from({ length: 10 }, (_, n) => `agg${i}/${n}`)
            )
            for (let n = 1; n < 10; n++) assert.isTrue(mine[n]!.startMillis >= mine[n - 1]!.endMillis!)
          }
        }).pipe(
          Effect.scoped,
          Effect.provide(
            Layer.provideMerge(Layer.provideMerge(Layer.orDie(OutboxStore.layer()), db.migrated), Logger.layer([]))
          )
        )
      }
    )
  },
  ["PostgreSQL", "MariaDB"]
)
