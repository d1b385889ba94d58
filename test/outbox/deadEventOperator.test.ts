/** The operator's verbs on dead events, on every database. Tests mark rows as a dispatcher would. */
import { assert, describe, it } from "@effect/vitest"
import {
  DeadEventOperator,
  type DeadEvents,
  EventEnvelope,
  type OutboxError,
  OutboxSchema,
  OutboxStore
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { onDatabases } from "./databases.ts"

const Store = OutboxStore.OutboxStore
const Operator = DeadEventOperator.DeadEventOperator

const operatorOn = (migrated: Layer.Layer<SqlClient.SqlClient>, options?: OutboxStore.StoreOptions) =>
  Layer.orDie(DeadEventOperator.layer()).pipe(
    Layer.provideMerge(Layer.orDie(OutboxStore.layer(options))),
    Layer.provideMerge(migrated)
  )

/** Writes an event, and marks it DEAD with this error. */
const die = Effect.fnUntraced(function* (eventId: string, eventType: string, error: string) {
  const store = yield* Store
  yield* store.insertNew([
    yield* EventEnvelope.make({
      ...{ eventType, eventId, aggregateType: "order", aggregateId: `of-${eventId}` },
      ...{ payload: { id: eventId }, headers: { region: "eu" } }
    })
  ])
  assert.strictEqual(yield* store.markDead(eventId, error), 1)
})

/** Two groups of two, and an event of another type. */
const five = Effect.gen(function* () {
  yield* die("a", "Placed", "Refused: order 17 is closed")
  yield* die("b", "Placed", "TypeError: x is not a function")
  yield* die("c", "Placed", "Refused: order 18 is closed")
  yield* die("d", "Paid", "Refused: order 19 is closed")
  yield* die("e", "Placed", "TypeError: x is not a function")
  // The clock of the embedded database is that of the test: later deaths come later.
  yield* TestClock.adjust("1 second")
})

const status = (eventId: string) =>
  SqlClient.SqlClient.use((sql) =>
    sql.unsafe<{ readonly status: number }>(`SELECT status FROM outbox_event WHERE event_id = '${eventId}'`)
  ).pipe(Effect.map(([row]) => (row === undefined ? undefined : Number(row.status))))

const ids = ({ events }: Pick<DeadEvents.Plan, "events">) => events.map(([eventId]) => eventId)

const replayAll = { action: "replay", select: { all: true }, reason: "INC-1204" } as const

onDatabases("DeadEventOperator", (db) => {
  const operated = operatorOn(db.migrated)

  it.effect("OPS-12 groups, list and show: by type and error, page by page, in full", () =>
    Effect.gen(function* () {
      yield* five
      const operator = yield* Operator
      const { groups, other } = yield* operator.groups
      assert.strictEqual(other, 0)
      assert.deepStrictEqual(
        groups.map(({ eventType, errorClass, message, count, samples }) => [
          ...[eventType, errorClass, message, count],
          samples.join()
        ]),
        [
          ["Placed", "Refused", "order # is closed", 2, "a,c"],
          ["Placed", "TypeError", "x is not a function", 2, "b,e"],
          ["Paid", "Refused", "order # is closed", 1, "d"]
        ]
      )
      const [refused] = groups
      assert.isTrue(refused!.firstMicros <= refused!.lastMicros)
      const first = yield* operator.list({ limit: 2 })
      assert.deepStrictEqual(
        first.events.map(({ eventId }) => eventId),
        ["a", "b"]
      )
      const second = yield* operator.list({ limit: 3, after: first.next! })
      assert.deepStrictEqual(
        second.events.map(({ eventId }) => eventId),
        ["c", "d", "e"]
      )
      assert.strictEqual(second.next, undefined)
      const ofGroup = yield* operator.list({ group: refused!.fingerprint })
      assert.deepStrictEqual(
        ofGroup.events.map(({ eventId }) => eventId),
        ["a", "c"]
      )
      const ofAggregate = yield* operator.list({ eventType: "Paid", aggregateType: "order", aggregateId: "of-d" })
      assert.deepStrictEqual(
        ofAggregate.events.map(({ eventId }) => eventId),
        ["d"]
      )
      const shown = yield* operator.show("c")
      assert.deepInclude(shown, { eventId: "c", group: refused!.fingerprint, lastError: "Refused: order 18 is closed" })
      assert.strictEqual(new TextDecoder().decode(shown!.envelope.payload), '{"id":"c"}')
      assert.strictEqual(shown!.envelope.headers.get("region"), "eu")
      for (const unknown of ["z", "größe", "a ", "x".repeat(300)]) {
        assert.strictEqual(yield* operator.show(unknown), undefined)
      }
    }).pipe(Effect.provide(operated))
  )

  it.effect("OPS-12 plan, apply, receipt: exactly the frozen events are replayed, and the receipt has their fate", () =>
    Effect.gen(function* () {
      yield* five
      const operator = yield* Operator
      const store = yield* Store
      const [refused] = (yield* operator.groups).groups
      const select = { groups: [refused!.fingerprint] }
      const plan = yield* operator.plan({ action: "replay", select, reason: "INC-1204" })
      assert.deepInclude(plan, { count: 2, further: 0, rate: 50, canary: 20, canaryWaitMillis: 60_000, stopAbove: 5 })
      assert.deepStrictEqual(ids(plan), ["a", "c"])
      assert.strictEqual((yield* operator.plan({ action: "replay", select, reason: "INC-1204" })).id, plan.id)
      assert.deepInclude(yield* operator.receipt(plan), { untouched: 2, waiting: 0, closed: false })
      yield* die("late", "Placed", "Refused: order 20 is closed")
      const report = yield* operator.apply(plan)
      assert.deepInclude(report, { state: "done", dealtWith: 2, waiting: 2, untouched: 0, closed: false })
      assert.deepStrictEqual(yield* Effect.forEach(["a", "b", "c", "d", "e", "late"], status), [0, 3, 0, 3, 3, 3])
      yield* store.markDone(["a"])
      yield* store.markRetry("c", 0, "again")
      assert.deepInclude(yield* operator.receipt(plan), { delivered: 1, waiting: 1, retrying: 1, closed: false })
      yield* store.markDead("c", "again")
      assert.deepInclude(yield* operator.receipt(plan), { delivered: 1, deadAgain: 1, waiting: 0, closed: true })
    }).pipe(Effect.provide(operated))
  )

  it.effect("OPS-12 plans by type, aggregate and ids; discarded rows are deleted, and no other", () =>
    Effect.gen(function* () {
      yield* five
      const operator = yield* Operator
      const planned = (select: DeadEvents.Selection) =>
        Effect.map(operator.plan({ action: "discard", select, reason: "tests" }), ids)
      assert.deepStrictEqual(yield* planned({ eventType: "Paid" }), ["d"])
      assert.deepStrictEqual(yield* planned({ aggregateType: "order", aggregateId: "of-e" }), ["e"])
      assert.deepStrictEqual(yield* planned({ eventIds: ["e", "a", "unknown"] }), ["a", "e"])
      assert.deepStrictEqual(yield* planned({ eventIds: ["e", "d"], eventType: "Placed" }), ["e"])
      const plan = yield* operator.plan({ action: "discard", select: { eventIds: ["b", "e"] }, reason: "tests" })
      assert.deepInclude(yield* operator.apply(plan), { state: "done", dealtWith: 2, gone: 2, closed: true })
      assert.deepStrictEqual(yield* Effect.forEach(["a", "b", "c", "d", "e"], status), [3, undefined, 3, 3, undefined])
    }).pipe(Effect.provide(operated))
  )

  it.effect("OPS-12 a plan is stale once one of its events was replayed, discarded, or died again", () =>
    Effect.gen(function* () {
      yield* five
      const operator = yield* Operator
      const store = yield* Store
      const plan = yield* operator.plan(replayAll)
      assert.isTrue(yield* operator.replay("a", "INC-1205"))
      assert.isFalse(yield* operator.replay("a", "INC-1205"))
      assert.isFalse(yield* operator.replay("größe", "INC-1205"))
      yield* store.markDead("a", "again")
      yield* store.deleteTerminal(["b"])
      const stale = yield* Effect.flip(operator.apply(plan))
      assert.deepInclude(stale, { _tag: "DeadEventPlanStale", id: plan.id, count: 5, changed: 2 })
      assert.deepStrictEqual(yield* Effect.forEach(["a", "c", "d", "e"], status), [3, 3, 3, 3])
      assert.deepInclude(yield* operator.apply(yield* operator.plan(replayAll)), { dealtWith: 4, waiting: 4 })
    }).pipe(Effect.provide(operated))
  )

  it.effect(
    "OPS-12 two operators apply one plan at once: each event is replayed once, though it dies again at once",
    () =>
      Effect.gen(function* () {
        yield* five
        const store = yield* Store
        const replays: Array<string> = []
        const { replay, states, ...others } = store.deadEvents!
        const bothHaveChecked = yield* Deferred.make<void>()
        let checks = 0
        const dying: OutboxStore.OutboxStore["Service"] = {
          ...store,
          deadEvents: {
            ...others,
            states: (ids) =>
              Effect.tap(states(ids), () =>
                ++checks >= 2 ? Deferred.succeed(bothHaveChecked, undefined) : Deferred.await(bothHaveChecked)
              ),
            replay: (death) =>
              Effect.tap(replay(death), (done) => {
                if (!done) return Effect.yieldNow
                replays.push(death.eventId)
                return store.markDead(death.eventId, "again")
              })
          }
        }
        const each = Effect.provideService(DeadEventOperator.make(), Store, dying)
        const [one, other] = [yield* each, yield* each]
        const plan = yield* one.plan(replayAll)
        const reports = yield* Effect.all([one.apply(plan), other.apply(plan)], { concurrency: 2 })
        assert.deepStrictEqual(replays.toSorted(), ["a", "b", "c", "d", "e"])
        assert.strictEqual(reports[0].dealtWith + reports[1].dealtWith, 5)
        assert.deepInclude(yield* one.receipt(plan), { deadAgain: 5, untouched: 0 })
      }).pipe(Effect.provide(operated))
  )

  it.effect(
    "OPS-12 events that were delivered and deleted are gone, and a row that died without a time is planned",
    () =>
      Effect.gen(function* () {
        yield* five
        const operator = yield* Operator
        const store = yield* Store
        yield* SqlClient.SqlClient.use((sql) =>
          sql.unsafe("UPDATE outbox_event SET done_at = NULL WHERE event_id = 'a'")
        )
        const plan = yield* operator.plan({ ...replayAll, select: { eventIds: ["a", "b"] } })
        assert.strictEqual((yield* operator.apply(plan)).dealtWith, 2)
        yield* store.markDone(["a", "b"])
        assert.deepInclude(yield* operator.receipt(plan), { gone: 2, delivered: 0, closed: true })
      }).pipe(Effect.provide(operatorOn(db.migrated, { onDone: "delete" })))
  )

  it.effect("OPS-12 a database that refuses is an error of every verb, and no empty answer", () =>
    Effect.gen(function* () {
      yield* five
      const operator = yield* Operator
      const plan = yield* operator.plan(replayAll)
      yield* SqlClient.SqlClient.use((sql) => sql.unsafe("ALTER TABLE outbox_event RENAME TO elsewhere"))
      const verbs: ReadonlyArray<Effect.Effect<unknown, DeadEventOperator.Failure | OutboxError.DeadEventPlanStale>> = [
        operator.groups,
        operator.list(),
        operator.show("a"),
        operator.plan(replayAll),
        operator.apply(plan),
        operator.receipt(plan),
        operator.replay("a", "INC-1204")
      ]
      for (const verb of verbs) assert.strictEqual((yield* Effect.flip(verb))._tag, "OutboxStoreError")
    }).pipe(Effect.provide(operated))
  )
})

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

describe("arguments of DeadEventOperator", () => {
  const refused = (effect: Effect.Effect<unknown, DeadEventOperator.Failure | OutboxError.DeadEventPlanStale>) =>
    Effect.map(Effect.flip(effect), (error) =>
      error._tag === "InvalidOutboxConfig" ? error.issues.map(({ path }) => path) : [error._tag]
    )

  it.effect("OPS-12 a request names everything that no plan takes, before the database is asked", () =>
    Effect.gen(function* () {
      const { plan, list, replay } = yield* Operator
      const all = { all: true } as const
      const wrong = (request: object) => refused(plan(request as DeadEvents.PlanRequest))
      assert.deepStrictEqual(yield* wrong({}), ["action", "select", "reason"])
      assert.deepStrictEqual(yield* wrong({ action: "replay", select: {}, reason: "x" }), ["select"])
      assert.deepStrictEqual(yield* wrong({ action: "toTier", select: all, reason: " " }), ["action", "reason"])
      assert.deepStrictEqual(yield* wrong({ action: "discard", select: all, reason: "x", rate: 5 }), ["rate"])
      assert.deepStrictEqual(yield* wrong({ ...replayAll, rate: 0, cannary: 1 }), ["rate", "cannary"])
      assert.deepStrictEqual(yield* wrong({ ...replayAll, rate: 0, canary: -1, canaryWait: "soon", stopAbove: 101 }), [
        "rate",
        "canary",
        "canaryWait",
        "stopAbove"
      ])
      const select = { groups: [], eventType: "", aggregateId: "\ud800", eventIds: ["größe"], all: false }
      assert.deepStrictEqual(yield* wrong({ ...replayAll, select }), [
        "select.groups",
        "select.eventType",
        "select.aggregateId",
        "select.eventIds[0]",
        "select.all"
      ])
      assert.deepStrictEqual(yield* wrong({ ...replayAll, select: { eventIds: ["a"], evenType: "x" } }), [
        "select.evenType"
      ])
      assert.deepStrictEqual(yield* refused(list({ limit: 501, after: "first" })), ["after", "limit"])
      assert.deepStrictEqual(yield* refused(replay("a", "")), ["reason"])
    }).pipe(Effect.provide(operatorOn(database)))
  )

  it.effect("OPS-12 a plan that was changed, and a plan of another table, are refused", () =>
    Effect.gen(function* () {
      yield* five
      const { plan, apply, receipt } = yield* Operator
      const made = yield* plan({ ...replayAll, select: { eventIds: ["a"] } })
      const changed = { ...made, events: [...made.events, ["b", 0]] as const }
      assert.deepStrictEqual(yield* refused(apply(changed)), ["plan.id"])
      assert.deepStrictEqual(yield* refused(apply({ ...made, rate: 100_000 })), ["plan.id"])
      assert.deepStrictEqual(yield* refused(receipt({ ...made, table: "other" })), ["plan.table"])
      assert.deepStrictEqual(yield* refused(receipt({} as DeadEvents.Plan)), ["plan"])
      assert.strictEqual(yield* status("a"), 3)
    }).pipe(Effect.provide(operatorOn(database)))
  )

  it.effect(
    "OPS-12 a store without the statements of an operator is refused, and a silent database is an error in time",
    () =>
      Effect.gen(function* () {
        const store = yield* Store
        const { deadEvents, ...without } = store
        const make = (service: OutboxStore.OutboxStore["Service"]) =>
          Effect.provideService(DeadEventOperator.make({ statementTimeout: "10 seconds" }), Store, service)
        assert.deepStrictEqual(yield* refused(make(without)), ["store.deadEvents"])
        const silent = yield* make({ ...store, deadEvents: { ...deadEvents!, page: () => Effect.never } })
        const asking = yield* Effect.forkChild(Effect.flip(silent.groups))
        yield* TestClock.adjust("10 seconds")
        const error = yield* Fiber.join(asking)
        assert.strictEqual(error._tag, "OutboxStoreError")
        assert.match(error.message, /read dead events failed: .* did not end within 10s/)
      }).pipe(Effect.provide(operatorOn(database)))
  )
})
