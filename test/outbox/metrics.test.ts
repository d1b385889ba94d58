/**
 * Each of the nine metrics of outbox seed §15 moves by the right amount, on every database and in every shape that has statements of its own, and its gauges are right when nothing happens, after a
 * node died, after a purge and after a replay of dead events (ruling 75).
 */
import { assert, describe, it } from "@effect/vitest"
import { DeadEventManager, ListenerRegistry, MetricsExporter, Outbox, OutboxError, OutboxStore } from "@eventbus/outbox"
import { Context, Effect, Exit, Layer, Metric, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "./databases.ts"

const write = (types: ReadonlyArray<string>) =>
  SqlClient.SqlClient.use((sql) =>
    sql.withTransaction(
      Outbox.writeAll(types.map((eventType) => ({ eventType, aggregateType: "a", aggregateId: eventType, payload: 1 })))
    )
  )

/** The values of all metrics by name, without the prefix. */
const metrics = Effect.map(
  Metric.snapshot,
  (all) =>
    new Map(
      all.map(({ id, ...series }): readonly [string, number] => [
        id.replace("shop.outbox.", ""),
        series.type === "Counter"
          ? Number(series.state.count)
          : series.type === "Gauge"
            ? Number(series.state.value)
            : Number.NaN
      ])
    )
)

const valueOf = (name: string) => Effect.map(metrics, (all) => all.get(name))

/** Waits until the metrics fulfil a condition; at most 20 seconds, since the table is looked at every five. */
const until = Effect.fnUntraced(function* (holds: (all: ReadonlyMap<string, number>) => boolean) {
  for (let tries = 0; tries < 200; tries++) {
    if (holds(yield* metrics)) return
    yield* Effect.sleep("100 millis")
  }
  return yield* Effect.die(new Error(`never came true: ${JSON.stringify([...(yield* metrics)])}`))
})

/** `fine` works, `flaky` fails once, `down` says once that its destination is down, `bad` cannot be mended, `slow` waits for the gate. */
const listeners = (gate: Promise<void>) => {
  const failed = new Set<string>()
  const once = (type: string, error: unknown) =>
    Effect.suspend(() =>
      failed.has(type)
        ? Effect.void
        : Effect.andThen(
            Effect.sync(() => failed.add(type)),
            Effect.fail(error)
          )
    )
  return ListenerRegistry.layerAll(({ eventType }) => {
    switch (eventType) {
      case "flaky":
        return once("flaky", new Error("no"))
      case "down":
        return once("down", new OutboxError.DownstreamUnavailable({ cause: "no answer" }))
      case "bad":
        return Effect.fail(new OutboxError.PoisonEvent({ reason: "never" }))
      case "slow":
        return Effect.promise(() => gate)
      default:
        return Effect.void
    }
  })
}

const shapes = {
  singleNode: Outbox.singleNode({ workerCount: 1, hotQueueCapacity: 2, coldQueueCapacity: 2, interval: "200 millis" }),
  multiNode: Outbox.multiNode({
    ...{ workerCount: 1, hotQueueCapacity: 2, coldQueueCapacity: 2, interval: "200 millis" },
    claimLocking: { lockTimeout: "5 minutes" }
  }),
  ordered: Outbox.ordered({ interval: "200 millis" }),
  orderedNodes: Outbox.orderedNodes({ workerCount: 1, interval: "200 millis" })
} as const

const isHot = (name: keyof typeof shapes) => name === "singleNode" || name === "multiNode"

const withMetrics = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, Metric.MetricRegistry, new Map())

const exporter = MetricsExporter.layer("shop.outbox")

/** One look at the table takes 5 seconds. The shapes that differ by their statements run on each database, the others on one. */
const shapesOn = (database: string) =>
  (Object.keys(shapes) as ReadonlyArray<keyof typeof shapes>).filter(
    (name) => database === "SQLite" || name === "multiNode"
  )

// A test waits for looks at a table of its own most of the time, and has a registry of its own.
describe.concurrent("side by side", () => {
  onDatabases("the nine metrics of an outbox", (db) => {
    for (const name of shapesOn(db.name)) {
      it.live(
        `OUT-M-02 ruling 75 ${name}: each counter counts its events, and each gauge says what is there`,
        () => {
          let open = () => {}
          const gate = new Promise<void>((resolve) => {
            open = resolve
          })
          return Effect.gen(function* () {
            yield* until((all) => all.get("pending") === 0)
            assert.strictEqual(yield* valueOf("lag.oldest.ms"), 0)
            yield* write(["slow"])
            yield* until((all) =>
              isHot(name)
                ? all.get("queue.hot.depth") === 0 && all.get("enqueue.hot") === 1
                : all.get("enqueue.cold") === 1
            )
            // One event runs, two wait in the hot queue, and the others wait in the table or in the cold queue.
            yield* write(["fine", "bad", "flaky", "down", "fine"])
            yield* until((all) => all.get("pending") === 6)
            yield* until((all) =>
              isHot(name)
                ? all.get("queue.cold.depth") === 2 || name === "multiNode"
                : all.get("queue.cold.depth") === 6
            )
            if (isHot(name)) {
              assert.strictEqual(yield* valueOf("queue.hot.depth"), 2)
              assert.strictEqual(yield* valueOf("enqueue.hot"), 3)
              assert.strictEqual(yield* valueOf("enqueue.hot.dropped"), 3)
            }
            const lag = (yield* valueOf("lag.oldest.ms"))!
            yield* Effect.sleep("300 millis")
            assert.isAtLeast((yield* valueOf("lag.oldest.ms"))!, lag + 250, "it grows while nothing happens")
            open()
            const dead = name === "ordered" ? 2 : 1
            yield* until(
              (all) => all.get("pending") === 0 && all.get("dead") === dead && all.get("queue.cold.depth") === 0
            )
            const all = yield* metrics
            // In `ordered` an event has one attempt.
            assert.strictEqual(all.get("dispatch.success"), 6 - dead)
            assert.strictEqual(all.get("dispatch.failure"), name === "ordered" ? 1 : 2)
            assert.strictEqual(all.get("dispatch.dead"), dead)
            assert.strictEqual(all.get("lag.oldest.ms"), 0)
            assert.strictEqual(all.get("queue.hot.depth"), 0)
            assert.isAtLeast(all.get("enqueue.cold")!, isHot(name) ? 3 : 6)
            // A replay makes the dead ones pending; they die again.
            assert.strictEqual(yield* DeadEventManager.DeadEventManager.use((manager) => manager.replayAll()), dead)
            yield* until((all) => all.get("dispatch.dead") === dead + 1 && all.get("dead") === 1)
            const store = yield* OutboxStore.OutboxStore
            yield* Effect.sleep("50 millis")
            yield* store.purgeTerminal(0, 100)
            yield* until((all) => all.get("dead") === 0)
          }).pipe(
            Effect.provide(
              shapes[name].pipe(Layer.provide(Layer.merge(listeners(gate), exporter)), Layer.provideMerge(db.migrated))
            ),
            withMetrics
          )
        },
        60_000
      )
    }

    it.live(
      "OUT-M-02 ruling 75 writerOnly: the figures of the table are right although nothing is delivered here",
      () =>
        Effect.gen(function* () {
          yield* write(["fine", "fine"])
          yield* until((all) => all.get("pending") === 2 && all.get("lag.oldest.ms")! > 0)
          assert.isUndefined(yield* valueOf("queue.hot.depth"))
        }).pipe(
          Effect.provide(Outbox.writerOnly().pipe(Layer.provide(exporter), Layer.provideMerge(db.migrated))),
          withMetrics
        ),
      60_000
    )

    it.live(
      "OUT-M-02 ruling 75 multiNode: rows that a dead node claimed stay in the figures of the others, and the dead node shows none",
      () =>
        Effect.gen(function* () {
          const sql = yield* Effect.context<SqlClient.SqlClient>()
          const hangs = ListenerRegistry.layerAll(() => Effect.never)
          const options = { workerCount: 1, interval: "200 millis", drainTimeout: "100 millis" } as const
          const node = (prefix: string) =>
            Outbox.multiNode({ ...options, claimLocking: { lockTimeout: "5 minutes", owner: prefix } }).pipe(
              Layer.provide(Layer.merge(hangs, MetricsExporter.layer(`${prefix}.outbox`))),
              Layer.fresh
            )
          const first = yield* Scope.make()
          const services = yield* Layer.buildWithScope(node("first"), first)
          yield* Layer.build(node("shop"))
          yield* Effect.provideContext(write(["a", "b", "c"]), Context.merge(sql, services))
          yield* until((all) => all.get("first.outbox.pending") === 3)
          // The node dies: its claims stay.
          yield* Effect.provideContext(
            SqlClient.SqlClient.use((client) => client.unsafe("UPDATE outbox_event SET locked_by = 'nobody'")),
            sql
          )
          yield* Scope.close(first, Exit.void)
          yield* until((all) => all.get("pending") === 3 && all.get("lag.oldest.ms")! > 0)
          const names = [...(yield* metrics).keys()]
          assert.deepStrictEqual(
            names.filter(
              (name) =>
                name.startsWith("first.") && /depth|lag|pending|\.dead$/.test(name) && !name.includes("dispatch")
            ),
            []
          )
        }).pipe(Effect.scoped, Effect.provide(db.migrated), withMetrics),
      60_000
    )
  })
})
