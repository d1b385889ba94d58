/** The work on a plan beside a running outbox, on a virtual clock: canary, rate, and the stop. */
import { assert, it } from "@effect/vitest"
import {
  DeadEventOperator,
  type DeadEvents,
  EventEnvelope,
  ListenerRegistry,
  Outbox,
  OutboxSchema,
  OutboxStore
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

const eventIds = (count: number) => Array.from({ length: count }, (_, index) => `e${String(index).padStart(3, "0")}`)

/** An operator over so many dead events. The listener of a running outbox fails for those that `fails` names. */
const withDead = (count: number, fails?: (eventId: string) => boolean, maxAttempts = 1) => {
  const outbox = Outbox.singleNode({ maxAttempts, interval: "100 millis", batchSize: 1_000 }).pipe(
    Layer.provide(ListenerRegistry.layerAll(({ eventId }) => (fails?.(eventId) ? Effect.fail("down") : Effect.void)))
  )
  const dead = Effect.gen(function* () {
    const store = yield* OutboxStore.OutboxStore
    const events = eventIds(count).map((eventId) => EventEnvelope.make({ eventType: "Placed", eventId, payload: 1 }))
    yield* store.insertNew(yield* Effect.all(events))
    yield* Effect.forEach(eventIds(count), (eventId) => store.markDead(eventId, "boom"))
  })
  const base = Layer.orDie(OutboxStore.layer()).pipe(Layer.provideMerge(database))
  return Layer.orDie(DeadEventOperator.layer()).pipe(
    Layer.provideMerge(fails === undefined ? Layer.empty : Layer.orDie(outbox)),
    Layer.provideMerge(Layer.effectDiscard(Effect.orDie(dead))),
    Layer.provideMerge(base)
  )
}

const request = { action: "replay", select: { all: true }, reason: "INC-1204" } as const

/** The work on a plan of all dead events, which a test sees while it goes on. */
const started = Effect.fnUntraced(function* (settings: Partial<DeadEvents.PlanRequest>) {
  const operator = yield* DeadEventOperator.DeadEventOperator
  yield* pass(1)
  const plan = yield* operator.plan({ ...request, ...settings })
  return { operator, plan, applying: yield* Effect.forkChild(operator.apply(plan)) }
})

it.effect("OPS-12 a replay does its canary, waits for its fate, and then keeps its rate", () =>
  Effect.gen(function* () {
    const { operator, plan, applying } = yield* started({ canary: 5, rate: 10 })
    const replayed = Effect.map(operator.receipt(plan), ({ count, untouched }) => count - untouched)
    yield* pass(0.1)
    assert.strictEqual(yield* replayed, 5)
    yield* pass(2)
    assert.isTrue((yield* replayed) >= 15 && (yield* replayed) <= 25, String(yield* replayed))
    yield* pass(3)
    assert.deepInclude(yield* Fiber.join(applying), { state: "done", dealtWith: 40 })
    yield* pass(1)
    assert.deepInclude(yield* operator.receipt(plan), { delivered: 40, closed: true })
  }).pipe(Effect.provide(withDead(40, () => false)))
)

it.effect("OPS-12 a replay stops itself when its canary dies again, and the rest is untouched", () =>
  Effect.gen(function* () {
    const { operator, applying } = yield* started({ canary: 10 })
    yield* pass(5)
    const report = yield* Fiber.join(applying)
    assert.deepInclude(report, { state: "stopped", dealtWith: 10, deadAgain: 2, delivered: 8, untouched: 30 })
    assert.match(report.stateReason!, /^2 of 10 events with an outcome failed again, more than 5 %$/)
    const unstoppable = yield* operator.plan({ ...request, canary: 10, stopAbove: 100, rate: 1_000 })
    const again = yield* Effect.forkChild(operator.apply(unstoppable))
    yield* pass(5)
    assert.deepInclude(yield* Fiber.join(again), { state: "done", dealtWith: 32 })
  }).pipe(Effect.provide(withDead(40, (eventId) => eventId === "e003" || eventId === "e007")))
)

it.effect("OPS-12 events that fail and are retried count against the canary, long before they die", () =>
  Effect.gen(function* () {
    const { applying } = yield* started({ canary: 10 })
    yield* pass(5)
    assert.deepInclude(yield* Fiber.join(applying), { state: "stopped", dealtWith: 10, untouched: 20, retrying: 10 })
  }).pipe(Effect.provide(withDead(30, () => true, 100)))
)

it.effect("OPS-12 without a canary the share of failures stops a replay from 20 outcomes on", () =>
  Effect.gen(function* () {
    const { applying } = yield* started({ canary: 0, rate: 10 })
    yield* pass(10)
    const report = yield* Fiber.join(applying)
    assert.strictEqual(report.state, "stopped")
    assert.isTrue(report.deadAgain >= 20 && report.untouched >= 50, JSON.stringify(report))
  }).pipe(Effect.provide(withDead(100, () => true)))
)

it.effect("OPS-12 where no outbox delivers the canary, the replay stops after its wait and says so", () =>
  Effect.gen(function* () {
    const { applying } = yield* started({ canary: 3, canaryWait: "15 seconds" })
    yield* pass(14)
    assert.strictEqual(applying.pollUnsafe(), undefined)
    yield* pass(2)
    const report = yield* Fiber.join(applying)
    assert.deepInclude(report, { state: "stopped", dealtWith: 3, waiting: 3, untouched: 7, closed: false })
    assert.match(report.stateReason!, /^none of the 3 replayed events was delivered or failed within 15000 ms/)
  }).pipe(Effect.provide(withDead(10)))
)
