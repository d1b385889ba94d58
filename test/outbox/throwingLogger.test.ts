/**
 * Ruling 86: a logger that throws, as one does whose disk is full, loses its line and nothing else. No fiber of the outbox ends, no event stays in memory, and health shows
 * the logger. The same holds for a store of the user's that throws, and for everything else that dies while a failure is dealt with.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  ListenerRegistry,
  OrderedRelay,
  Outbox,
  OutboxDispatcher,
  OutboxError,
  OutboxHealth,
  OutboxPoller,
  OutboxSchema,
  OutboxStore,
  PurgeScheduler,
  TxContext
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer, Logger, Random } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)
const stored = Layer.provideMerge(Layer.mergeAll(Layer.orDie(OutboxStore.layer()), TxContext.layer), database)

const rows = SqlClient.SqlClient.use((sql) =>
  sql.unsafe<{ event_type: string; status: number; attempts: number }>(
    "SELECT event_type, status, attempts FROM outbox_event ORDER BY seq"
  )
)

const statuses = Effect.map(rows, (all) =>
  all.map(({ event_type, status }) => `${event_type} ${["NEW", "DONE", "RETRY", "DEAD"][status]}`)
)

const events = (types: ReadonlyArray<string>) =>
  types.map((eventType, i) => ({ eventType, aggregateType: "a", aggregateId: `${eventType} ${i}`, payload: 1 }))

const write = (types: ReadonlyArray<string>) => TxContext.withTransaction(Outbox.writeAll(events(types)))

const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

/** A logger whose disk may be full, and the lines that it has written. */
const disk = () => {
  const state = { isFull: false, lines: [] as Array<string> }
  const logger = Logger.make(({ message }) => {
    if (state.isFull) throw new Error("ENOSPC: no space left on device, write")
    state.lines.push(String(message))
  })
  return { state, layer: Logger.layer([logger]) }
}

const problems = Effect.map(
  OutboxHealth.OutboxHealth.use((health) => health.check),
  (report) => report.problems.map(({ source, name }) => `${source} ${name}`)
)

const bad = Array.from({ length: 6 }, () => "bad")
const good = Array.from({ length: 10 }, () => "good")

const listenersOf = (seen: Array<string>) =>
  ListenerRegistry.layerAll(({ eventType }) =>
    eventType === "good" ? Effect.sync(() => seen.push(eventType)) : Effect.fail("down")
  )

const common = { interval: "100 millis" } as const
const retries = { ...common, maxAttempts: 2, retryPolicy: () => 20 } as const

describe("a logger that throws", () => {
  for (const [shape, outbox] of [
    ["singleNode", Outbox.singleNode(retries)],
    ["multiNode", Outbox.multiNode({ ...retries, claimLocking: { lockTimeout: "5 minutes" } })],
    ["ordered", Outbox.ordered(common)],
    ["orderedNodes", Outbox.orderedNodes(retries)],
    ["pipelined", Outbox.orderedNodes({ ...retries, pipelining: 10 })]
  ] as const) {
    it.effect(`ruling 86, ${shape}: failed events are decided, later ones are delivered, and no fiber dies`, () => {
      const seen: Array<string> = []
      const { state, layer } = disk()
      return Effect.gen(function* () {
        state.isFull = true
        yield* write(bad)
        yield* pass(3)
        assert.deepStrictEqual(
          yield* statuses,
          bad.map((type) => `${type} DEAD`)
        )
        state.isFull = false
        yield* write(good)
        yield* pass(1)
        assert.deepStrictEqual(seen, good)
        assert.deepStrictEqual(yield* problems, ["listener a:bad", "function logger"])
      }).pipe(
        Effect.provide(
          outbox.pipe(Layer.provide(listenersOf(seen)), Layer.provideMerge(database), Layer.provideMerge(layer))
        )
      )
    })
  }

  it.effect("ruling 86: a hook that fails then does not fail its write", () => {
    const { state, layer } = disk()
    const hook = { afterWrite: () => Effect.fail("no"), afterCommit: () => Effect.fail("no") }
    return Effect.gen(function* () {
      state.isFull = true
      assert.lengthOf(yield* write(["good"]), 1)
      assert.lengthOf(yield* rows, 1)
    }).pipe(
      Effect.provide(
        Outbox.singleNode({ hook }).pipe(
          Layer.provide(listenersOf([])),
          Layer.provideMerge(database),
          Layer.provideMerge(layer)
        )
      )
    )
  })

  it.effect("ruling 86: a purge that fails then comes again after its interval", () => {
    const { state, layer } = disk()
    let calls = 0
    const purger = () =>
      Effect.suspend(() => {
        calls++
        return Effect.fail(new OutboxError.OutboxStoreError({ operation: "purge", retryable: true, cause: "down" }))
      })
    return Effect.gen(function* () {
      state.isFull = true
      const scheduler = yield* PurgeScheduler.make({ purger, interval: "1 minute" })
      yield* scheduler.start
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(calls, 6)
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(stored, layer)))
  })
})

/** Each dies between a failed delivery and its mark. */
const dying: Readonly<
  Record<
    string,
    <A, E, R>(
      effect: Effect.Effect<A, E, R>,
      isBroken: () => boolean
    ) => Effect.Effect<A, E, R | OutboxStore.OutboxStore>
  >
> = {
  "a store that throws": (effect, isBroken) =>
    Effect.flatMap(OutboxStore.OutboxStore, (store) =>
      Effect.provideService(effect, OutboxStore.OutboxStore, {
        ...store,
        markRetry: (...args) => {
          if (isBroken()) throw new Error("a store of my own")
          return store.markRetry(...args)
        }
      })
    ),
  "a store that returns no Effect": (effect, isBroken) =>
    Effect.flatMap(OutboxStore.OutboxStore, (store) =>
      Effect.provideService(effect, OutboxStore.OutboxStore, {
        ...store,
        markRetry: (...args) => (isBroken() ? (undefined as never) : store.markRetry(...args))
      })
    ),
  "a source of random numbers that throws": (effect, isBroken) =>
    Effect.provideService(effect, Random.Random, {
      nextIntUnsafe: () => 1,
      nextDoubleUnsafe: () => {
        if (isBroken()) throw new Error("no entropy")
        return 0.5
      }
    })
}

describe("something else that dies while a failure is dealt with", () => {
  for (const [title, within] of Object.entries(dying)) {
    for (const [kind, pipelining] of [
      ["dispatcher", undefined],
      ["relay", 1],
      ["pipelined relay", 10]
    ] as const) {
      it.effect(`ruling 86, ${kind}: ${title} keeps no event, and ends no worker`, () => {
        const { layer } = disk()
        const seen: Array<string> = []
        let isBroken = true
        const listener: ListenerRegistry.EventListener = ({ eventType }) => {
          seen.push(eventType)
          return isBroken && eventType === "bad" ? Effect.fail("down") : Effect.void
        }
        const opened = Effect.gen(function* () {
          if (pipelining !== undefined) {
            const relay = yield* OrderedRelay.make({ ...common, pipelining })
            return relay.inFlight
          }
          const dispatcher = yield* OutboxDispatcher.make({ workerCount: 1 })
          const poller = yield* OutboxPoller.make({ ...common, handler: OutboxPoller.toDispatcher(dispatcher) })
          yield* poller.start
          return dispatcher.inFlight
        })
        return Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const one = events(["bad", "behind"]).map((event) => ({ ...event, aggregateId: "1" }))
          const inFlight = yield* within(opened, () => isBroken)
          yield* sql.withTransaction(Outbox.writeAll([...one, ...events(["good"])]))
          yield* pass(3)
          assert.include(seen, "good")
          assert.isAbove(seen.filter((type) => type === "bad").length, 1)
          isBroken = false
          yield* pass(3)
          assert.deepStrictEqual(yield* statuses, ["bad DONE", "behind DONE", "good DONE"])
          assert.strictEqual(inFlight(), 0)
          if (pipelining === 1) assert.strictEqual(seen.lastIndexOf("bad"), seen.indexOf("behind") - 1)
        }).pipe(
          Effect.scoped,
          Effect.provide(
            Layer.mergeAll(Outbox.writerOnly(), ListenerRegistry.layerAll(listener)).pipe(
              Layer.provideMerge(stored),
              Layer.provideMerge(layer)
            )
          )
        )
      })
    }
  }
})
