/**
 * Ruling 86: a function of the user's that never ends, or that resists its interruption, holds neither a worker nor the close of an outbox beyond its limit.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  EventEnvelope,
  ListenerRegistry,
  OrderedRelay,
  Outbox,
  OutboxDispatcher,
  OutboxHealth,
  OutboxPoller,
  OutboxSchema,
  OutboxStore,
  PurgeScheduler,
  TxContext
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { type Context, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

type Options = Pick<Outbox.CommonOptions, "interceptors" | "listenerTimeout">

const common = { interval: "100 millis" } as const
const retries = { ...common, maxAttempts: 2, retryPolicy: () => 20 } as const
const shapes = {
  singleNode: (more: Options) => Outbox.singleNode({ ...retries, ...more }),
  multiNode: (more: Options) => Outbox.multiNode({ ...retries, ...more, claimLocking: { lockTimeout: "5 minutes" } }),
  ordered: (more: Options) => Outbox.ordered({ ...common, ...more }),
  orderedNodes: (more: Options) => Outbox.orderedNodes({ ...retries, ...more }),
  pipelined: (more: Options) => Outbox.orderedNodes({ ...retries, ...more, pipelining: 10 })
}

const rows = SqlClient.SqlClient.use((sql) =>
  sql.unsafe<{ event_type: string; status: number; last_error: string | null; locked_by: string | null }>(
    "SELECT event_type, status, last_error, locked_by FROM outbox_event ORDER BY seq"
  )
)

const write = (types: ReadonlyArray<string>) =>
  TxContext.withTransaction(
    Outbox.writeAll(
      types.map((eventType, i) => ({ eventType, aggregateType: "a", aggregateId: `${eventType} ${i}`, payload: 1 }))
    )
  )

const bad = Array.from({ length: 4 }, () => "bad")
const good = Array.from({ length: 10 }, () => "good")

const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

/** An outbox in a scope of its own, with the events that were delivered and the lines of the log. */
const opened = Effect.fnUntraced(function* <P, E>(
  outbox: Layer.Layer<P, E, SqlClient.SqlClient | ListenerRegistry.ListenerRegistry>,
  listener: (eventType: string) => Effect.Effect<unknown, unknown>
) {
  const seen: Array<string> = []
  const lines: Array<string> = []
  const scope = yield* Scope.make()
  const layer = outbox.pipe(
    Layer.provide(
      ListenerRegistry.layerAll(({ eventType }) =>
        eventType === "good" ? Effect.sync(() => seen.push(eventType)) : listener(eventType)
      )
    ),
    Layer.provideMerge(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]))
  )
  const context: Context.Context<P> = yield* Layer.buildWithScope(layer, scope)
  const run = <A, E2, R>(effect: Effect.Effect<A, E2, R>) => Effect.provideContext(effect, context)
  return { seen, lines, run, scope }
})

type Environment = OutboxStore.OutboxStore | ListenerRegistry.ListenerRegistry | SqlClient.SqlClient

const stubborn = Effect.uninterruptible(Effect.never)
const never = Effect.never

const onBad = (hook: Effect.Effect<never>) => (event: { readonly eventType: string }) =>
  event.eventType === "bad" ? hook : Effect.void

interface Case {
  readonly listener: Effect.Effect<unknown>
  readonly interceptors?: Outbox.CommonOptions["interceptors"]
  /** A part of a line of the log. */
  readonly says: string
  /** Whether the delivery has failed. */
  readonly fails: boolean
}

const cases: Readonly<Record<string, Case>> = {
  "a listener that never ends": { listener: never, says: "listener a:bad did not end within 300ms", fails: true },
  "a listener that resists": { listener: stubborn, says: "listener a:bad resists its interruption", fails: true },
  "a beforeDispatch that never ends": {
    listener: Effect.void,
    interceptors: [{ beforeDispatch: onBad(never) }],
    says: "beforeDispatch did not end within 300ms",
    fails: true
  },
  "an afterDispatch that never ends": {
    listener: Effect.void,
    interceptors: [{ afterDispatch: onBad(never) }],
    says: "afterDispatch did not end within 300ms",
    fails: false
  },
  "an afterDispatch that resists": {
    listener: Effect.void,
    interceptors: [{ afterDispatch: onBad(stubborn) }],
    says: "afterDispatch resists its interruption",
    fails: false
  }
}

describe("under a listenerTimeout", () => {
  for (const [shape, outbox] of Object.entries(shapes)) {
    for (const [title, { listener, interceptors = [], says, fails }] of Object.entries(cases)) {
      it.effect(`ruling 86, ${shape}: ${title} holds no worker, and not the close`, () =>
        Effect.gen(function* () {
          const { seen, lines, run, scope } = yield* opened(
            outbox({ listenerTimeout: "300 millis", interceptors }),
            () => listener
          )
          yield* run(write([...bad, ...good]))
          yield* pass(20)
          assert.deepStrictEqual(seen, good)
          for (const { event_type, status, last_error } of yield* rows) {
            assert.strictEqual(status, event_type === "bad" && fails ? 3 : 1, event_type)
            if (event_type === "bad" && fails) assert.include(last_error ?? "", "did not end within 300ms")
          }
          assert.isTrue(
            lines.some((line) => line.includes(says)),
            lines.join("\n")
          )
          const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
          yield* pass(1)
          assert.isDefined(closing.pollUnsafe())
        }).pipe(Effect.provide(database))
      )
    }
  }
})

describe("without a listenerTimeout", () => {
  for (const [shape, outbox] of Object.entries(shapes)) {
    it.effect(
      `ruling 86, ${shape}: closing leaves a worker behind whose listener resists, and its event stays pending`,
      () =>
        Effect.gen(function* () {
          let isLate = false
          const late = Effect.uninterruptible(Effect.sleep("1 minute"))
          const { lines, run, scope } = yield* opened(outbox({}), () =>
            Effect.andThen(
              late,
              Effect.sync(() => {
                isLate = true
              })
            )
          )
          yield* run(write(["bad"]))
          yield* pass(2)
          const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
          yield* pass(5)
          assert.isUndefined(closing.pollUnsafe(), "the drain")
          yield* pass(3)
          assert.isDefined(closing.pollUnsafe())
          assert.isTrue(
            lines.some((line) => /^outbox: fiber 'worker \d' resists its interruption/.test(line)),
            lines.join("\n")
          )
          // The listener ends when nobody waits any more: it changes nothing.
          yield* pass(60)
          assert.isFalse(isLate)
          assert.deepStrictEqual(
            (yield* rows).map(({ status, locked_by }) => [status, locked_by]),
            [[0, null]]
          )
        }).pipe(Effect.provide(database))
    )
  }
})

describe("beside the deliveries", () => {
  it.effect(
    "ruling 86: an archive that never ends, or resists, fails its purge after 10 minutes; health shows it, and the next run works",
    () =>
      Effect.gen(function* () {
        const answers = [never, stubborn, Effect.void]
        let calls = 0
        const { lines, run } = yield* opened(Outbox.writerOnly(), () => Effect.void)
        const ids = yield* run(write(good))
        yield* run(
          Effect.gen(function* () {
            const store = yield* OutboxStore.OutboxStore
            yield* store.markDone(ids)
            yield* TestClock.adjust("8 days")
            const purger = PurgeScheduler.archiving(store, () => answers[Math.min(calls++, 2)]!)
            const scheduler = yield* PurgeScheduler.make({ purger })
            yield* scheduler.start
            const problems = Effect.map(
              OutboxHealth.OutboxHealth.use((health) => health.check),
              (report) => report.problems.map(({ source, name, lastError }) => `${source} ${name}: ${lastError}`)
            )
            yield* TestClock.adjust("59 seconds")
            assert.deepStrictEqual(yield* problems, [])
            yield* TestClock.adjust("1 second")
            assert.deepStrictEqual(yield* problems, ["function purger: has not ended for a minute"])
            yield* TestClock.adjust("8 minutes")
            assert.strictEqual(calls, 1)
            yield* pass(70)
            assert.deepStrictEqual(yield* problems, [
              "function purger: FunctionTimedOut: purger did not end within 10m and was interrupted"
            ])
            assert.isTrue(lines.some((line) => line.includes("purge failed")))
            yield* TestClock.adjust("1 hour")
            yield* TestClock.adjust("11 minutes")
            assert.strictEqual(calls, 2)
            assert.isTrue(lines.some((line) => line.startsWith("purger resists its interruption")))
            assert.lengthOf(yield* rows, good.length)
            yield* TestClock.adjust("1 hour")
            assert.lengthOf(yield* rows, 0)
            assert.deepStrictEqual(yield* problems, [])
          })
        )
      }).pipe(Effect.scoped, Effect.provide(database))
  )

  it.effect("ruling 86: closing a purge whose purger resists takes a moment", () =>
    Effect.gen(function* () {
      const scheduler = yield* PurgeScheduler.make({ purger: () => stubborn })
      yield* scheduler.start
      yield* pass(1)
      const closing = yield* Effect.forkChild(scheduler.close)
      yield* pass(3)
      assert.isDefined(closing.pollUnsafe())
    }).pipe(Effect.scoped)
  )

  for (const [title, hook] of [
    ["never ends", never],
    ["resists", stubborn]
  ] as const) {
    it.effect(
      `ruling 86: an afterCommit that ${title} holds its writer for 30 seconds, and the hot path delivers all the same`,
      () =>
        Effect.gen(function* () {
          const { seen, lines, run } = yield* opened(
            Outbox.singleNode({ interval: "1 hour", hook: { afterCommit: () => hook } }),
            () => Effect.void
          )
          const writing = yield* Effect.forkChild(run(write(good)))
          yield* pass(29)
          assert.isUndefined(writing.pollUnsafe())
          yield* pass(3)
          assert.lengthOf(yield* Fiber.join(writing), good.length)
          assert.deepStrictEqual(seen, good)
          assert.isTrue(lines.some((line) => line.includes("afterCommit hook did not end within 30s")))
        }).pipe(Effect.provide(database))
    )
  }

  it.effect("ruling 86: an afterRollback that never ends holds its writer for 30 seconds", () =>
    Effect.gen(function* () {
      const { run } = yield* opened(Outbox.singleNode({ hook: { afterRollback: () => never } }), () => Effect.void)
      const writing = yield* Effect.forkChild(
        run(TxContext.withTransaction(Effect.andThen(Outbox.writeJson("good", "1"), Effect.fail("rolled back"))))
      )
      yield* pass(31)
      assert.strictEqual(yield* Effect.flip(Fiber.join(writing)), "rolled back")
    }).pipe(Effect.provide(database))
  )

  it.effect("ruling 86: a whilePolling of the user's that resists holds the close of its poller for 5 seconds", () =>
    Effect.gen(function* () {
      const poller = yield* OutboxPoller.make({ handler: { handle: () => true, whilePolling: () => stubborn } })
      yield* poller.start
      yield* pass(1)
      const closing = yield* Effect.forkChild(poller.close)
      yield* pass(6)
      assert.isDefined(closing.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Layer.orDie(OutboxStore.layer()), database)))
  )

  it.effect("ruling 86: a database that does not answer keeps neither a dispatcher nor a relay open", () =>
    Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      const silent = { ...store, markDone: () => stubborn, releaseClaims: () => stubborn, renewClaims: () => stubborn }
      const events = yield* Effect.forEach(["a", "b"], (eventId) =>
        EventEnvelope.make({ eventType: "good", eventId, payload: 1 })
      )
      yield* store.insertNew(events)
      const claimLocking = { owner: "node", lockTimeout: "1 minute" } as const
      const parts: ReadonlyArray<Effect.Effect<() => number, unknown, Scope.Scope | Environment>> = [
        Effect.map(OutboxDispatcher.make({ claimLocking }), (dispatcher) => {
          for (const event of events) dispatcher.enqueueHot(event)
          return dispatcher.inFlight
        }),
        Effect.map(OrderedRelay.make({ interval: "100 millis" }), (relay) => relay.inFlight)
      ]
      for (const part of parts) {
        const scope = yield* Scope.make()
        const inFlight = yield* Scope.provide(Effect.provideService(part, OutboxStore.OutboxStore, silent), scope)
        yield* pass(25)
        assert.strictEqual(inFlight(), 2)
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* pass(20)
        assert.isDefined(closing.pollUnsafe())
      }
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          Layer.orDie(OutboxStore.layer()),
          ListenerRegistry.layerAll(() => Effect.void)
        ).pipe(Layer.provideMerge(database))
      )
    )
  )
})
