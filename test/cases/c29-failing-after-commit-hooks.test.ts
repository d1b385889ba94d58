import { assert, describe, it } from "@effect/vitest"
import {
  DispatcherWriterHook,
  ListenerRegistry,
  MetricsExporter,
  Outbox,
  OutboxDispatcher,
  OutboxPoller,
  OutboxSchema,
  OutboxStore,
  OutboxWriter,
  TxContext,
  WriterHook
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { VirtualClock } from "@eventbus/testkit"
import { Effect, Exit, Layer, Metric, Scope } from "effect"
import { SqlClient } from "effect/sql"

const layers = Layer.mergeAll(Layer.orDie(OutboxStore.layer()), TxContext.layer).pipe(
  Layer.provideMerge(
    Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
      Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
    )
  ),
  Layer.provideMerge(VirtualClock.layer)
)

const five = ["a", "b", "c", "d", "e"].map((eventId) => ({ eventType: "E", eventId, payload: 1 }))

const rowCount = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql<{ n: number }>`SELECT count(*) AS n FROM outbox_event`, ([row]) => row?.n)
)

/** A dispatcher with one slot for hot events and a slow listener, a poller behind it, and a writer with the hook in question. */
const writeFive = (hook: WriterHook.WriterHook, dispatching: "running" | "closed" = "running") => {
  const seen: Array<string> = []
  const slow = ListenerRegistry.layerAll((event) =>
    Effect.delay(
      Effect.sync(() => seen.push(event.eventId)),
      "2 seconds"
    )
  )
  return Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const dispatcher = yield* OutboxDispatcher.make({ hotQueueCapacity: 1, workerCount: 1 }).pipe(
      Effect.provideService(Scope.Scope, scope)
    )
    const poller = yield* OutboxPoller.make({ handler: OutboxPoller.toDispatcher(dispatcher), interval: "1 second" })
    const hot = yield* DispatcherWriterHook.make({ dispatcher })
    const writer = yield* OutboxWriter.make({ hook: WriterHook.combine(hook, hot) })
    if (dispatching === "closed") yield* Scope.close(scope, Exit.void)
    const written = yield* Effect.exit(TxContext.withTransaction(writer.writeAll(five)))
    yield* poller.start
    yield* Effect.sleep("30 seconds")
    return { written, seen, rows: yield* rowCount }
  }).pipe(Effect.scoped, Effect.provide(slow))
}

const throws = () => {
  throw new Error("hook")
}

describe("C29 a failing hook, a full queue or a closed dispatcher never makes a committed write look failed", () => {
  for (const name of ["afterWrite", "afterCommit", "afterRollback"] as const) {
    for (const [how, fail] of [
      ["throws", throws],
      ["fails", () => Effect.fail("hook")],
      ["dies", () => Effect.die("hook")]
    ] as const) {
      it.effect(`OUT-W-14 ruling 45: ${name} ${how}: the caller sees success, and all five are delivered once`, () =>
        Effect.gen(function* () {
          const { written, seen } = yield* writeFive({ [name]: fail })
          assert.deepStrictEqual(
            Exit.map(written, (ids) => ids.length),
            Exit.succeed(5)
          )
          assert.deepStrictEqual(seen.toSorted(), ["a", "b", "c", "d", "e"])
        }).pipe(Effect.provide(layers))
      )
    }
  }

  it.effect("OUT-W-14: a failing afterRollback leaves the caller with its own error", () =>
    Effect.gen(function* () {
      const writer = yield* OutboxWriter.make({ hook: { afterRollback: throws } })
      const failing = Effect.andThen(writer.writeAll(five), Effect.fail("the caller's own"))
      assert.strictEqual(yield* Effect.flip(TxContext.withTransaction(failing)), "the caller's own")
      assert.strictEqual(yield* rowCount, 0)
    }).pipe(Effect.provide(layers))
  )

  it.effect("OUT-W-17 OUT-D-03: a full hot queue drops four to the poller, and counts them", () =>
    Effect.gen(function* () {
      const { seen } = yield* writeFive({}).pipe(Effect.provide(MetricsExporter.layer("outbox")))
      assert.deepStrictEqual(seen.toSorted(), ["a", "b", "c", "d", "e"])
      const dropped = (yield* Metric.snapshot).find(({ id }) => id === "outbox.enqueue.hot.dropped")
      assert.deepInclude(dropped?.state, { count: 4 })
    }).pipe(Effect.provide(layers), Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect("OUT-W-17: with a closed dispatcher, only the hot path is lost", () =>
    Effect.gen(function* () {
      const { written, seen, rows } = yield* writeFive({}, "closed")
      assert.isTrue(Exit.isSuccess(written))
      assert.deepStrictEqual(seen, [])
      assert.strictEqual(rows, 5)
      // The next dispatcher delivers them.
      const later: Array<string> = []
      const next = Outbox.singleNode().pipe(
        Layer.provide(ListenerRegistry.layerAll((event) => Effect.sync(() => later.push(event.eventId))))
      )
      yield* Effect.provide(Effect.sleep("10 seconds"), next)
      assert.deepStrictEqual(later.toSorted(), ["a", "b", "c", "d", "e"])
    }).pipe(Effect.provide(layers))
  )

  it.effect("OUT-W-13: when beforeWrite refuses, throws or dies, nothing is inserted", () =>
    Effect.gen(function* () {
      const refused = () => Effect.fail(new WriterHook.WriteRefused({ reason: "closed" }))
      for (const beforeWrite of [refused, throws, () => Effect.die("hook")]) {
        const { written, rows } = yield* writeFive({ beforeWrite })
        assert.isTrue(Exit.isFailure(written))
        assert.strictEqual(rows, 0)
      }
    }).pipe(Effect.provide(layers))
  )

  it.effect("OUT-W-13: when beforeWrite suppresses everything, there are no ids, no rows and no callbacks", () =>
    Effect.gen(function* () {
      for (const nothing of [null, []]) {
        const fired: Array<string> = []
        const hook: WriterHook.WriterHook = {
          beforeWrite: () => Effect.succeed(nothing),
          afterWrite: () => Effect.sync(() => void fired.push("write")),
          afterCommit: () => Effect.sync(() => void fired.push("commit"))
        }
        const { written, rows } = yield* writeFive(hook)
        assert.deepStrictEqual(written, Exit.succeed([]))
        assert.strictEqual(rows, 0)
        assert.deepStrictEqual(fired, [])
      }
    }).pipe(Effect.provide(layers))
  )

  it.effect(
    "OUT-W-13: the list that beforeWrite returns is written: changed events included; a repeated id is refused",
    () =>
      Effect.gen(function* () {
        const twice = yield* writeFive({ beforeWrite: ([a]) => Effect.succeed([a!, a!]) })
        assert.isTrue(Exit.isFailure(twice.written))
        assert.strictEqual(twice.rows, 0)
        const changing: WriterHook.WriterHook = {
          beforeWrite: (events) => Effect.succeed(events.map((event) => ({ ...event, tenantId: "t" })))
        }
        const changed = yield* writeFive(changing)
        assert.deepStrictEqual(changed.seen.toSorted(), ["a", "b", "c", "d", "e"])
        const sql = yield* SqlClient.SqlClient
        assert.deepStrictEqual(yield* sql`SELECT DISTINCT tenant_id FROM outbox_event`, [{ tenant_id: "t" }])
      }).pipe(Effect.provide(layers))
  )
})
