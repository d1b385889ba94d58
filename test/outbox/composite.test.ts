/** The four shapes as layers, purge, dead events, metrics and health. */
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import {
  DeadEventManager,
  EventEnvelope,
  ListenerRegistry,
  MetricsExporter,
  Outbox,
  OutboxError,
  OutboxHealth,
  OutboxSchema,
  OutboxStore,
  PurgeScheduler
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Cause, Context, Effect, Exit, Layer, Logger, Metric, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { onDatabases } from "./databases.ts"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)
const storeOnly = Layer.orDie(OutboxStore.layer()).pipe(Layer.provideMerge(database))

const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

const inTransaction = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(effect))

const statuses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ event_type: string; status: number }>(
    "SELECT event_type, status FROM outbox_event ORDER BY seq"
  )
  return rows.map((r) => `${r.event_type} ${["NEW", "DONE", "RETRY", "DEAD"][r.status]}`)
})

const insert = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
  const store = yield* OutboxStore.OutboxStore
  yield* store.insertNew(
    yield* Effect.forEach(ids, (id) => EventEnvelope.make({ eventType: id, eventId: id, payload: 1 }))
  )
})

const write = (...types: ReadonlyArray<string>) =>
  inTransaction(Outbox.writeAll(types.map((eventType) => ({ eventType, payload: 1 }))))

/** Messages with their levels, as a logger saw them. */
const logged = (lines: Array<string>) =>
  Logger.layer([Logger.make((o) => void lines.push(`${o.logLevel} ${[o.message].flat().map(String).join(" ")}`))])

describe("Outbox", () => {
  it.effect("OUT-B-01 OUT-B-02: singleNode delivers new events by the hot path, and earlier ones by the poller", () => {
    const seen: Array<string> = []
    const layer = Outbox.singleNode({ workerCount: 2 }).pipe(
      Layer.provide(ListenerRegistry.layerAll((e) => Effect.sync(() => seen.push(e.eventType)))),
      Layer.provideMerge(database)
    )
    return Effect.gen(function* () {
      yield* write("a", "b")
      yield* pass(1)
      assert.deepStrictEqual(seen, ["a", "b"])
      yield* insert("cold")
      yield* pass(6)
      assert.deepStrictEqual(seen, ["a", "b", "cold"])
      assert.deepStrictEqual(yield* statuses, ["a DONE", "b DONE", "cold DONE"])
      yield* Effect.exit(inTransaction(Effect.andThen(Outbox.writeJson("gone", "{}"), Effect.fail("no"))))
      yield* pass(6)
      assert.strictEqual(seen.length, 3)
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "OUT-B-04: multiNode inserts rows as claimed, so the other node leaves them; a dropped row is released",
    () => {
      const seen: Array<string> = []
      return Effect.gen(function* () {
        const node = (name: string, hotQueueCapacity: number) =>
          Layer.build(
            Outbox.multiNode({
              claimLocking: { lockTimeout: "1 minute", owner: name },
              hotQueueCapacity,
              workerCount: 1
            }).pipe(
              Layer.provide(ListenerRegistry.layerAll((e) => Effect.sync(() => seen.push(`${name} ${e.eventType}`)))),
              Layer.fresh
            )
          )
        const a = yield* node("A", 1)
        yield* node("B", 1000)
        yield* Effect.provideContext(
          write("1", "2", "3"),
          Context.merge(yield* Effect.context<SqlClient.SqlClient>(), a)
        )
        yield* pass(10)
        assert.strictEqual(seen.length, 3)
        assert.strictEqual(seen[0], "A 1")
        assert.sameMembers(
          seen.map((s) => s.split(" ")[1]),
          ["1", "2", "3"]
        )
        const missing = yield* Effect.flip(Effect.scoped(Layer.build(Outbox.multiNode({} as Outbox.MultiNodeOptions))))
        assert.strictEqual(missing._tag, "InvalidState")
      }).pipe(
        Effect.scoped,
        Effect.provide(
          Layer.provideMerge(
            ListenerRegistry.layerAll(() => Effect.void),
            database
          )
        )
      )
    }
  )

  it.effect("OUT-B-03 OUT-O-02: ordered takes no workers or attempts, and delivers in order with one attempt", () => {
    const seen: Array<string> = []
    const registry = ListenerRegistry.layerAll((e) => {
      seen.push(e.eventType)
      return e.eventType === "1" ? Effect.fail("no") : Effect.void
    })
    const refusedLayer = Outbox.ordered({ workerCount: 4, maxAttempts: 3 } as Outbox.CommonOptions)
    return Effect.gen(function* () {
      const refused = yield* Effect.flip(Effect.scoped(Layer.build(Layer.provide(refusedLayer, registry))))
      assert.deepInclude(refused, { _tag: "InvalidOutboxConfig" })
      yield* Effect.gen(function* () {
        yield* write("0", "1", "2", "3")
        yield* pass(1)
        assert.deepStrictEqual(seen, ["0", "1", "2", "3"])
        assert.deepStrictEqual(yield* statuses, ["0 DONE", "1 DEAD", "2 DONE", "3 DONE"])
        const dead = yield* DeadEventManager.DeadEventManager
        assert.strictEqual(yield* dead.replayAll(), 1)
        yield* pass(1)
        assert.deepStrictEqual(seen, ["0", "1", "2", "3", "1"])
      }).pipe(Effect.provide(Outbox.ordered().pipe(Layer.provide(registry))))
    }).pipe(Effect.provide(database))
  })

  it.effect(
    "OUT-O-04: the documented limits of ordered: the interval bounds the latency, one worker the throughput",
    () => {
      const seen: Array<string> = []
      const slow = ListenerRegistry.layerAll((event) =>
        Effect.andThen(
          Effect.sync(() => seen.push(event.eventId)),
          Effect.sleep("1 second")
        )
      )
      return Effect.gen(function* () {
        yield* pass(1)
        // As another process does it: nothing here hears of the commit.
        yield* insert("a", "b", "c")
        yield* pass(3)
        assert.deepStrictEqual(seen, [])
        yield* pass(1.5)
        assert.deepStrictEqual(seen, ["a"])
        yield* pass(1)
        assert.deepStrictEqual(seen, ["a", "b"])
        yield* pass(2)
        assert.deepStrictEqual(seen, ["a", "b", "c"])
      }).pipe(
        Effect.provide(
          Outbox.ordered({ interval: "5 seconds" }).pipe(Layer.provide(slow), Layer.provideMerge(storeOnly))
        )
      )
    }
  )

  it.effect("OUT-B-01 OUT-B-05 OUT-P-08: writerOnly writes and purges by age if asked", () =>
    Effect.gen(function* () {
      yield* Effect.gen(function* () {
        yield* write("a")
        yield* pass(30)
        assert.deepStrictEqual(yield* statuses, ["a NEW"])
      }).pipe(Effect.provide(Outbox.writerOnly()))
      yield* pass(40).pipe(
        Effect.provide(Outbox.writerOnly({ purge: { by: "age", retention: "1 minute", interval: "10 seconds" } }))
      )
      assert.deepStrictEqual(yield* statuses, [])
    }).pipe(Effect.provide(database))
  )

  it.effect("OUT-B-06 OUT-B-07: a part that cannot be built fails the layer; missing settings are named", () =>
    Effect.gen(function* () {
      const registry = ListenerRegistry.layerAll(() => Effect.void)
      const noTable = yield* Effect.flip(
        Effect.scoped(Layer.build(Outbox.singleNode({ table: "nowhere" }).pipe(Layer.provide(registry))))
      )
      assert.strictEqual(noTable._tag, "SchemaMismatch")
      const badPoller = yield* Effect.flip(
        Effect.scoped(Layer.build(Outbox.singleNode({ batchSize: 0 }).pipe(Layer.provide(registry))))
      )
      assert.deepInclude(badPoller, { _tag: "InvalidOutboxConfig", component: "OutboxPoller" })
      const incomplete = Layer.build(Outbox.singleNode()) as Effect.Effect<
        unknown,
        unknown,
        SqlClient.SqlClient | Scope.Scope
      >
      const exit = yield* Effect.exit(Effect.scoped(incomplete))
      assert.isTrue(Exit.isFailure(exit) && Cause.pretty(exit.cause).includes("ListenerRegistry"))
    }).pipe(Effect.provide(database))
  )

  it.effect("OUT-B-08 OUT-D-17: closing drains the queues", () => {
    const seen: Array<string> = []
    return Effect.gen(function* () {
      const layer = Outbox.singleNode({ workerCount: 1, purge: {} }).pipe(
        Layer.provide(
          ListenerRegistry.layerAll((e) =>
            Effect.andThen(
              Effect.yieldNow,
              Effect.sync(() => seen.push(e.eventType))
            )
          )
        )
      )
      yield* Effect.provide(write("a", "b", "c", "d"), layer)
      assert.deepStrictEqual(seen, ["a", "b", "c", "d"])
      assert.deepStrictEqual(yield* statuses, ["a DONE", "b DONE", "c DONE", "d DONE"])
    }).pipe(Effect.provide(database))
  })

  for (const [name, shape] of Object.entries({
    singleNode: Outbox.singleNode(),
    multiNode: Outbox.multiNode({ claimLocking: { lockTimeout: "1 minute" } }),
    ordered: Outbox.ordered(),
    orderedNodes: Outbox.orderedNodes()
  })) {
    it.effect(`OUT-S-17 OUT-T-05: ${name} holds no connection while a listener runs: the only one is free`, () => {
      const seen: Array<string> = []
      const registry = ListenerRegistry.layer([
        ListenerRegistry.on("e", (event) =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql.withTransaction(sql`SELECT 1`)
            yield* Effect.sleep("1 second")
            yield* sql`SELECT 1`
            seen.push(event.eventType)
          })
        )
      ])
      return Effect.gen(function* () {
        yield* write("e")
        yield* pass(3)
        assert.deepStrictEqual(seen, ["e"])
      }).pipe(Effect.provide(shape.pipe(Layer.provide(registry), Layer.provideMerge(database))))
    })
  }

  it.effect("OUT-T-06: the only dependency is the project's own core; users bring the drivers", () =>
    Effect.gen(function* () {
      const path = fileURLToPath(new URL("../../packages/outbox/package.json", import.meta.url))
      const manifest = JSON.parse(yield* Effect.promise(() => readFile(path, "utf8")))
      assert.deepStrictEqual(Object.keys(manifest.dependencies), ["@eventbus/core"])
    })
  )

  it.effect("OUT-B-10: two databases in one process, each with its own outbox and metrics", () => {
    const seen: Array<string> = []
    const one = (name: string) => {
      const layer = Outbox.singleNode().pipe(
        Layer.provide(ListenerRegistry.layerAll((e) => Effect.sync(() => seen.push(`${name} ${e.eventType}`)))),
        Layer.provide(MetricsExporter.layer(`${name}.outbox`)),
        Layer.provideMerge(Layer.fresh(database))
      )
      return Effect.gen(function* () {
        yield* write("e")
        yield* pass(1)
      }).pipe(Effect.provide(layer))
    }
    return Effect.gen(function* () {
      yield* one("orders")
      yield* one("users")
      assert.deepStrictEqual(seen, ["orders e", "users e"])
      const snapshot = yield* Metric.snapshot
      const value = (id: string) => snapshot.find((m) => m.id === id)?.state
      for (const prefix of ["orders.outbox", "users.outbox"]) {
        assert.deepInclude(value(`${prefix}.dispatch.success`), { count: 1 })
        assert.deepInclude(value(`${prefix}.enqueue.hot`), { count: 1 })
      }
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  })
})

describe("MetricsExporter", () => {
  it.effect("OUT-M-01 OUT-M-02 OUT-M-03: metrics have the names of outbox seed §15 under a prefix", () =>
    Effect.gen(function* () {
      const exporter = yield* MetricsExporter.make("orders.outbox")
      exporter.incrementHotEnqueued()
      exporter.incrementHotDropped()
      exporter.incrementColdEnqueued()
      exporter.incrementDispatchSuccess()
      exporter.incrementDispatchFailure()
      exporter.incrementDispatchDead()
      exporter.recordQueueDepths(3, 4)
      exporter.recordOldestLagMs(5)
      const snapshot = yield* Metric.snapshot
      const names = [
        "enqueue.hot",
        "enqueue.hot.dropped",
        "enqueue.cold",
        "dispatch.success",
        "dispatch.failure",
        "dispatch.dead"
      ]
      assert.sameMembers(
        snapshot.map((m) => m.id),
        [...names, "queue.hot.depth", "queue.cold.depth", "lag.oldest.ms"].map((n) => `orders.outbox.${n}`)
      )
      assert.deepInclude(snapshot.find((m) => m.id === "orders.outbox.queue.cold.depth")?.state, { value: 4 })
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect("OUT-M-04: log levels", () => {
    const lines: Array<string> = []
    const layer = Outbox.singleNode({ workerCount: 1, hotQueueCapacity: 1, maxAttempts: 1, purge: {} }).pipe(
      Layer.provide(ListenerRegistry.layerAll((e) => (e.eventType === "bad" ? Effect.fail("boom") : Effect.void))),
      Layer.provideMerge(database)
    )
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* write("bad", "b", "c")
      yield* insert("broken")
      yield* sql.unsafe("UPDATE outbox_event SET headers = '[' WHERE event_type = 'broken'")
      yield* pass(6)
      const has = (start: string, part: string) => lines.some((l) => l.startsWith(start) && l.includes(part))
      assert.isTrue(has("Warn", "hot queue full"), lines.join("\n"))
      assert.isTrue(has("Error", "is DEAD"))
      assert.isTrue(has("Fatal", "cannot be decoded"))
      assert.isTrue(has("Info", "purged 0 events"))
    }).pipe(Effect.provide(Layer.provideMerge(layer, logged(lines))))
  })
})

describe("PurgeScheduler", () => {
  it.effect(
    "OUT-G-04 OUT-G-05 OUT-G-06 OUT-G-07: a purge runs batches until one is not full, survives failures, and ends with close",
    () => {
      const lines: Array<string> = []
      let fail = false
      return Effect.gen(function* () {
        const store = yield* OutboxStore.OutboxStore
        const ids = Array.from({ length: 1200 }, (_, i) => `e${i}`)
        yield* insert(...ids, "pending")
        yield* store.markDone(ids)
        const batches: Array<number> = []
        const purger: PurgeScheduler.EventPurger = (retention, limit) =>
          Effect.suspend(() =>
            fail
              ? Effect.fail(new OutboxError.OutboxStoreError({ operation: "purge", retryable: true, cause: "down" }))
              : Effect.tap(store.purgeTerminal(retention, limit), (n) => Effect.sync(() => batches.push(n)))
          )
        const scheduler = yield* PurgeScheduler.make({ purger })
        yield* TestClock.adjust("7 days")
        assert.strictEqual(yield* scheduler.runOnce, 0)
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* scheduler.runOnce, 1200)
        assert.deepStrictEqual(batches, [0, 500, 500, 200])
        assert.isTrue(lines.includes("Info outbox: purged 1200 events"))
        fail = true
        yield* scheduler.start
        yield* TestClock.adjust("1 second")
        fail = false
        batches.length = 0
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(batches, [0])
        assert.isTrue(lines.some((l) => l.startsWith("Fatal outbox: purge failed")))
        yield* scheduler.close
        assert.strictEqual((yield* Effect.flip(scheduler.start))._tag, "InvalidState")
        assert.deepStrictEqual(yield* statuses, ["pending NEW"])
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(storeOnly, logged(lines))))
    }
  )

  it.effect("an archive gets every row before it is deleted; when it fails, nothing is deleted", () => {
    const archived: Array<string> = []
    let fail = true
    return Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      yield* insert("a", "b", "c")
      yield* store.markDone(["a", "c"])
      yield* TestClock.adjust("8 days")
      const purger = PurgeScheduler.archiving(store, (events) =>
        Effect.suspend(() =>
          fail
            ? Effect.fail(new OutboxError.OutboxStoreError({ operation: "archive", retryable: true, cause: "full" }))
            : Effect.sync(() => void archived.push(...events.map((e) => e.eventId)))
        )
      )
      const scheduler = yield* PurgeScheduler.make({ purger, batchSize: 1 })
      assert.strictEqual(yield* scheduler.runOnce, 0)
      fail = false
      assert.strictEqual(yield* scheduler.runOnce, 2)
      assert.deepStrictEqual(archived, ["a", "c"])
      assert.deepStrictEqual(yield* statuses, ["b NEW"])
    }).pipe(Effect.scoped, Effect.provide(storeOnly))
  })
})

describe("DeadEventManager", () => {
  it.effect(
    "OUT-E-02 OUT-E-04: query, count, replay and replayAll take filters; replayAll ends although events die again",
    () =>
      Effect.gen(function* () {
        const store = yield* OutboxStore.OutboxStore
        const ids = Array.from({ length: 25 }, (_, i) => `e${i}`)
        yield* insert(...ids)
        for (const id of ids) yield* store.markDead(id, "x")
        const dead = yield* DeadEventManager.make()
        assert.strictEqual(yield* dead.count(), 25)
        assert.strictEqual(yield* dead.count({ eventType: "e3" }), 1)
        assert.deepStrictEqual(
          (yield* dead.query({}, 2)).map((e) => e.eventId),
          ["e0", "e1"]
        )
        assert.isTrue(yield* dead.replay("e0"))
        assert.isFalse(yield* dead.replay("e0"))
        assert.strictEqual(yield* dead.replayAll({ eventType: "e1" }), 1)
        const dying = OutboxStore.OutboxStore.of({
          ...store,
          replayDead: (id) => Effect.tap(store.replayDead(id), () => store.markDead(id, "again"))
        })
        const again = yield* DeadEventManager.make().pipe(Effect.provideService(OutboxStore.OutboxStore, dying))
        assert.strictEqual(yield* again.replayAll({}, 4), 23)
        assert.strictEqual(yield* dead.count(), 23)
      }).pipe(Effect.provide(storeOnly))
  )

  it.effect("OUT-E-05: a failing database is logged, and the answers are empty", () => {
    const lines: Array<string> = []
    return Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      yield* insert("a", "b", "c")
      for (const id of ["a", "b", "c"]) yield* store.markDead(id, "x")
      const down = Effect.fail(new OutboxError.OutboxStoreError({ operation: "x", retryable: true, cause: "down" }))
      const broken = OutboxStore.OutboxStore.of({
        ...store,
        queryDead: () => down,
        countDead: () => down,
        replayDead: () => down
      })
      const dead = yield* DeadEventManager.make().pipe(Effect.provideService(OutboxStore.OutboxStore, broken))
      assert.deepStrictEqual(yield* dead.query(), [])
      assert.deepStrictEqual([yield* dead.replay("a"), yield* dead.count(), yield* dead.replayAll()], [false, 0, 0])
      const half = OutboxStore.OutboxStore.of({
        ...store,
        replayDead: (id) => (id === "c" ? down : store.replayDead(id))
      })
      const stops = yield* DeadEventManager.make().pipe(Effect.provideService(OutboxStore.OutboxStore, half))
      assert.strictEqual(yield* stops.replayAll(), 2)
      assert.isTrue(lines.every((l) => l.startsWith("Fatal")) && lines.length === 5, lines.join("\n"))
    }).pipe(Effect.provide(Layer.provideMerge(storeOnly, logged(lines))))
  })
})

onDatabases("every builder in real time", (db) => {
  it.live("a write reaches the listener, in this process and in another, long before the interval", () => {
    const seen: Array<string> = []
    const deliver = ListenerRegistry.layerAll((e) => Effect.sync(() => seen.push(e.eventType)))
    return Effect.gen(function* () {
      const waitFor = (type: string) =>
        Effect.sleep("5 millis").pipe(Effect.repeat({ until: () => seen.includes(type) }), Effect.timeout("10 seconds"))
      const claims = { claimLocking: { lockTimeout: "10 seconds" } } as const
      yield* Effect.andThen(write("single"), waitFor("single")).pipe(
        Effect.provide(Outbox.singleNode({ interval: "1 minute" }).pipe(Layer.provide(deliver))),
        Effect.timeout("15 seconds")
      )
      yield* Effect.andThen(write("multi"), waitFor("multi")).pipe(
        Effect.provide(Outbox.multiNode({ ...claims, interval: "1 minute" }).pipe(Layer.provide(deliver))),
        Effect.timeout("15 seconds")
      )
      yield* Effect.andThen(write("nodes"), waitFor("nodes")).pipe(
        Effect.provide(Outbox.orderedNodes({ interval: "200 millis" }).pipe(Layer.provide(deliver))),
        Effect.timeout("15 seconds")
      )
      const health = yield* OutboxHealth.OutboxHealth.pipe(
        Effect.flatMap((h) => h.check),
        Effect.provide(Outbox.writerOnly())
      )
      assert.deepInclude(health, { status: "up", pending: 0 })
    }).pipe(Effect.provide(db.migrated))
  })
})

onDatabases(
  "wake-up between processes",
  (db) => {
    it.live("a relay in another process learns of a commit through LISTEN and NOTIFY", () => {
      const seen: Array<string> = []
      return Effect.gen(function* () {
        const relay = Outbox.orderedNodes({ interval: "1 minute", leases: { lease: "1 minute" } }).pipe(
          Layer.provide(ListenerRegistry.layerAll((e) => Effect.sync(() => seen.push(e.eventType))))
        )
        yield* Layer.build(relay)
        yield* Effect.sleep("300 millis")
        yield* Effect.provide(write("far"), Layer.fresh(Outbox.writerOnly()))
        yield* Effect.sleep("5 millis").pipe(
          Effect.repeat({ until: () => seen.length > 0 }),
          Effect.timeout("5 seconds")
        )
        assert.deepStrictEqual(seen, ["far"])
      }).pipe(Effect.scoped, Effect.provide(db.migrated))
    })
  },
  ["PostgreSQL"]
)
