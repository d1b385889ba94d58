/** Each service and strategy of the outbox in a version of the user's own: what the outbox does then, and what it asks of it. */
import { assert, describe, it } from "@effect/vitest"
import {
  EventEnvelope,
  type EventInterceptor,
  type InFlightTracker,
  type JsonCodec,
  ListenerRegistry,
  MetricsExporter,
  OutboxDispatcher,
  OutboxPoller,
  OutboxSchema,
  OutboxStore,
  OutboxWriter,
  PurgeScheduler,
  TxContext,
  type WriterHook
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)
const base = Layer.mergeAll(Layer.orDie(OutboxStore.layer()), TxContext.layer).pipe(Layer.provideMerge(database))

const rows = SqlClient.SqlClient.use((sql) =>
  sql.unsafe<{ event_id: string; status: number; headers: string | null }>(
    "SELECT event_id, status, headers FROM outbox_event ORDER BY seq"
  )
)

const event = (eventId: string, headers?: ReadonlyMap<string, string>) => ({
  eventType: "Placed",
  eventId,
  payload: 1,
  ...(headers === undefined ? {} : { headers })
})

/** Notes which operations are called, and passes them on. */
const noting = (
  store: OutboxStore.OutboxStore["Service"],
  notes: Array<string>
): OutboxStore.OutboxStore["Service"] => ({
  ...store,
  insertStatements: (...args) => {
    notes.push("insertStatements")
    return store.insertStatements(...args)
  },
  markDone: (...args) => {
    notes.push("markDone")
    return store.markDone(...args)
  },
  pollPending: (options) => {
    notes.push("pollPending")
    return store.pollPending(options)
  }
})

describe("services of the outbox", () => {
  it.effect("EXT-05 a custom TxContext decides where a write goes and when it is committed", () => {
    const statements: Array<string> = []
    const atCommit: Array<Effect.Effect<void>> = []
    const committed: Array<string> = []
    const own = TxContext.TxContext.of({
      isTransactionActive: Effect.succeed(true),
      currentConnection: Effect.succeed((text) => Effect.sync(() => void statements.push(text))),
      afterCommit: (effect) => Effect.sync(() => void atCommit.push(effect)),
      afterRollback: () => Effect.void
    })
    const hook: WriterHook.WriterHook = {
      afterCommit: (events) => Effect.sync(() => void committed.push(...events.map(({ eventId }) => eventId)))
    }
    return Effect.gen(function* () {
      const writer = yield* OutboxWriter.make({ hook })
      yield* writer.writeAll([event("a")])
      assert.strictEqual(statements.length, 1)
      assert.match(statements[0]!, /^INSERT INTO/i)
      assert.deepStrictEqual(yield* rows, [])
      assert.deepStrictEqual(committed, [])
      yield* Effect.all(atCommit)
      assert.deepStrictEqual(committed, ["a"])
    }).pipe(Effect.provideService(TxContext.TxContext, own), Effect.provide(base))
  })

  it.effect("EXT-05 writer, poller and dispatcher use a custom OutboxStore and a custom MetricsExporter", () => {
    const notes: Array<string> = []
    const counts = { cold: 0, done: 0 }
    const exporter: MetricsExporter.MetricsExporter = {
      ...MetricsExporter.noop,
      incrementColdEnqueued: () => void counts.cold++,
      incrementDispatchSuccess: () => void counts.done++
    }
    return Effect.gen(function* () {
      const store = noting(yield* OutboxStore.OutboxStore, notes)
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* OutboxWriter.make()
        yield* sql.withTransaction(writer.writeAll([event("a"), event("b")]))
        const dispatcher = yield* OutboxDispatcher.make()
        const poller = yield* OutboxPoller.make({ handler: OutboxPoller.toDispatcher(dispatcher) })
        assert.strictEqual(yield* poller.poll, 2)
        yield* TestClock.adjust("1 second")
      }).pipe(Effect.scoped, Effect.provideService(OutboxStore.OutboxStore, store))
      assert.deepStrictEqual(Array.from(new Set(notes)), ["insertStatements", "pollPending", "markDone"])
      assert.deepStrictEqual(counts, { cold: 2, done: 2 })
      assert.deepStrictEqual(
        (yield* rows).map(({ status }) => status),
        [1, 1]
      )
    }).pipe(
      Effect.provideService(MetricsExporter.Current, exporter),
      Effect.provide(
        Layer.provideMerge(
          ListenerRegistry.layerAll(() => Effect.void),
          base
        )
      )
    )
  })

  it.effect("EXT-05 a custom EventPurger decides which rows to delete", () => {
    const asked: Array<number> = []
    return Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      yield* store.insertNew(yield* Effect.forEach(["a", "b"], (id) => EventEnvelope.make(event(id))))
      const scheduler = yield* PurgeScheduler.make({
        batchSize: 10,
        purger: (_, limit) =>
          Effect.andThen(
            Effect.sync(() => asked.push(limit)),
            Effect.andThen(store.markDone(["a"]), store.deleteTerminal(["a"]))
          )
      })
      assert.strictEqual(yield* scheduler.runOnce, 1)
      assert.deepStrictEqual(asked, [10])
      assert.deepStrictEqual(
        (yield* rows).map(({ event_id }) => event_id),
        ["b"]
      )
    }).pipe(Effect.scoped, Effect.provide(base))
  })

  it.effect("EXT-05 connections come from the SqlClient that the program provides", () => {
    const statements: Array<string> = []
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const own = new Proxy(sql, {
        get: (target, key, receiver) =>
          key === "unsafe"
            ? (...args: Parameters<typeof sql.unsafe>) => {
                statements.push(args[0])
                return sql.unsafe(...args)
              }
            : Reflect.get(target, key, receiver)
      })
      const store = yield* Effect.provideService(OutboxStore.make(), SqlClient.SqlClient, own)
      yield* store.insertNew([yield* EventEnvelope.make(event("a"))])
      assert.isTrue(statements.some((text) => /^INSERT INTO/i.test(text)))
      assert.strictEqual((yield* rows).length, 1)
    }).pipe(Effect.provide(database))
  })
})

describe("strategies of the outbox", () => {
  it.effect("EXT-06 a custom JsonCodec writes and reads headers", () => {
    const lines: JsonCodec.JsonCodec = {
      toJson: (headers) => (headers === null ? null : JSON.stringify(Array.from(headers))),
      parseObject: (json) => Result.succeed(new Map(json === null ? [] : JSON.parse(json)))
    }
    return Effect.gen(function* () {
      const store = yield* OutboxStore.make({ codec: lines })
      yield* store.insertNew([yield* EventEnvelope.make(event("a", new Map([["region", "eu"]])))])
      assert.deepStrictEqual(
        (yield* rows).map(({ headers }) => headers),
        ['[["region","eu"]]']
      )
      const { events } = OutboxStore.separateUndecodable(yield* store.pollPending({ limit: 1 }))
      assert.strictEqual(events[0]!.envelope.headers.get("region"), "eu")
    }).pipe(Effect.provide(database))
  })

  it.effect(
    "EXT-06 registry, listener, interceptor, retry policy, tracker, hook and poller handler can be replaced",
    () => {
      const notes: Array<string> = []
      const marks = new Set<string>()
      let failures = 1
      const registry = ListenerRegistry.ListenerRegistry.of({
        register: () => Effect.void,
        listenerFor: (_, eventType) =>
          eventType === "Placed"
            ? ({ eventId }) => {
                notes.push(`listener ${eventId}`)
                return failures-- > 0 ? Effect.fail("down") : Effect.void
              }
            : undefined
      })
      const tracker: InFlightTracker.InFlightTracker = {
        tryAcquire: (id) => {
          if (marks.has(id)) return false
          notes.push(`tracked ${id}`)
          marks.add(id)
          return true
        },
        release: (id) => void marks.delete(id)
      }
      const interceptor: EventInterceptor.EventInterceptor = {
        beforeDispatch: ({ eventId }) => Effect.sync(() => void notes.push(`before ${eventId}`)),
        afterDispatch: ({ eventId }, error) =>
          Effect.sync(() => void notes.push(`after ${eventId} ${error === undefined ? "done" : "failed"}`))
      }
      const hook: WriterHook.WriterHook = {
        beforeWrite: (events) => Effect.succeed(events.filter(({ eventId }) => eventId !== "unwanted"))
      }
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* OutboxWriter.make({ hook })
        yield* sql.withTransaction(writer.writeAll([event("a"), event("unwanted")]))
        const dispatcher = yield* OutboxDispatcher.make({
          interceptors: [interceptor],
          inFlightTracker: tracker,
          retryPolicy: (attempts) => attempts * 90_000
        })
        const poller = yield* OutboxPoller.make({
          handler: {
            handle: (envelope, attempts, rowAddress) => {
              notes.push(`polled ${envelope.eventId} ${attempts}`)
              return dispatcher.enqueueCold(envelope, attempts, rowAddress)
            }
          }
        })
        const delivery = (attempts: number, end: string) => [
          `polled a ${attempts}`,
          "tracked a",
          "before a",
          "listener a",
          `after a ${end}`
        ]
        yield* poller.poll
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(notes.splice(0), delivery(0, "failed"))
        yield* TestClock.adjust("88 seconds")
        assert.strictEqual(yield* poller.poll, 0)
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* poller.poll, 1)
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(notes, delivery(1, "done"))
        assert.strictEqual(marks.size, 0)
        assert.deepStrictEqual(
          (yield* rows).map(({ event_id, status }) => `${event_id} ${status}`),
          ["a 1"]
        )
      }).pipe(Effect.scoped, Effect.provideService(ListenerRegistry.ListenerRegistry, registry), Effect.provide(base))
    }
  )
})
