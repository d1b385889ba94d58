/** Order per aggregate: on SQLite and the virtual clock, and with real concurrent transactions on PostgreSQL and MariaDB. */
import { assert, describe, it } from "@effect/vitest"
import {
  EventEnvelope,
  EventRetryPolicy,
  ListenerRegistry,
  OrderedRelay,
  OutboxSchema,
  OutboxStore
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { onDatabases } from "./databases.ts"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)
const base = Layer.orDie(OutboxStore.layer()).pipe(Layer.provideMerge(database))

/** Inserts `aggregate/n` events in the given order. */
const insert = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const store = yield* OutboxStore.OutboxStore
  const events = yield* Effect.forEach(ids, (eventId) =>
    EventEnvelope.make({ eventType: "E", eventId, aggregateType: "a", aggregateId: eventId.split("/")[0]!, payload: 1 })
  )
  yield* store.insertNew(events)
})

const statuses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ event_id: string; status: number; attempts: number }>(
    "SELECT event_id, status, attempts FROM outbox_event ORDER BY seq"
  )
  return Object.fromEntries(
    rows.map((r) => [r.event_id, `${["NEW", "DONE", "RETRY", "DEAD"][r.status]} ${r.attempts}`])
  )
})

const relay = (listener: ListenerRegistry.EventListener, options?: OrderedRelay.OrderedRelayOptions) =>
  OrderedRelay.make(options).pipe(Effect.provide(ListenerRegistry.layerAll(listener)))

/** Lets time pass in small steps, so that due work runs before the next step. */
const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

const noting =
  (seen: Array<string>): ListenerRegistry.EventListener =>
  (e) =>
    Effect.sync(() => seen.push(e.eventId))

describe("OrderedRelay", () => {
  it.effect(
    "OUT-O-01 OUT-O-02 OUT-O-03: one worker and one attempt: insertion order over all, the failed event is DEAD, the others are delivered",
    () => {
      const seen: Array<string> = []
      return Effect.gen(function* () {
        const ids = Array.from({ length: 900 }, (_, i) => `${(i * 7) % 13}/${i}`)
        yield* insert(ids)
        const listener: ListenerRegistry.EventListener = (e) =>
          Effect.andThen(
            Effect.sync(() => seen.push(e.eventId)),
            e.eventId.endsWith("/100") ? Effect.fail("no") : Effect.void
          )
        yield* relay(listener, {
          workerCount: 1,
          maxAttempts: 1,
          batchSize: 7
        })
        yield* pass(30)
        assert.deepStrictEqual(seen, ids)
        const after = yield* statuses
        assert.deepStrictEqual(
          Object.entries(after).filter(([, status]) => status !== "DONE 0"),
          [[ids[100]!, "DEAD 0"]]
        )
      }).pipe(Effect.scoped, Effect.provide(base))
    }
  )

  it.effect("OUT-O-03: a failed event holds back its own aggregate until it succeeds, and no other", () => {
    const seen: Array<string> = []
    let failures = 3
    const listener: ListenerRegistry.EventListener = (e) =>
      Effect.suspend(() => {
        if (e.eventId === "x/1" && failures-- > 0) return Effect.fail("not yet")
        seen.push(e.eventId)
        return Effect.void
      })
    return Effect.gen(function* () {
      yield* insert(["x/0", "x/1", "y/0", "x/2", "y/1", "x/3"])
      yield* relay(listener, { retryPolicy: EventRetryPolicy.fixed("10 seconds") })
      yield* pass(1)
      assert.deepStrictEqual(seen.toSorted(), ["x/0", "y/0", "y/1"])
      yield* insert(["x/4", "y/2"])
      yield* pass(20)
      assert.deepStrictEqual(seen.toSorted(), ["x/0", "y/0", "y/1", "y/2"])
      assert.deepInclude(yield* statuses, { "x/1": "RETRY 3", "x/2": "NEW 0" })
      yield* pass(15)
      assert.deepStrictEqual(
        seen.filter((id) => id.startsWith("x")),
        ["x/0", "x/1", "x/2", "x/3", "x/4"]
      )
      assert.isTrue(Object.values(yield* statuses).every((s) => s.startsWith("DONE")))
    }).pipe(Effect.scoped, Effect.provide(base))
  })

  it.effect(
    "OUT-O-03: a failed event is passed over, its successors are delivered, and it comes again when due",
    () => {
      const seen: Array<string> = []
      let failures = 1
      const listener: ListenerRegistry.EventListener = (e) =>
        Effect.suspend(() => {
          if (e.eventId === "x/1" && failures-- > 0) return Effect.fail("not yet")
          seen.push(e.eventId)
          return Effect.void
        })
      return Effect.gen(function* () {
        yield* insert(["x/0", "x/1", "x/2", "x/3"])
        yield* relay(listener, { retryPolicy: EventRetryPolicy.fixed("10 seconds"), afterFailure: "passOver" })
        yield* pass(5)
        assert.deepStrictEqual(seen, ["x/0", "x/2", "x/3"])
        yield* pass(10)
        assert.deepStrictEqual(seen, ["x/0", "x/2", "x/3", "x/1"])
        assert.strictEqual((yield* statuses)["x/1"], "DONE 1")
      }).pipe(Effect.scoped, Effect.provide(base))
    }
  )

  it.effect("OUT-D-08: a restart keeps the hold of a failed event, and DEAD after maxAttempts ends it", () => {
    const seen: Array<string> = []
    const listener: ListenerRegistry.EventListener = (e) =>
      Effect.suspend(() => {
        seen.push(e.eventId)
        return e.eventId === "x/0" ? Effect.fail("never") : Effect.void
      })
    const options = { maxAttempts: 3, retryPolicy: EventRetryPolicy.fixed("1 minute") }
    return Effect.gen(function* () {
      yield* insert(["x/0", "x/1"])
      const first = yield* Scope.make()
      yield* Scope.provide(relay(listener, options), first)
      yield* pass(5)
      yield* Scope.close(first, Exit.void)
      yield* relay(listener, options)
      yield* pass(30)
      assert.deepStrictEqual(seen, ["x/0"])
      yield* pass(180)
      assert.deepStrictEqual(seen, ["x/0", "x/0", "x/0", "x/1"])
      assert.deepStrictEqual(yield* statuses, { "x/0": "DEAD 2", "x/1": "DONE 0" })
    }).pipe(Effect.scoped, Effect.provide(base))
  })

  it.effect(
    "many aggregates, few slots of memory, random failures: order per aggregate, nothing lost, attempts exact",
    () => {
      const seen: Array<string> = []
      const failed = new Map<string, number>()
      let random = 12345
      const chance = () => {
        random = (random * 1103515245 + 12345) % 2147483648
        return random / 2147483648
      }
      const listener: ListenerRegistry.EventListener = (e) =>
        Effect.suspend(() => {
          if (chance() < 0.1) {
            failed.set(e.eventId, (failed.get(e.eventId) ?? 0) + 1)
            return Effect.fail("random")
          }
          seen.push(e.eventId)
          return chance() < 0.05 ? Effect.sleep("30 millis") : Effect.void
        })
      return Effect.gen(function* () {
        const ids = Array.from({ length: 800 }, (_, i) => `${chance() < 0.5 ? "hot" : Math.floor(chance() * 100)}/${i}`)
        yield* insert(ids.slice(0, 500))
        yield* relay(listener, {
          maxInMemory: 100,
          batchSize: 20,
          retryPolicy: EventRetryPolicy.fixed("50 millis"),
          maxAttempts: 100
        })
        yield* pass(10)
        yield* insert(ids.slice(500))
        yield* pass(40)
        const perAggregate = (list: ReadonlyArray<string>) => Object.groupBy(list, (id) => id.split("/")[0]!)
        assert.deepStrictEqual({ ...perAggregate(seen) }, { ...perAggregate(ids) })
        const after = yield* statuses
        for (const id of ids) assert.strictEqual(after[id], `DONE ${failed.get(id) ?? 0}`)
      }).pipe(Effect.scoped, Effect.provide(base))
    }
  )

  it.effect(
    "two nodes share the buckets; a node that stops releases its own, a node that dies is replaced after its lease",
    () => {
      const seen: Array<string> = []
      return Effect.gen(function* () {
        const node = (owner: string, scope: Scope.Scope) =>
          relay(noting(seen), { leases: { owner, lease: "10 seconds" } }).pipe(Scope.provide(scope))
        const [scopeA, scopeB, scopeC] = [yield* Scope.make(), yield* Scope.make(), yield* Scope.make()]
        const a = yield* node("A", scopeA)
        yield* pass(1)
        assert.strictEqual(a.heldBuckets(), 64)
        const b = yield* node("B", scopeB)
        yield* pass(10)
        assert.deepStrictEqual([a.heldBuckets(), b.heldBuckets()], [32, 32])
        const c = yield* node("C", scopeC)
        yield* pass(10)
        assert.deepStrictEqual([a.heldBuckets(), b.heldBuckets(), c.heldBuckets()], [22, 21, 21])
        const ids = Array.from({ length: 300 }, (_, i) => `${i % 30}/${i}`)
        yield* insert(ids)
        yield* pass(10)
        const group = (list: ReadonlyArray<string>) => Object.groupBy(list, (id) => id.split("/")[0]!)
        assert.deepStrictEqual({ ...group(seen) }, { ...group(ids) })
        const closing = yield* Effect.forkChild(Scope.close(scopeC, Exit.void))
        yield* pass(10)
        yield* Fiber.join(closing)
        assert.deepStrictEqual([a.heldBuckets(), b.heldBuckets()], [32, 32])
        // B dies without a word: its rows stay leased in the table while its fibers are gone.
        const sql = yield* SqlClient.SqlClient
        yield* Effect.forkChild(Scope.close(scopeB, Exit.void))
        yield* TestClock.adjust(100)
        yield* sql.unsafe(
          "UPDATE outbox_event_bucket SET owner = 'ghost', expires_at = outbox_now_micros() + 10000000 WHERE owner IS NULL"
        )
        yield* pass(9)
        assert.isTrue(a.heldBuckets() < 64)
        yield* pass(2)
        assert.strictEqual(a.heldBuckets(), 64)
        yield* Scope.close(scopeA, Exit.void)
      }).pipe(Effect.provide(base))
    }
  )
})

onDatabases(
  "order across transactions",
  (db) => {
    it.live(
      "OUT-S-10 OUT-O-01: rows of a slow transaction are neither skipped nor overtaken; unrelated transactions delay nothing",
      () => {
        const seen: Array<string> = []
        return Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* relay(noting(seen), { interval: "100 millis" })
          const [go, inserted, looked] = [
            yield* Deferred.make<void>(),
            yield* Deferred.make<void>(),
            yield* Deferred.make<void>()
          ]
          yield* sql`CREATE TABLE stranger (a INT)`
          const stranger = yield* Effect.forkChild(
            sql.withTransaction(Effect.andThen(sql`INSERT INTO stranger VALUES (1)`, Deferred.await(go)))
          )
          yield* insert(["y/0"])
          yield* waitUntil(() => seen.includes("y/0"))
          const slow = yield* Effect.forkChild(
            sql.withTransaction(
              Effect.gen(function* () {
                yield* insert(["x/0"])
                yield* Deferred.succeed(inserted, undefined)
                yield* Deferred.await(looked)
                yield* insert(["x/1"])
              })
            )
          )
          yield* Deferred.await(inserted)
          yield* insert(["x/2"])
          yield* Effect.sleep("400 millis")
          assert.deepStrictEqual(seen, ["y/0"])
          yield* Deferred.succeed(looked, undefined)
          yield* Fiber.join(slow)
          yield* waitUntil(() => seen.length === 4)
          assert.deepStrictEqual(seen, ["y/0", "x/0", "x/2", "x/1"])
          yield* Deferred.succeed(go, undefined)
          yield* Fiber.join(stranger)
        }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Layer.orDie(OutboxStore.layer()), db.migrated)))
      }
    )

    it.live("concurrent writers and two nodes with leases: order per aggregate, each once", () => {
      const seen: Array<string> = []
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        for (const owner of ["A", "B"]) {
          yield* relay(noting(seen), { leases: { owner, lease: "2 seconds" }, interval: "50 millis" })
        }
        const writer = (name: string) =>
          Effect.forEach(
            Array.from({ length: 40 }, (_, i) => i),
            (i) => sql.withTransaction(Effect.andThen(insert([`${name}/${2 * i}`]), insert([`${name}/${2 * i + 1}`]))),
            { discard: true }
          )
        yield* Effect.forEach(["p", "q", "r"], writer, { concurrency: 3 })
        yield* waitUntil(() => seen.length >= 240)
        for (const name of ["p", "q", "r"]) {
          assert.deepStrictEqual(
            seen.filter((id) => id.startsWith(name)),
            Array.from({ length: 80 }, (_, i) => `${name}/${i}`)
          )
        }
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Layer.orDie(OutboxStore.layer()), db.migrated)))
    })
  },
  ["PostgreSQL", "MariaDB"]
)

/** Waits, on the real clock of a real database, until the condition holds; fails after 20 seconds. */
const waitUntil = (condition: () => boolean) =>
  Effect.sleep("10 millis").pipe(Effect.repeat({ until: condition }), Effect.timeout("20 seconds"))
