import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber, Schema } from "effect"
import { advance, append, headersOf, now, orders, scenario, settle, start, until, valuesOf } from "../bus.ts"
import { rareLooks } from "../rareLooks.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", { code: Schema.optionalKey(Schema.Int) }) {}
class Gone extends Schema.TaggedError<Gone>()("Gone", {}) {}

const exact = RetryPolicy.blocking({ jitter: 0 })

describe("attempts in place", () => {
  scenario("RTY-01 three attempts by default, 100 and 200 ms apart; the next record waits", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad", "next"])
      const calls: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: exact,
          handler: ({ value }) =>
            Effect.flatMap(now, (millis) => {
              calls.push(`${value} ${millis}`)
              return value === "bad" ? Effect.fail(new Boom({})) : Effect.void
            }),
          onError: { Boom: Route.retry }
        })
      )
      for (let step = 0; step < 8; step++) yield* advance("50 millis")
      assert.deepStrictEqual(calls, ["bad 0", "bad 100", "bad 300", "next 300"])
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.strictEqual(headersOf(letter).get("x-eventbus-total-attempts"), "3")
      assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
    })
  )

  scenario("RTY-01 five attempts from 200 ms: waits of 200, 400, 800, 1600", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad"])
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.blocking({ maxAttempts: 5, initialBackoff: "200 millis", jitter: 0 }),
          handler: () => Effect.fail(new Boom({})),
          onError: { Boom: Route.retry }
        })
      )
      yield* until(() => app.of("Settled").length === 1, "100 millis")
      assert.deepStrictEqual(
        app.of("AttemptFailed").map(({ retryInMillis }) => retryInMillis),
        [200, 400, 800, 1600, undefined]
      )
    })
  )

  scenario("RTY-02 a wait beyond 2^31-1 ms lasts its full time", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad"])
      let calls = 0
      yield* start(
        Binding.make("orders", {
          ...orders,
          maxPollInterval: "10000 days",
          sessionTimeout: "24 days",
          heartbeatInterval: "8 days",
          retry: RetryPolicy.blocking({
            maxAttempts: 2,
            initialBackoff: "25 days",
            maxBackoff: "25 days",
            jitter: 0
          }),
          handler: () => Effect.suspend(() => (++calls === 1 ? Effect.fail(new Boom({})) : Effect.void)),
          onError: { Boom: Route.retry }
        })
      )
      yield* advance("24.9 days")
      assert.strictEqual(calls, 1)
      yield* advance("0.1 days")
      assert.strictEqual(calls, 2)
    }).pipe(rareLooks)
  )

  scenario("RTY-03 each delivery starts with all its attempts", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b"])
      const app = yield* start(Binding.make("orders", { ...orders, retry: exact, handler: () => Effect.die("always") }))
      yield* until(() => app.of("Settled").length === 2, "100 millis")
      assert.deepStrictEqual(
        app.of("Settled").map(({ attempts }) => attempts),
        [3, 3]
      )
    })
  )

  scenario("RTY-04 an error with another route than retry gets one attempt", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad"])
      let calls = 0
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () =>
            Effect.andThen(
              Effect.sync(() => calls++),
              Effect.fail(new Gone())
            ),
          onError: { Gone: Route.deadLetter("gone for good") }
        })
      )
      assert.strictEqual(calls, 1)
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-reason"), "NON_RETRYABLE")
      assert.strictEqual(headersOf(letter).get("x-eventbus-total-attempts"), "1")
    })
  )

  for (const [fate, settings, target] of [
    ["a retry topic", { retry: RetryPolicy.tiered({ blocking: { jitter: 0 }, tiers: ["1 hour"] }) }, "orders.retry-1"],
    ["the dead letter topic", { retry: exact }, "orders.DLT"],
    ["the dead letter topic (STRICT)", { retry: exact, orderingMode: "STRICT" }, "orders.DLT"]
  ] as const) {
    scenario(
      `BND-16 the next record starts only after the current one succeeded or was routed to ${fate}; a backoff holds its partition only`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 2 })
          yield* append("orders", 0, ["slow", "fails once", "bad", "last"])
          yield* append("orders", 1, ["b0", "b1"])
          const calls: Array<string> = []
          let failures = 0
          const { events } = yield* start(
            Binding.make("orders", {
              ...orders,
              ...settings,
              handler: ({ value }) =>
                Effect.gen(function* () {
                  const began = yield* now
                  yield* Effect.sleep(value === "slow" ? "1 second" : 0)
                  calls.push(`${value} ${began}-${yield* now}`)
                  if (value === "bad" || (value === "fails once" && ++failures === 1)) return yield* Effect.die("no")
                })
            })
          )
          for (let step = 0; step < 30; step++) yield* advance("50 millis")
          assert.deepStrictEqual(calls.slice(0, 2), ["b0 0-0", "b1 0-0"])
          const [succeeded, retried, bad, last] = [
            "slow 0-1000",
            "fails once 1000-1000",
            "bad 1100-1100",
            "last 1400-1400"
          ]
          assert.deepStrictEqual(calls.slice(2), [
            ...[succeeded, retried, "fails once 1100-1100", bad, "bad 1200-1200", "bad 1400-1400", last]
          ])
          const ofPartition = events.flatMap((event) =>
            (event._tag === "Started" || event._tag === "Settled") && event.partition === 0
              ? [`${event._tag} ${event.record.offset}`]
              : []
          )
          const oneByOne = [0, 1, 2, 3].flatMap((offset) => [`Started ${offset}`, `Settled ${offset}`])
          // Under STRICT the copy is acknowledged first. Otherwise it may still be on its way, and nothing is committed behind it.
          assert.deepStrictEqual(
            "orderingMode" in settings ? ofPartition : ofPartition.toSorted(),
            "orderingMode" in settings ? oneByOne : oneByOne.toSorted()
          )
          assert.deepStrictEqual([...(yield* valuesOf(target, 0)), ...(yield* valuesOf(target, 1))], ["bad"])
        })
    )
  }

  scenario("RTY-24 a stop in the middle of a backoff ends it at once and publishes nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* append("orders", 0, ["bad"])
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.blocking({
            maxAttempts: 2,
            initialBackoff: "5 seconds",
            maxBackoff: "5 seconds",
            jitter: 0
          }),
          handler: () => Effect.die("always")
        })
      )
      yield* app.connector.stop("orders")
      yield* advance("1 minute")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), [])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 0n)
    })
  )
})

describe("classification", () => {
  scenario("CLS-12 a rule may inspect the error; errors without a rule and defects are retried", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["skip", "dead", "defect"])
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          handler: ({ value }) =>
            value === "defect" ? Effect.die("defect") : Effect.fail(new Boom({ code: value === "skip" ? 1 : 2 })),
          onError: { Boom: ({ code }) => (code === 1 ? Route.skip : Route.deadLetter()) }
        })
      )
      yield* settle
      assert.deepStrictEqual(
        app.of("Settled").map(({ settlement }) => settlement),
        ["Skipped", "DeadLettered", "DeadLettered"]
      )
      assert.deepStrictEqual(
        (yield* memory.log("orders.DLT", 0)).map((letter) => headersOf(letter).get("x-eventbus-dlt-reason")),
        ["NON_RETRYABLE", "RETRIES_EXHAUSTED"]
      )
    })
  )

  scenario("CLS-10 when a classifier throws, the record takes the default route", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["bad", "next"])
      const handled: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: exact,
          handler: ({ value }) =>
            value === "bad" ? Effect.fail(new Boom({})) : Effect.sync(() => handled.push(value)),
          onError: () => {
            throw new Error("classifier")
          }
        })
      )
      yield* advance("300 millis")
      assert.deepStrictEqual(handled, ["next"])
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.strictEqual(headersOf(letter).get("x-eventbus-last-exception-class"), "Boom")
    })
  )

  for (const processingOrder of ["partition", "key"] as const) {
    scenario(`CLS-11 order ${processingOrder}: a handler that throws synchronously fails its record only`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["bad", "next"])
        const handled: Array<string> = []
        yield* start(
          Binding.make("orders", {
            ...orders,
            processingOrder,
            retry: RetryPolicy.none,
            handler: ({ value }) => {
              if (value === "bad") throw new TypeError("sync")
              return Effect.sync(() => handled.push(value))
            }
          })
        )
        yield* settle
        assert.deepStrictEqual(handled, ["next"])
        const [letter] = yield* memory.log("orders.DLT", 0)
        assert.strictEqual(headersOf(letter).get("x-eventbus-last-exception-class"), "TypeError")
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
      })
    )

    scenario(`CLS-11 order ${processingOrder}: a handler that interrupts itself has neither failed nor finished`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["odd", "next"])
        let calls = 0
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            processingOrder,
            handler: ({ value }) =>
              Effect.suspend(() => (value === "odd" && ++calls < 5 ? Effect.interrupt : Effect.void))
          })
        )
        assert.isTrue(((yield* memory.committed("billing", "orders", 0)) ?? 0n) === 0n)
        yield* until(() => calls === 5, "1 second")
        yield* settle
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        assert.deepStrictEqual(app.of("AttemptFailed"), [])
      })
    )
  }

  scenario("CLS-11 a handler that interrupts its own fiber and joins it does not harm the partition", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b"])
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () =>
            Effect.gen(function* () {
              const child = yield* Effect.forkChild(Effect.never)
              yield* Fiber.interrupt(child)
            })
        })
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario("CARD-07 fibers that a handler leaves running end with its delivery", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a"])
      let ended = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () =>
            Effect.asVoid(
              Effect.forkChild(
                Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended++)),
                { startImmediately: true }
              )
            )
        })
      )
      yield* app.connector.stop("orders")
      assert.strictEqual(ended, 1)
    })
  )

  scenario("NFR-09 a listener of the events that throws changes nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const app = yield* start(Binding.make("orders", { ...orders, handler: () => Effect.void }))
      yield* app.connector.subscribe(() => {
        throw new Error("listener")
      })
      yield* append("orders", 0, ["a", "b"])
      yield* settle
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )
})

describe("processing budget (TST-06: poll-budget guard)", () => {
  const tight = { ...orders, maxPollInterval: "10 seconds", maxPollRecords: 1 } as const

  for (const processingOrder of ["partition", "unordered"] as const) {
    scenario(
      `REB-03 order ${processingOrder}: a handler that never ends is cut off at 70 % and its record takes the normal route`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* append("orders", 0, ["hangs", "next"])
          const handled: Array<string> = []
          const app = yield* start(
            Binding.make("orders", {
              ...tight,
              processingOrder,
              handler: ({ value }) => (value === "hangs" ? Effect.never : Effect.sync(() => handled.push(value)))
            })
          )
          yield* advance("6 seconds")
          assert.deepStrictEqual(app.of("ProcessingBudgetReached"), [])
          yield* advance("1 second")
          yield* settle
          assert.deepStrictEqual(handled, ["next"])
          const [letter] = yield* memory.log("orders.DLT", 0)
          assert.strictEqual(headersOf(letter).get("x-eventbus-last-exception-class"), "ProcessingBudgetExceeded")
          assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
          assert.strictEqual(app.of("ProcessingBudgetReached").length, 1)
        })
    )
  }

  scenario("REB-03 no attempt starts when its backoff would exceed the budget", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["slow"])
      let calls = 0
      const app = yield* start(
        Binding.make("orders", {
          ...tight,
          retry: RetryPolicy.blocking({
            maxAttempts: 3,
            initialBackoff: "2500 millis",
            maxBackoff: "2500 millis",
            jitter: 0
          }),
          handler: () =>
            Effect.sync(() => calls++).pipe(
              Effect.andThen(Effect.sleep("2 seconds")),
              Effect.andThen(Effect.fail(new Boom({})))
            ),
          onError: { Boom: Route.retry }
        })
      )
      yield* until(() => app.of("Settled").length === 1, "500 millis")
      assert.strictEqual(calls, 2)
      assert.isAtMost(yield* now, 7_000)
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.strictEqual(headersOf(letter).get("x-eventbus-last-exception-class"), "Boom")
      assert.strictEqual(app.of("ProcessingBudgetReached").length, 1)
    })
  )

  scenario(
    "REB-03 the time of a commit does not count as handler time",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["a", "b"])
        const app = yield* start(Binding.make("orders", { ...tight, handler: () => Effect.sleep("1 second") }))
        yield* until(() => app.of("Committed").some(({ offset }) => offset === 2n), "1 second")
        assert.deepStrictEqual(app.of("ProcessingBudgetReached"), [])
      }),
    { latency: { commit: "20 seconds" } }
  )

  scenario("REB-02 makeBatch: a batch that takes too long is cut off, then tried record by record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "hangs", "c"])
      const handled: Array<string> = []
      yield* start(
        Binding.makeBatch("orders", {
          ...orders,
          maxPollInterval: "10 seconds",
          retry: RetryPolicy.none,
          handleBatch: ({ deliveries }) =>
            deliveries.some(({ value }) => value === "hangs")
              ? Effect.never
              : Effect.sync(() => handled.push(...deliveries.map(({ value }) => value)))
        })
      )
      yield* until(() => handled.length === 2, "1 second")
      assert.deepStrictEqual(handled, ["a", "c"])
      yield* settle
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["hangs"])
    })
  )
})
