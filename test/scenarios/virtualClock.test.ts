/** Each wait of the connector and the outbox lasts exactly as long as it says on Effect's clock, so a test of an hour takes milliseconds. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, DeadLetter, RetryPolicy } from "@eventbus/core"
import { ListenerRegistry, OutboxPoller, OutboxSchema, OutboxStore, PurgeScheduler } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { advance, append, bytes, headersOf, orders, scenario, settle, start, valuesOf } from "./bus.ts"

/** True only once so many milliseconds have passed from now. */
const comesTrueAfter = Effect.fnUntraced(function* (millis: number, condition: () => boolean, title: string) {
  yield* advance(millis - 1)
  assert.isFalse(condition(), `${title}: already 1 ms before`)
  yield* advance(1)
  assert.isTrue(condition(), `${title}: not yet after ${millis} ms`)
})

const withRecords = Effect.fnUntraced(function* (...values: ReadonlyArray<string>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* append("orders", 0, values)
  return memory
})

const blocking = {
  maxAttempts: 3,
  initialBackoff: "1 second",
  maxBackoff: "10 seconds",
  multiplier: 3,
  jitter: 0
} as const

describe("waits of the connector follow Effect's clock", () => {
  scenario("CARD-12 backoff in place, then the delay of each tier", () =>
    Effect.gen(function* () {
      yield* withRecords("bad")
      const calls: Array<number> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ blocking, tiers: [{ delay: "1 hour", maxAttempts: 1 }] }),
          handler: ({ tier }) => {
            calls.push(tier)
            return Effect.die("no")
          }
        })
      )
      yield* comesTrueAfter(1_000, () => calls.length === 2, "first backoff")
      yield* comesTrueAfter(3_000, () => calls.length === 3, "second backoff")
      yield* comesTrueAfter(3_600_000, () => calls.length === 4, "tier delay")
      assert.deepStrictEqual(calls, [0, 0, 0, 1])
    })
  )

  scenario("CARD-12 the time that the breaker is open", () =>
    Effect.gen(function* () {
      yield* withRecords("a", "b")
      const { of } = yield* start(
        Binding.make("orders", {
          ...{ ...orders, retry: RetryPolicy.none },
          circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: "30 minutes" },
          handler: () => Effect.die("no")
        })
      )
      const isHalfOpen = () => of("BreakerChanged").some(({ to }) => to === "HALF_OPEN")
      yield* comesTrueAfter(1_800_000, isHalfOpen, "open state")
    })
  )

  scenario("CARD-12 the cooldown of a scheduled replay, and the time for one alert", () =>
    Effect.gen(function* () {
      const memory = yield* withRecords("bad")
      let calls = 0
      const made = (deadLetter: DeadLetter.DeadLetter) =>
        Binding.make("orders", {
          ...{ ...orders, retry: RetryPolicy.none, deadLetter },
          handler: () => Effect.suspend(() => (++calls === 1 ? Effect.die("no") : Effect.void))
        })
      const replayed = yield* start(made(DeadLetter.scheduledReplay({ cooldown: "2 hours" })))
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-timestamp"), "0")
      yield* comesTrueAfter(7_200_000, () => calls === 2, "cooldown")
      yield* replayed.close

      calls = 0
      yield* append("orders", 0, ["worse"])
      const alerted = yield* start(made(DeadLetter.alertAndStore(() => Effect.never, { alertTimeout: "1 minute" })))
      yield* comesTrueAfter(60_000, () => alerted.of("AlertFailed").length === 1, "alert timeout")
    })
  )

  scenario("CARD-12 processing budget, background commits, and the bound of a stop", () =>
    Effect.gen(function* () {
      yield* withRecords("a", "b")
      const app = yield* start(
        Binding.make("orders", {
          ...{ ...orders, retry: RetryPolicy.none, ackMode: "MANUAL", commitInterval: "10 minutes" },
          ...{ maxPollInterval: "1 hour", shutdownTimeout: "5 minutes" },
          handler: ({ value }) => (value === "a" ? Effect.void : Effect.never)
        })
      )
      yield* comesTrueAfter(600_000, () => app.of("Committed").length === 1, "commit interval")
      const budget = 3_600_000 * 0.7 - 600_000
      yield* comesTrueAfter(budget, () => app.of("ProcessingBudgetReached").length === 1, "processing budget")
      yield* append("orders", 0, ["c"])
      yield* settle
      yield* Effect.forkScoped(app.connector.stop("orders"), { startImmediately: true })
      // The last five seconds of the shutdown timeout are for the commit and what follows it.
      yield* comesTrueAfter(295_000, () => app.of("DrainTimedOut").length === 1, "drain")
    })
  )

  scenario("CARD-12 the wait before a refused copy is published again", () =>
    Effect.gen(function* () {
      const memory = yield* withRecords("bad")
      const { of } = yield* start(
        Binding.make("orders", {
          ...{ ...orders, retry: RetryPolicy.none, missingTopics: "wait" },
          handler: () => Effect.die("no")
        })
      )
      const refusals = () => of("PublishFailed").length
      assert.strictEqual(refusals(), 1)
      yield* comesTrueAfter(100, () => refusals() === 2, "first wait")
      yield* comesTrueAfter(200, () => refusals() === 3, "second wait")
      yield* memory.createTopic("orders.DLT")
      yield* advance("10 seconds")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
      assert.deepStrictEqual((yield* memory.log("orders", 0))[0]?.value, bytes("bad"))
    })
  )
})

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)
const outbox = Layer.mergeAll(
  Layer.orDie(OutboxStore.layer()),
  ListenerRegistry.layerAll(() => Effect.void)
).pipe(Layer.provideMerge(database))

describe("waits of the outbox follow Effect's clock", () => {
  it.effect("CARD-12 the intervals of poller and purge", () =>
    Effect.gen(function* () {
      let polls = 0
      let purges = 0
      const store = yield* OutboxStore.OutboxStore
      const counting: OutboxStore.OutboxStore["Service"] = {
        ...store,
        pollPending: (options) => Effect.tap(store.pollPending(options), () => Effect.sync(() => polls++))
      }
      const poller = yield* OutboxPoller.make({ handler: { handle: () => true }, interval: "1 hour" }).pipe(
        Effect.provideService(OutboxStore.OutboxStore, counting)
      )
      const purge = yield* PurgeScheduler.make({
        interval: "1 day",
        purger: () =>
          Effect.as(
            Effect.sync(() => purges++),
            0
          )
      })
      yield* poller.start
      yield* purge.start
      yield* settle
      const [polled, purged] = [polls, purges]
      yield* comesTrueAfter(3_600_000, () => polls > polled, "poll interval")
      for (let hour = 1; hour < 23; hour++) yield* advance("1 hour")
      assert.strictEqual(polls, polled + 23)
      yield* comesTrueAfter(3_600_000, () => purges > purged, "purge interval")
    }).pipe(Effect.scoped, Effect.provide(outbox))
  )
})
