/** A database whose answer to a mark comes late: the row is free, due and claimed again before the process hears that it is marked. */
import { assert, describe, it } from "@effect/vitest"
import { ListenerRegistry, OutboxDispatcher, OutboxPoller, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { insert } from "./processes.ts"

/** A store whose marks for a retry answer this long after they are in the database. */
const answersLate = Layer.effect(
  OutboxStore.OutboxStore,
  Effect.map(Effect.orDie(OutboxStore.make()), (store) => ({
    ...store,
    markRetry: (...args: Parameters<typeof store.markRetry>) =>
      Effect.tap(store.markRetry(...args), () => Effect.sleep("200 millis"))
  }))
)

const world = answersLate.pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate()))),
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))),
  Layer.provideMerge(Logger.layer([]))
)

describe("an event that failed, whose mark is answered late", () => {
  it.live("OUT-S-08 is handled again soon, and not only when its claim has expired", () => {
    const calls = new Map<string, number>()
    const failingOnce = ListenerRegistry.layerAll(({ eventId }) =>
      Effect.suspend(() => {
        const call = (calls.get(eventId) ?? 0) + 1
        calls.set(eventId, call)
        return call === 1 ? Effect.fail("once") : Effect.void
      })
    )
    return Effect.gen(function* () {
      const claimLocking = { owner: "A", lockTimeout: "10 minutes" } as const
      const dispatcher = yield* OutboxDispatcher.make({ claimLocking, retryPolicy: () => 1 })
      const handler = OutboxPoller.toDispatcher(dispatcher)
      const poller = yield* OutboxPoller.make({ claimLocking, handler, interval: "10 millis", skipRecent: 0 })
      yield* Effect.orDie(poller.start)
      yield* insert(["a/1", "b/1", "c/1"])
      const sql = yield* SqlClient.SqlClient
      const left = yield* sql<{ n: number }>`SELECT count(*) AS n FROM outbox_event WHERE status <> 1`.pipe(
        Effect.delay("20 millis"),
        Effect.repeat({ until: ([row]) => row?.n === 0 }),
        Effect.timeoutOption("8 seconds")
      )
      assert.strictEqual(left._tag, "Some", "an event waits for its claim")
      assert.deepStrictEqual(Object.fromEntries(calls), { "a/1": 2, "b/1": 2, "c/1": 2 })
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(failingOnce, world)))
  })
})
