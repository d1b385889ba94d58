/** Dispatcher and poller on SQLite and the virtual clock: the database's time is the test's. */
import { assert, describe, it } from "@effect/vitest"
import {
  DispatcherWriterHook,
  EventEnvelope,
  EventInterceptor,
  EventRetryPolicy,
  EventType,
  InFlightTracker,
  ListenerRegistry,
  MetricsExporter,
  OutboxDispatcher,
  OutboxError,
  OutboxPoller,
  OutboxSchema,
  OutboxStore,
  OutboxWriter,
  TxContext
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Clock, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)
const base = Layer.mergeAll(Layer.orDie(OutboxStore.layer()), TxContext.layer).pipe(Layer.provideMerge(database))

const listen = (listener: ListenerRegistry.EventListener) => ListenerRegistry.layerAll(listener)

const insert = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
  const store = yield* OutboxStore.OutboxStore
  const events = yield* Effect.forEach(ids, (eventId) =>
    EventEnvelope.make({ eventType: eventId, eventId, payload: 1 })
  )
  yield* store.insertNew(events)
  return events
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

const started = Effect.fnUntraced(function* (
  options: Omit<OutboxPoller.PollerOptions, "handler"> & OutboxDispatcher.DispatcherOptions = {}
) {
  let retryScheduled = () => {}
  const dispatcher = yield* OutboxDispatcher.make({ ...options, onRetryScheduled: () => retryScheduled() })
  const poller = yield* OutboxPoller.make({ ...options, handler: OutboxPoller.toDispatcher(dispatcher) })
  retryScheduled = poller.retryScheduled
  return { dispatcher, poller }
})

/** Lets other fibers run, without time passing, until the condition holds or a bound is reached. */
const until = (condition: () => boolean) => Effect.repeat(Effect.yieldNow, { until: condition, times: 20_000 })

/** Lets forked fibers run until they wait for something. */
const settle = TestClock.adjust(1)

describe("OutboxDispatcher", () => {
  it.effect("OUT-D-01 OUT-D-05: defaults are accepted; unbounded and invalid settings are refused, all at once", () =>
    Effect.gen(function* () {
      yield* OutboxDispatcher.make()
      const refused = yield* Effect.flip(
        OutboxDispatcher.make({
          hotQueueCapacity: Number.POSITIVE_INFINITY,
          coldQueueCapacity: 0,
          workerCount: 1.5,
          maxAttempts: 0
        })
      )
      assert.deepStrictEqual(
        refused.issues.map((i) => i.path),
        ["maxAttempts", "workerCount", "hotQueueCapacity", "coldQueueCapacity"]
      )
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(
          listen(() => Effect.void),
          base
        )
      )
    )
  )

  it.effect("OUT-D-02 OUT-B-09: built by hand, events lost on the hot path arrive by the cold path, once each", () => {
    const seen: Array<string> = []
    return Effect.gen(function* () {
      const { dispatcher, poller } = yield* started()
      const [a, b] = yield* insert("a", "b", "c")
      assert.isTrue(dispatcher.enqueueHot(a!))
      assert.isTrue(dispatcher.enqueueHot(b!))
      assert.strictEqual(yield* poller.poll, 3)
      yield* dispatcher.awaitIdle
      assert.sameMembers(seen, ["a", "b", "c"])
      assert.deepStrictEqual(yield* statuses, { a: "DONE 0", b: "DONE 0", c: "DONE 0" })
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(
          listen((e) => Effect.sync(() => seen.push(e.eventId))),
          base
        )
      )
    )
  })

  it.effect("OUT-D-03 OUT-D-16 OUT-P-03 OUT-P-04: full queues refuse events, and these wait in the database", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      yield* Effect.gen(function* () {
        const { dispatcher, poller } = yield* started({ workerCount: 1, coldQueueCapacity: 2, hotQueueCapacity: 1 })
        const events = yield* insert("a", "b", "c", "d", "e", "f")
        yield* poller.poll
        yield* settle
        yield* poller.poll
        assert.strictEqual(dispatcher.inFlight(), 3)
        assert.strictEqual(dispatcher.coldQueueRemainingCapacity(), 0)
        assert.strictEqual(yield* poller.poll, 0)
        assert.isFalse(dispatcher.enqueueCold(events[4]!, 0))
        assert.isTrue(dispatcher.enqueueHot(events[4]!))
        assert.isFalse(dispatcher.enqueueHot(events[5]!))
        yield* Deferred.succeed(gate, undefined)
        yield* dispatcher.awaitIdle
        yield* poller.poll
        yield* dispatcher.awaitIdle
        assert.isTrue(Object.values(yield* statuses).every((s) => s === "DONE 0"))
      }).pipe(Effect.scoped, Effect.provide(listen(() => Deferred.await(gate))))
    }).pipe(Effect.scoped, Effect.provide(base))
  )

  it.effect("OUT-D-04 OUT-D-06: workers take two hot events for one cold one, and neither queue starves", () => {
    const seen: Array<string> = []
    return Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const listener: ListenerRegistry.EventListener = (e) =>
        e.eventId === "first" ? Deferred.await(gate) : Effect.sync(() => seen.push(e.eventId[0]!))
      yield* Effect.gen(function* () {
        const dispatcher = yield* OutboxDispatcher.make({ workerCount: 1 })
        const names = (prefix: string) => Array.from({ length: 12 }, (_, i) => `${prefix}${i}`)
        const [first, ...rest] = yield* insert("first", ...names("h"), ...names("c"))
        dispatcher.enqueueHot(first!)
        yield* settle
        for (const event of rest) {
          if (event.eventId.startsWith("h")) dispatcher.enqueueHot(event)
          else dispatcher.enqueueCold(event, 0)
        }
        yield* Deferred.succeed(gate, undefined)
        yield* dispatcher.awaitIdle
        assert.strictEqual(seen.join(""), `${"hhc".repeat(6)}${"c".repeat(6)}`)
      }).pipe(Effect.scoped, Effect.provide(listen(listener)))
    }).pipe(Effect.scoped, Effect.provide(base))
  })

  it.effect(
    "OUT-D-07 OUT-D-12: interceptors run in order before and in reverse after, get the error, and may fail",
    () => {
      const calls: Array<string> = []
      const named = (name: string): EventInterceptor.EventInterceptor => ({
        beforeDispatch: (e) => Effect.sync(() => void calls.push(`${name} before ${e.eventId}`)),
        afterDispatch: (e, error) =>
          Effect.sync(() => void calls.push(`${name} after ${e.eventId} ${error ? "failed" : "ok"}`))
      })
      const listener: ListenerRegistry.EventListener = (e) => {
        calls.push(`listener ${e.eventId}`)
        return e.eventId === "bad" ? Effect.fail("no") : Effect.void
      }
      return Effect.gen(function* () {
        const dispatcher = yield* OutboxDispatcher.make({
          workerCount: 1,
          interceptors: [
            named("1"),
            named("2"),
            EventInterceptor.before((e) => (e.eventId === "blocked" ? Effect.fail("blocked") : Effect.void)),
            EventInterceptor.after(() => Effect.die("ignored"))
          ]
        })
        for (const event of yield* insert("good", "bad", "blocked")) dispatcher.enqueueHot(event)
        yield* dispatcher.awaitIdle
        assert.deepStrictEqual(calls, [
          ...["1 before good", "2 before good", "listener good", "2 after good ok", "1 after good ok"],
          ...["1 before bad", "2 before bad", "listener bad", "2 after bad failed", "1 after bad failed"],
          ...["1 before blocked", "2 before blocked", "2 after blocked failed", "1 after blocked failed"]
        ])
        assert.deepStrictEqual(yield* statuses, { good: "DONE 0", bad: "RETRY 1", blocked: "RETRY 1" })
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(listen(listener), base)))
    }
  )

  it.effect(
    "OUT-D-08 OUT-D-19: an event is DEAD after ten calls while others are delivered; with maxAttempts 1 it is DEAD at once",
    () => {
      const calls = new Map<string, number>()
      const listener: ListenerRegistry.EventListener = (e) => {
        calls.set(e.eventId, (calls.get(e.eventId) ?? 0) + 1)
        return e.eventId.startsWith("bad") ? Effect.die(undefined) : Effect.void
      }
      return Effect.gen(function* () {
        const { poller } = yield* started()
        yield* poller.start
        yield* insert("bad", "good")
        yield* TestClock.adjust("10 minutes")
        assert.deepStrictEqual(
          [...calls],
          [
            ["bad", 10],
            ["good", 1]
          ]
        )
        assert.deepStrictEqual(yield* statuses, { bad: "DEAD 9", good: "DONE 0" })
        yield* poller.close
        const once = yield* started({ maxAttempts: 1 })
        yield* insert("bad2")
        yield* once.poller.poll
        yield* once.dispatcher.awaitIdle
        assert.strictEqual((yield* statuses).bad2, "DEAD 0")
        assert.strictEqual(calls.get("bad2"), 1)
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(listen(listener), base)))
    }
  )

  it.effect("OUT-D-09: at most workerCount listeners at once", () => {
    let [running, peak] = [0, 0]
    const listener = () =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          running++
          peak = Math.max(peak, running)
        }),
        () => Effect.sleep("1 second"),
        () => Effect.sync(() => void running--)
      )
    return Effect.gen(function* () {
      const { dispatcher, poller } = yield* started({ workerCount: 3 })
      yield* insert(..."abcdefghij")
      yield* poller.poll
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([peak, dispatcher.inFlight()], [3, 0])
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(listen(listener), base)))
  })

  it.effect(
    "OUT-D-10 OUT-D-11: one listener per key; an unroutable event and a poison event are DEAD without a retry",
    () => {
      const seen: Array<string> = []
      const note = (name: string) => () => Effect.sync(() => seen.push(name))
      const registry = ListenerRegistry.layer([
        ListenerRegistry.on("E", note("global")),
        ListenerRegistry.on(EventType.of("order"), EventType.of("E"), note("order")),
        ListenerRegistry.on("P", () => Effect.fail(new OutboxError.PoisonEvent({ reason: "never" })))
      ])
      return Effect.gen(function* () {
        const listeners = yield* ListenerRegistry.ListenerRegistry
        const again = yield* Effect.flip(listeners.register(ListenerRegistry.on("order", "E", note("second"))))
        assert.deepInclude(again, { _tag: "DuplicateListener", key: "order:E" })
        assert.isUndefined(listeners.listenerFor("user", "E"))
        const dispatcher = yield* OutboxDispatcher.make({ workerCount: 1 })
        const store = yield* OutboxStore.OutboxStore
        const events = yield* Effect.forEach(
          [
            ["a", "E"],
            ["b", "E", "order"],
            ["c", "E", "user"],
            ["d", "P"]
          ],
          ([eventId, eventType, aggregateType]) =>
            EventEnvelope.make({
              eventId: eventId!,
              eventType: eventType!,
              payload: 1,
              ...(aggregateType ? { aggregateType } : {})
            })
        )
        yield* store.insertNew(events)
        for (const event of events) dispatcher.enqueueHot(event)
        yield* dispatcher.awaitIdle
        assert.deepStrictEqual(seen, ["global", "order"])
        assert.deepStrictEqual(yield* statuses, { a: "DONE 0", b: "DONE 0", c: "DEAD 0", d: "DEAD 0" })
        assert.include((yield* store.queryDead({}, 1))[0]!.lastError!, "user:E")
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(registry, base)))
    }
  )

  it.effect("OUT-D-13: the tracker takes an id once; after its TTL the id can be taken again", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const forever = InFlightTracker.make({ clock })
      const minute = InFlightTracker.make({ clock, ttl: "1 minute" })
      for (const tracker of [forever, minute]) {
        assert.deepStrictEqual(
          [tracker.tryAcquire("a"), tracker.tryAcquire("a"), tracker.tryAcquire("b")],
          [true, false, true]
        )
        tracker.release("b")
        assert.isTrue(tracker.tryAcquire("b"))
      }
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([forever.tryAcquire("a"), minute.tryAcquire("a")], [false, true])
    })
  )

  it.effect("OUT-D-14: an event in both queues is delivered once, also when it is enqueued during the read", () => {
    const seen: Array<string> = []
    return Effect.gen(function* () {
      const dispatcher = yield* OutboxDispatcher.make()
      const store = yield* OutboxStore.OutboxStore
      const [a] = yield* insert("a")
      yield* dispatcher.whilePolling(
        Effect.gen(function* () {
          const read = yield* store.pollPending({ limit: 10 })
          dispatcher.enqueueHot(a!)
          dispatcher.enqueueCold(a!, 0)
          yield* dispatcher.awaitIdle
          assert.strictEqual((yield* statuses).a, "DONE 0")
          for (const event of OutboxStore.separateUndecodable(read).events)
            assert.isTrue(dispatcher.enqueueCold(event.envelope, 0))
        })
      )
      yield* settle
      assert.deepStrictEqual(seen, ["a"])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(
          listen((e) => Effect.sync(() => seen.push(e.eventId))),
          base
        )
      )
    )
  })

  it("OUT-D-15: backoff is finite and within its limits for every n", () => {
    const policy = EventRetryPolicy.exponential()
    assert.deepStrictEqual([policy(1, 0.5), policy(2, 0.5), policy(3, 0)], [200, 400, 400])
    fc.assert(
      fc.property(
        fc.integer({ min: -5, max: 1_000_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (n, random) => {
          const delay = policy(n, random)
          const exact = 200 * 2 ** (Math.max(n, 1) - 1)
          assert.isTrue(delay <= 60_000 && delay >= Math.min(60_000, exact * 0.5) && delay <= exact * 1.5)
        }
      )
    )
  })

  it.effect("OUT-D-17: closing drains until the limit, then interrupts; unfinished events stay pending", () => {
    const seen: Array<string> = []
    const listener: ListenerRegistry.EventListener = (e) =>
      e.eventId === "hangs"
        ? Effect.never
        : Effect.andThen(
            Effect.sleep("1 second"),
            Effect.sync(() => seen.push(e.eventId))
          )
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const dispatcher = yield* OutboxDispatcher.make({ workerCount: 2 }).pipe(Scope.provide(scope))
      const events = yield* insert("hangs", "a", "b", "c", "d", "e", "f", "g")
      for (const event of events) dispatcher.enqueueHot(event)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* settle
      assert.isFalse(dispatcher.enqueueHot((yield* insert("late"))[0]!))
      yield* TestClock.adjust("5 seconds")
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(closing)
      assert.deepStrictEqual(seen, ["a", "b", "c", "d", "e"].slice(0, seen.length))
      assert.isTrue(seen.length >= 4)
      const after = yield* statuses
      for (const id of seen) assert.strictEqual(after[id], "DONE 0")
      for (const id of ["hangs", "f", "g", "late"]) assert.strictEqual(after[id], "NEW 0")
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(listen(listener), base)))
  })

  it.effect("OUT-D-18: a database failure between two steps neither stops the worker nor repeats the delivery", () => {
    const seen: Array<string> = []
    let failures = 2
    return Effect.gen(function* () {
      const real = yield* OutboxStore.OutboxStore
      const flaky = OutboxStore.OutboxStore.of({
        ...real,
        markDone: (ids, fence) =>
          Effect.suspend(() =>
            failures-- > 0
              ? Effect.fail(
                  new OutboxError.OutboxStoreError({ operation: "mark done", retryable: true, cause: "down" })
                )
              : real.markDone(ids, fence)
          )
      })
      const { dispatcher, poller } = yield* started().pipe(Effect.provideService(OutboxStore.OutboxStore, flaky))
      yield* poller.start
      const [a, b] = yield* insert("a", "b")
      dispatcher.enqueueHot(a!)
      dispatcher.enqueueHot(b!)
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(seen, ["a", "b"])
      assert.deepStrictEqual(yield* statuses, { a: "DONE 0", b: "DONE 0" })
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(
          listen((e) => Effect.sync(() => seen.push(e.eventId))),
          base
        )
      )
    )
  })

  it.effect("a listener fails when it throws, throws undefined, interrupts itself or runs too long", () => {
    const listener: ListenerRegistry.EventListener = (e) => {
      switch (e.eventId) {
        case "throws":
          throw new TypeError("boom")
        case "undefined":
          throw undefined
        case "interrupts":
          return Effect.interrupt
        default:
          return Effect.never
      }
    }
    return Effect.gen(function* () {
      const dispatcher = yield* OutboxDispatcher.make({ listenerTimeout: "3 seconds" })
      for (const event of yield* insert("throws", "undefined", "interrupts", "hangs")) dispatcher.enqueueHot(event)
      yield* TestClock.adjust("3 seconds")
      yield* dispatcher.awaitIdle
      assert.deepStrictEqual(yield* statuses, {
        throws: "RETRY 1",
        undefined: "RETRY 1",
        interrupts: "RETRY 1",
        hangs: "RETRY 1"
      })
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(listen(listener), base)))
  })
})

describe("OutboxPoller", () => {
  it.effect("OUT-P-01 OUT-P-02: fifty rows a cycle, one cycle at a time, not after close", () => {
    const handed: Array<string> = []
    return Effect.gen(function* () {
      const poller = yield* OutboxPoller.make({
        handler: { handle: (e, attempts) => handed.push(`${e.eventId} ${attempts}`) > 0 }
      })
      yield* insert(...Array.from({ length: 60 }, (_, i) => `e${i}`))
      const counts = yield* Effect.all([poller.poll, poller.poll], { concurrency: 2 })
      assert.deepStrictEqual(counts, [50, 10])
      assert.deepStrictEqual(
        handed,
        Array.from({ length: 60 }, (_, i) => `e${i} 0`)
      )
      yield* poller.close
      assert.strictEqual((yield* Effect.flip(poller.start))._tag, "InvalidState")
    }).pipe(Effect.scoped, Effect.provide(base))
  })

  it.effect("an idle poller asks seldom, a busy one quickly, and retries are found when due", () => {
    let queries = 0
    const count = Effect.sync(() => void queries++)
    const delivered: Array<number> = []
    const listener: ListenerRegistry.EventListener = () =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => (delivered.push(now) === 1 ? Effect.fail("once") : Effect.void))
    return Effect.gen(function* () {
      const real = yield* OutboxStore.OutboxStore
      const counted = OutboxStore.OutboxStore.of({
        ...real,
        pollPending: (options) => Effect.andThen(count, real.pollPending(options)),
        nextDue: Effect.andThen(count, real.nextDue)
      })
      const { poller } = yield* started({ retryPolicy: EventRetryPolicy.fixed("700 millis") }).pipe(
        Effect.provideService(OutboxStore.OutboxStore, counted)
      )
      yield* poller.start
      yield* TestClock.adjust("60 seconds")
      assert.isAtMost(queries, 14)
      yield* insert("a")
      poller.wake()
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(delivered.length, 2)
      assert.isTrue(delivered[1]! - delivered[0]! >= 700 && delivered[1]! - delivered[0]! < 800, String(delivered))
      yield* insert(...Array.from({ length: 3000 }, (_, i) => `e${i}`))
      const before = queries
      poller.wake()
      yield* until(() => delivered.length === 3002)
      assert.strictEqual(delivered.length, 3002)
      assert.isAtMost(queries - before, 20)
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(listen(listener), base)))
  })

  it.effect("OUT-P-05: skipRecent leaves young events out", () =>
    Effect.gen(function* () {
      const poller = yield* OutboxPoller.make({ handler: { handle: () => true }, skipRecent: "1 second" })
      yield* insert("a")
      assert.strictEqual(yield* poller.poll, 0)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* poller.poll, 1)
    }).pipe(Effect.scoped, Effect.provide(base))
  )

  it.effect("OUT-P-06: a row with malformed headers is DEAD, and the others are delivered", () => {
    const handed: Array<string> = []
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* insert("a", "broken", "b")
      yield* sql.unsafe(`UPDATE outbox_event SET headers = '{"a":' WHERE event_id = 'broken'`)
      const poller = yield* OutboxPoller.make({ handler: { handle: (e) => handed.push(e.eventId) > 0 } })
      assert.strictEqual(yield* poller.poll, 2)
      assert.deepStrictEqual(handed, ["a", "b"])
      assert.strictEqual((yield* statuses).broken, "DEAD 0")
    }).pipe(Effect.scoped, Effect.provide(base))
  })

  it.effect(
    "OUT-P-07 OUT-S-11 OUT-S-13: claims of two nodes are renewed while a listener runs, and taken over after a crash",
    () => {
      const seen: Array<string> = []
      const slow =
        (node: string): ListenerRegistry.EventListener =>
        (e) =>
          Effect.andThen(
            Effect.sync(() => seen.push(`${node} ${e.eventId}`)),
            Effect.sleep("5 minutes")
          )
      return Effect.gen(function* () {
        const node = (owner: string, scope: Scope.Scope) =>
          started({ claimLocking: { owner, lockTimeout: "1 minute" } }).pipe(
            Effect.provide(listen(slow(owner))),
            Scope.provide(scope)
          )
        const [scopeA, scopeB] = [yield* Scope.make(), yield* Scope.make()]
        const a = yield* node("A", scopeA)
        const b = yield* node("B", scopeB)
        yield* insert("e1", "e2")
        yield* a.poller.start
        yield* b.poller.start
        yield* TestClock.adjust("4 minutes")
        assert.deepStrictEqual(seen, ["A e1", "A e2"])
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(yield* statuses, { e1: "DONE 0", e2: "DONE 0" })
        yield* insert("e3")
        yield* TestClock.adjust("10 seconds")
        const holder = seen.at(-1)!.split(" ")[0]
        const closing = yield* Effect.forkChild(Scope.close(holder === "A" ? scopeA : scopeB, Exit.void))
        yield* TestClock.adjust("20 seconds")
        yield* Fiber.join(closing)
        assert.deepStrictEqual(seen.slice(2).toSorted(), ["A e3", "B e3"])
        yield* Effect.forkChild(Scope.close(holder === "A" ? scopeB : scopeA, Exit.void))
        yield* TestClock.adjust("10 seconds")
      }).pipe(Effect.scoped, Effect.provide(base))
    }
  )

  it.effect("a failing database is logged and polling goes on", () => {
    const handed: Array<string> = []
    let down = true
    return Effect.gen(function* () {
      const real = yield* OutboxStore.OutboxStore
      const flaky = OutboxStore.OutboxStore.of({
        ...real,
        pollPending: (options) =>
          Effect.suspend(() =>
            down
              ? Effect.fail(new OutboxError.OutboxStoreError({ operation: "poll", retryable: true, cause: "down" }))
              : real.pollPending(options)
          )
      })
      const poller = yield* OutboxPoller.make({ handler: { handle: (e) => handed.push(e.eventId) > 0 } }).pipe(
        Effect.provideService(OutboxStore.OutboxStore, flaky)
      )
      yield* insert("a")
      yield* poller.start
      yield* TestClock.adjust("10 seconds")
      down = false
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(handed.slice(0, 1), ["a"])
    }).pipe(Effect.scoped, Effect.provide(base))
  })
})

describe("the hot path", () => {
  it.effect("OUT-W-16 OUT-W-17 OUT-M-02 C29: a full hot queue never fails a write; the poller delivers", () => {
    const seen: Array<string> = []
    const counts = { dropped: 0, hot: 0, cold: 0, done: 0 }
    const exporter: MetricsExporter.MetricsExporter = {
      ...MetricsExporter.noop,
      incrementHotDropped: () => void counts.dropped++,
      incrementHotEnqueued: () => void counts.hot++,
      incrementColdEnqueued: () => void counts.cold++,
      incrementDispatchSuccess: () => void counts.done++
    }
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { dispatcher, poller } = yield* started({ hotQueueCapacity: 1, workerCount: 1 })
      const hook = yield* DispatcherWriterHook.make({ dispatcher })
      const writer = yield* OutboxWriter.make({ hook })
      const five = ["a", "b", "c", "d", "e"].map((eventId) => ({ eventType: "E", eventId, payload: 1 }))
      const ids = yield* sql.withTransaction(writer.writeAll(five))
      assert.deepStrictEqual(ids, ["a", "b", "c", "d", "e"])
      yield* poller.start
      yield* TestClock.adjust("5 seconds")
      assert.sameMembers(seen, [...ids])
      assert.deepStrictEqual(counts, { dropped: 4, hot: 1, cold: 4, done: 5 })
    }).pipe(
      Effect.scoped,
      Effect.provideService(MetricsExporter.Current, exporter),
      Effect.provide(
        Layer.provideMerge(
          listen((e) => Effect.sync(() => seen.push(e.eventId))),
          base
        )
      )
    )
  })
})
