/** The hot path comes late: its transaction was open for long, or another hook ran before it. No event is delivered twice for that. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as NodeSqlite from "../../src/drivers/NodeSqlite.ts"
import { PolledEvents } from "../../src/internal/dispatch/polledEvents.ts"
import * as ListenerRegistry from "../../src/ListenerRegistry.ts"
import * as Outbox from "../../src/Outbox.ts"
import * as OutboxDispatcher from "../../src/OutboxDispatcher.ts"
import * as OutboxPoller from "../../src/OutboxPoller.ts"
import * as OutboxSchema from "../../src/OutboxSchema.ts"
import * as OutboxStore from "../../src/OutboxStore.ts"
import * as TxContext from "../../src/TxContext.ts"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

/** Its listener takes a second. */
const listening = (delivered: Array<string>) =>
  ListenerRegistry.layerAll(({ eventType }) =>
    Effect.andThen(
      Effect.sync(() => void delivered.push(eventType)),
      Effect.sleep("1 second")
    )
  )

/** Lets the first poll end, which would wait for the transaction: SQLite has one connection. */
const settle = TestClock.adjust(1)

/** Lets time pass in small steps. */
const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: 10 * seconds - 1 })

const waiting = <A, E, R>(self: Effect.Effect<A, E, R>, seconds: number) =>
  Effect.flatMap(Effect.forkChild(self, { startImmediately: true }), () => pass(seconds))

const inTransaction = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(self))

const otherNode = { owner: "other", lockTimeout: "3 seconds", limit: 10 } as const
const claimByOther = OutboxStore.OutboxStore.use((store) => store.claimPending(otherNode))

describe("with claims, a transaction that is open for longer than a claim lasts", () => {
  const node = (delivered: Array<string>) =>
    Outbox.multiNode({ interval: "1 hour", claimLocking: { lockTimeout: "3 seconds" } }).pipe(
      Layer.provide(listening(delivered)),
      Layer.provideMerge(database)
    )

  it.effect("ruling 41: the event of another node that took it first is not delivered here as well", () => {
    const delivered: Array<string> = []
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const taken: Array<number> = []
      yield* settle
      const other = Effect.map(Effect.orDie(claimByOther), ({ length }) => void taken.push(length))
      const body = sql
        .afterCommit(other)
        .pipe(Effect.andThen(Outbox.writeJson("a", "{}")), Effect.andThen(Effect.sleep("4 seconds")))
      yield* waiting(inTransaction(body), 7)
      assert.deepStrictEqual(taken, [1])
      assert.deepStrictEqual(delivered, [])
    }).pipe(Effect.provide(node(delivered)))
  })

  it.effect(
    "ruling 41: the event that is delivered here is claimed anew, so that no other node takes it meanwhile",
    () => {
      const delivered: Array<string> = []
      return Effect.gen(function* () {
        yield* settle
        const body = Effect.andThen(Outbox.writeJson("a", "{}"), Effect.sleep("4 seconds"))
        yield* waiting(inTransaction(body), 4.5)
        assert.deepStrictEqual(delivered, ["a"])
        assert.deepStrictEqual(yield* claimByOther, [])
        yield* pass(5)
        assert.deepStrictEqual(yield* claimByOther, [])
        assert.deepStrictEqual(delivered, ["a"])
      }).pipe(Effect.provide(node(delivered)))
    }
  )

  it.effect("ruling 41: a claim counts from the poll's statement, not from its answer", () => {
    const delivered: Array<string> = []
    return Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      const claimLocking = { owner: "this", lockTimeout: "3 seconds" } as const
      const slow = {
        ...store,
        claimPending: (options: OutboxStore.ClaimOptions) =>
          Effect.tap(store.claimPending(options), () => Effect.andThen(Effect.sleep("4 seconds"), claimByOther))
      }
      const dispatcher = yield* OutboxDispatcher.make({ claimLocking })
      const poller = yield* OutboxPoller.make({
        claimLocking,
        handler: OutboxPoller.toDispatcher(dispatcher)
      }).pipe(Effect.provideService(OutboxStore.OutboxStore, slow))
      yield* store.insertNew([
        {
          eventId: "e",
          eventType: "a",
          occurredAtMillis: 0,
          aggregateType: "a",
          aggregateId: undefined,
          tenantId: undefined,
          headers: new Map(),
          payload: new Uint8Array(1),
          contentType: "text/plain"
        }
      ])
      yield* waiting(poller.poll, 7)
      assert.deepStrictEqual(delivered, [])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.mergeAll(Layer.orDie(OutboxStore.layer()), listening(delivered)).pipe(Layer.provideMerge(database))
      )
    )
  })
})

describe("without claims, a hot path that comes after the poller has delivered", () => {
  const node = (delivered: Array<string>) =>
    Outbox.singleNode({ interval: "200 millis" }).pipe(
      Layer.provide(listening(delivered)),
      Layer.provideMerge(database)
    )

  it.effect(
    "OUT-D-14 ruling 65: another hook behind the commit takes its time, and the event is delivered once",
    () => {
      const delivered: Array<string> = []
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* waiting(
          inTransaction(Effect.andThen(sql.afterCommit(Effect.sleep("6 seconds")), Outbox.writeJson("a", "{}"))),
          10
        )
        assert.deepStrictEqual(delivered, ["a"])
        yield* inTransaction(Outbox.writeJson("b", "{}"))
        yield* pass(2)
        assert.deepStrictEqual(delivered, ["a", "b"])
      }).pipe(Effect.provide(node(delivered)))
    }
  )

  it.effect(
    "OUT-D-14 ruling 65: a joined transaction says late that it has committed, and the event is delivered once",
    () => {
      const delivered: Array<string> = []
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const joined = TxContext.join((text, params) => Effect.runPromise(sql.unsafe(text, params).raw))
        yield* joined.run(Outbox.writeJson("a", "{}"))
        yield* pass(6)
        yield* joined.committed
        yield* pass(2)
        assert.deepStrictEqual(delivered, ["a"])
      }).pipe(Effect.provide(node(delivered)))
    }
  )

  it("OUT-D-14 ruling 65: an event of a write that is older than the poller's memory is left to the poller", () => {
    const polled = new PolledEvents()
    for (let n = 0; n < 10_001; n++) polled.add(`e${n}`, BigInt(n))
    assert.isUndefined(polled.hasTaken("e0", 0n))
    assert.isTrue(polled.hasTaken("e1", 1n))
    assert.isFalse(polled.hasTaken("new", 1n))
    assert.isFalse(polled.hasTaken("new", undefined))
    // An id that was purged may be written again.
    assert.isFalse(polled.hasTaken("e5", 6n))
  })
})
