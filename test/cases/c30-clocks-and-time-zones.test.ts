import { assert, describe, it } from "@effect/vitest"
import { EventEnvelope, ListenerRegistry, Outbox, OutboxHealth, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { VirtualClock } from "@eventbus/testkit"
import { Clock, Effect, Layer } from "effect"
import { onDatabases } from "../outbox/databases.ts"
import { skewed } from "../outbox/skewedClock.ts"

const hour = 3_600_000

const world = Layer.orDie(OutboxStore.layer()).pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate()))),
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))),
  Layer.provideMerge(VirtualClock.layer)
)

/** A node of `multiNode` whose own clock is off; five seconds for every event. */
const node = (owner: string, delivered: Array<string>, offMillis: () => number) =>
  Effect.gen(function* () {
    const clock = skewed(yield* Clock.Clock, offMillis)
    const slow = ListenerRegistry.layerAll((event) =>
      Effect.sync(() => delivered.push(event.eventId)).pipe(Effect.andThen(Effect.sleep("5 seconds")))
    )
    yield* Layer.build(
      Outbox.multiNode({
        workerCount: 1,
        interval: "1 second",
        claimLocking: { owner, lockTimeout: "3 minutes" }
      }).pipe(Layer.provide(slow), Layer.provide(Layer.succeed(Clock.Clock, clock)), Layer.fresh)
    )
  })

const insertTen = Effect.gen(function* () {
  const store = yield* OutboxStore.OutboxStore
  const ids = Array.from({ length: 10 }, (_, n) => `e${n}`)
  yield* store.insertNew(
    yield* Effect.forEach(ids, (eventId) => EventEnvelope.make({ eventType: "E", eventId, payload: 1 }))
  )
  return ids
})

describe("C30 clocks that disagree", () => {
  it.effect("OUT-S-11 ruling 44: a node four minutes ahead does not take claims of three minutes", () =>
    Effect.gen(function* () {
      const delivered: Array<string> = []
      const ids = yield* insertTen
      yield* node("A", delivered, () => 0)
      yield* Effect.sleep("2 seconds")
      yield* node("B", delivered, () => 4 * 60_000)
      yield* Effect.sleep("50 seconds")
      assert.deepStrictEqual(delivered.toSorted(), ids)
    }).pipe(Effect.scoped, Effect.provide(world))
  )

  it.effect("OUT-P-02: when a node's clock jumps back an hour, nothing stalls and the lag is not negative", () =>
    Effect.gen(function* () {
      const delivered: Array<string> = []
      let off = 0
      yield* node("A", delivered, () => off)
      const ids = yield* insertTen
      yield* Effect.sleep("12 seconds")
      off = -hour
      const store = yield* OutboxStore.OutboxStore
      yield* store.insertNew([yield* EventEnvelope.make({ eventType: "E", eventId: "f", payload: 1 })])
      yield* Effect.sleep("1 minute")
      assert.deepStrictEqual(delivered.toSorted(), [...ids, "f"])
    }).pipe(Effect.scoped, Effect.provide(world))
  )

  it.effect("when the database's clock is set back, the lag is never negative, and new events are due at once", () =>
    Effect.gen(function* () {
      let off = 0
      const clock = skewed(yield* Clock.Clock, () => off)
      const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
        Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))),
        Layer.provide(Layer.succeed(Clock.Clock, clock))
      )
      yield* Effect.gen(function* () {
        const ids = yield* insertTen
        off = -hour
        const report = yield* OutboxHealth.OutboxHealth.use((health) => health.check)
        assert.deepInclude(report, { status: "up", pending: 10, oldestMillis: 0 })
        const store = yield* OutboxStore.OutboxStore
        yield* store.insertNew([yield* EventEnvelope.make({ eventType: "E", eventId: "new", payload: 1 })])
        const due = Effect.map(store.pollPending({ limit: 20 }), (rows) => rows.map((row) => row.eventId))
        assert.deepStrictEqual(yield* due, ["new"])
        // Earlier events wait until that clock has caught up.
        yield* Effect.sleep("1 hour")
        assert.deepStrictEqual((yield* due).toSorted(), [...ids, "new"].toSorted())
      }).pipe(
        Effect.provide(
          OutboxHealth.layer().pipe(
            Layer.provideMerge(Layer.orDie(OutboxStore.layer())),
            Layer.provideMerge(Layer.fresh(database))
          )
        )
      )
    }).pipe(Effect.provide(VirtualClock.layer))
  )
})

/** Runs with another time zone of this process. */
const inZone = (zone: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = process.env.TZ
      process.env.TZ = zone
      return before
    }),
    (before) =>
      Effect.sync(() => {
        if (before === undefined) delete process.env.TZ
        else process.env.TZ = before
      })
  )

onDatabases("C30 time zones", (db) => {
  for (const [zone, what] of [
    ["Asia/Kolkata", "half an hour off"],
    ["Europe/Berlin", "with an hour that comes twice"],
    ["America/St_Johns", "behind"]
  ] as const) {
    it.live(`OUT-S-04: a process in ${zone}, ${what}: times come back exactly, and no event is early or late`, () =>
      Effect.gen(function* () {
        yield* inZone(zone)
        const store = yield* OutboxStore.OutboxStore
        // The night in which Berlin's clocks go back, and the one in which they go forward.
        const moments = ["2026-10-25T00:30:00.123Z", "2026-10-25T01:30:00.123Z", "2026-03-29T01:30:00.456Z"].map(
          Date.parse
        )
        const events = yield* Effect.forEach(moments, (occurredAt, n) =>
          EventEnvelope.make({ eventType: "E", eventId: `e${n}`, occurredAt, payload: 1 })
        )
        yield* store.insertNew(events)
        const read = yield* store.pollPending({ limit: 10 })
        const { events: found } = OutboxStore.separateUndecodable(read)
        assert.deepStrictEqual(
          found.map((event) => event.envelope.occurredAtMillis),
          moments
        )
        for (const row of read) assert.isBelow(Math.abs(row.createdAtMicros / 1000 - Date.now()), 60_000)
        yield* store.markRetry("e0", "1 hour", "later")
        assert.deepStrictEqual(
          (yield* store.pollPending({ limit: 10 })).map((row) => row.eventId),
          ["e1", "e2"]
        )
        const dueIn = (yield* store.nextDue) ?? 0
        assert.isTrue(dueIn > hour - 60_000 && dueIn <= hour, String(dueIn))
        const lag = yield* store.lag
        assert.isTrue(lag.oldestMillis >= 0 && lag.oldestMillis < 60_000, String(lag.oldestMillis))
      }).pipe(Effect.scoped, Effect.provide(Layer.orDie(OutboxStore.layer()).pipe(Layer.provideMerge(db.migrated))))
    )
  }
})
