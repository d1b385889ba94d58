/** Ruling 87: a listener whose destination is down holds its own events. The others are delivered in milliseconds. */
import { assert, describe, it } from "@effect/vitest"
import { ListenerRegistry, MetricsExporter, Outbox, OutboxError, OutboxHealth, OutboxSchema } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Clock, Effect, Equal, Layer, Logger, Metric } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { onDatabases } from "../outbox/databases.ts"

const migrated = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

const write = (type: string, count: number) =>
  SqlClient.SqlClient.use((sql) =>
    sql.withTransaction(
      Outbox.writeAll(
        Array.from({ length: count }, (_, i) => ({
          eventType: type,
          aggregateType: "a",
          aggregateId: `${type} ${i}`,
          payload: 1
        }))
      )
    )
  )

const states = SqlClient.SqlClient.use((sql) =>
  Effect.map(
    sql.unsafe<{ event_type: string; status: number; attempts: number }>(
      "SELECT event_type, status, attempts FROM outbox_event ORDER BY seq"
    ),
    (rows) => new Set(rows.map((row) => `${row.event_type} ${row.status} ${row.attempts}`))
  )
)

interface Seen {
  readonly type: string
  readonly atMillis: number
}

/** MAIL is down while `isDown`, and its client needs `mailMillis` to find out. */
const listeners = (seen: Array<Seen>, calls: { mail: number }, isDown: () => boolean, mailMillis = 0) => {
  const note = (type: string) => Effect.map(Clock.currentTimeMillis, (atMillis) => void seen.push({ type, atMillis }))
  return ListenerRegistry.layer([
    ListenerRegistry.on("a", "BILL", () => note("BILL")),
    ListenerRegistry.on("a", "MAIL", () =>
      Effect.suspend(() => {
        calls.mail++
        return isDown()
          ? Effect.andThen(
              Effect.sleep(mailMillis),
              Effect.fail(new OutboxError.DownstreamUnavailable({ cause: "no answer" }))
            )
          : note("MAIL")
      })
    )
  ])
}

const of = (seen: ReadonlyArray<Seen>, type: string) => seen.filter((one) => one.type === type)

const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

const shapes = {
  singleNode: Outbox.singleNode({ workerCount: 4 }),
  multiNode: Outbox.multiNode({ workerCount: 4, claimLocking: { lockTimeout: "5 minutes" } }),
  ordered: Outbox.ordered(),
  orderedNodes: Outbox.orderedNodes({ workerCount: 4 })
}

describe("C38 one listener's destination is down for a minute", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it.effect(
      `ruling 87, ${name}: the other listener's events are delivered at once, and these after the outage`,
      () => {
        const seen: Array<Seen> = []
        const calls = { mail: 0 }
        let down = true
        const lines: Array<string> = []
        const logger = Logger.layer([
          Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))
        ])
        return Effect.gen(function* () {
          yield* write("MAIL", 4)
          yield* pass(1)
          yield* write("BILL", 20)
          yield* pass(1)
          assert.strictEqual(of(seen, "BILL").length, 20)
          const health = OutboxHealth.OutboxHealth.use((service) => service.check)
          const during = yield* health
          assert.strictEqual(during.status, "degraded")
          assert.deepInclude(
            during.problems.map(({ source, name: which }) => ({ source, name: which })),
            { source: "destination", name: "a:MAIL" }
          )
          yield* pass(58)
          assert.strictEqual(of(seen, "MAIL").length, 0)
          assert.deepStrictEqual(yield* states, new Set(["MAIL 0 0", "BILL 1 0"]))
          const before = calls.mail
          assert.isTrue(before >= 8 && before <= 70, String(before))
          down = false
          yield* pass(15)
          assert.strictEqual(of(seen, "MAIL").length, 4)
          assert.deepStrictEqual(yield* states, new Set(["MAIL 1 0", "BILL 1 0"]))
          assert.strictEqual((yield* health).status, "up")
          const told = lines.filter((line) => line.includes("a:MAIL") && line.includes("is down"))
          assert.isTrue(told.length >= 1 && told.length <= 3, lines.join("\n"))
        }).pipe(
          Effect.provide(
            shape.pipe(
              Layer.provide(listeners(seen, calls, () => down)),
              Layer.provideMerge(migrated),
              Layer.provideMerge(logger)
            )
          )
        )
      }
    )
  }

  it.effect(
    "ruling 87: a client that needs ten seconds to find out has one worker for at most half of the time",
    () => {
      const seen: Array<Seen> = []
      return Effect.gen(function* () {
        yield* write("MAIL", 4)
        yield* pass(30)
        for (let i = 0; i < 6; i++) {
          yield* write("BILL", 10)
          yield* pass(10)
        }
        assert.strictEqual(of(seen, "BILL").length, 60)
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            Outbox.singleNode({ workerCount: 1 }).pipe(
              Layer.provide(listeners(seen, { mail: 0 }, () => true, 10_000)),
              Layer.provideMerge(migrated)
            ),
            Logger.layer([])
          )
        )
      )
    }
  )

  it.effect("ruling 87: `holds: event` makes only the event itself wait", () => {
    const seen: Array<string> = []
    const registry = ListenerRegistry.layerAll((event) =>
      event.aggregateId === "MAIL 0"
        ? Effect.fail(
            new OutboxError.DownstreamUnavailable({ cause: "missing", destination: "topic mail", holds: "event" })
          )
        : Effect.sync(() => void seen.push(event.aggregateId!))
    )
    return Effect.gen(function* () {
      yield* write("MAIL", 4)
      yield* pass(2)
      assert.deepStrictEqual(seen, ["MAIL 1", "MAIL 2", "MAIL 3"])
      const { problems } = yield* OutboxHealth.OutboxHealth.use((service) => service.check)
      assert.deepInclude(problems[0], { source: "destination", name: "topic mail" })
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          Outbox.singleNode().pipe(Layer.provide(registry), Layer.provideMerge(migrated)),
          Logger.layer([])
        )
      )
    )
  })
})

onDatabases(
  "C38 in real time",
  (db) => {
    for (const name of ["singleNode", "multiNode"] as const) {
      it.live(`ruling 87, ${name}: a thousand events of the listener that is down hold up nobody`, () => {
        const seen: Array<Seen> = []
        let down = true
        return Effect.gen(function* () {
          yield* write("MAIL", 1000)
          yield* Effect.sleep("300 millis")
          const from = yield* Clock.currentTimeMillis
          yield* write("BILL", 20)
          yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => of(seen, "BILL").length === 20 }).pipe(
            Effect.timeout("5 seconds")
          )
          const took = Math.max(...of(seen, "BILL").map(({ atMillis }) => atMillis)) - from
          assert.isBelow(took, 2000)
          down = false
          yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => of(seen, "MAIL").length === 1000 }).pipe(
            Effect.timeout("20 seconds")
          )
          const published = new Set(["MAIL 1 0", "BILL 1 0"])
          const found = yield* Effect.repeat(Effect.delay(states, "20 millis"), {
            until: (found) => Equal.equals(found, published),
            times: 1000
          })
          assert.deepStrictEqual(found, published)
        }).pipe(
          Effect.provide(
            Layer.provideMerge(
              shapes[name].pipe(
                Layer.provide(listeners(seen, { mail: 0 }, () => down)),
                Layer.provideMerge(db.migrated)
              ),
              Logger.layer([])
            )
          ),
          Effect.provideService(Metric.MetricRegistry, new Map()),
          Effect.provideService(MetricsExporter.Current, MetricsExporter.noop)
        )
      })
    }
  },
  ["PostgreSQL", "MariaDB"]
)
