import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Schedule } from "effect"
import {
  type App,
  advance,
  append,
  bytes,
  headersOf,
  inTime,
  nothingInUse,
  now,
  orders,
  scenario,
  settle,
  start,
  until
} from "../bus.ts"
import { withWallClock } from "../wallClock.ts"

class Down extends Data.TaggedError("Down") {}

interface Call {
  readonly value: string
  readonly attempt: number
  readonly tier: number
  readonly atMillis: number
}

const tier = { delay: "1 second", multiplier: 2, maxDelay: "30 seconds", maxAttempts: 7 } as const

const growing = (options: Partial<RetryPolicy.TieredOptions> = {}) =>
  RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [tier], ...options })

type Settings = BindingOptions.Settings<Uint8Array | null, string> &
  Pick<BindingOptions.FailureOptions<never, never>, "circuitBreaker">

/** A binding that fails each delivery while `fails` says so, and its calls. */
const recording = (
  fails: (call: Call) => boolean,
  settings: Partial<Settings> = {},
  route: Route.Route = Route.retry
) => {
  const calls: Array<Call> = []
  const binding = Binding.make("orders", {
    ...orders,
    retry: growing(),
    ...settings,
    onError: { Down: route },
    handler: ({ value, attempt, tier }) =>
      Effect.flatMap(now, (atMillis) => {
        const call = { value, attempt, tier, atMillis }
        calls.push(call)
        return fails(call) ? Effect.fail(new Down()) : Effect.void
      })
  })
  return { calls, binding }
}

const retried = (calls: ReadonlyArray<Call>) => calls.filter((call) => call.tier > 0)

/** Copies as the main topic would have left them at this moment: the value's number is the delivery that it waits for. */
const copies = (attempts: ReadonlyArray<number>, nowMillis = 0) =>
  attempts.map((attempt, index) => ({
    key: bytes(`k${index}`),
    value: bytes(`${attempt}-${index}`),
    timestamp: nowMillis,
    headers: Object.entries({
      "x-eventbus-retry-tier": 1,
      "x-eventbus-retry-attempt": attempt,
      "x-eventbus-retry-timestamp": nowMillis
    }).map(([key, value]) => ({ key, value: bytes(String(value)) }))
  }))

const waits = [1, 2, 4, 8, 16, 30, 30].map((seconds) => seconds * 1_000)

const retryTopic = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.retry-1")
  return memory
})

const deadLettered = (app: App) => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length

describe("a retry topic with a wait for each delivery", () => {
  scenario(
    "MSG-15 MSG-20 RTY-08 the waits are 1, 2, 4, 8, 16, 30, 30 s, and the last delivery ends in one dead letter",
    () =>
      Effect.gen(function* () {
        const memory = yield* retryTopic
        const { calls, binding } = recording(() => true)
        const app = yield* start(binding)
        yield* append("orders", 0, ["x"])
        yield* until(() => deadLettered(app) === 1, "1 second")
        const starts = calls.map(({ atMillis }) => atMillis)
        assert.deepStrictEqual(
          starts.slice(1).map((at, index) => at - starts[index]!),
          waits
        )
        assert.deepStrictEqual(
          retried(calls).map(({ attempt }) => attempt),
          [1, 2, 3, 4, 5, 6, 7]
        )
        const letter = headersOf((yield* memory.log("orders.DLT", 0))[0])
        assert.strictEqual(letter.get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
        assert.strictEqual(letter.get("x-eventbus-total-attempts"), "8")
        const told = app.of("Settled").flatMap(({ nextAttemptMillis }) => nextAttemptMillis ?? [])
        assert.deepStrictEqual(told, starts.slice(1))
      })
  )

  for (const [limit, calls] of [
    ["14999 millis", 4],
    ["15 seconds", 5],
    ["1 hour", 8]
  ] as const) {
    scenario(`MSG-20 ruling 67 with a limit of ${limit} a record that always fails is delivered ${calls} times`, () =>
      Effect.gen(function* () {
        yield* retryTopic
        const made = recording(() => true, { retry: growing({ maxElapsedTime: limit }) })
        const app = yield* start(made.binding)
        yield* append("orders", 0, ["x"])
        yield* until(() => deadLettered(app) === 1, "1 second")
        assert.strictEqual(made.calls.length, calls)
      })
    )
  }

  scenario("MSG-20 a replayed record has the whole time again", () =>
    Effect.gen(function* () {
      yield* retryTopic
      const { calls, binding } = recording(() => true, { retry: growing({ maxElapsedTime: "4 seconds" }) })
      const app = yield* start(binding)
      yield* append("orders", 0, ["x"])
      yield* until(() => deadLettered(app) === 1, "1 second")
      yield* advance("1 hour")
      const letters = yield* app.connector.deadLetters("orders")
      yield* inTime(letters.replayWindow(0, Number.MAX_SAFE_INTEGER), "100 millis")
      yield* until(() => deadLettered(app) === 2, "1 second")
      assert.deepStrictEqual(
        calls.map(({ tier, attempt }) => `${tier}.${attempt}`),
        ["0.1", "1.1", "1.2", "0.1", "1.1", "1.2"]
      )
    })
  )

  scenario("a Schedule says each wait, and its end is the end of the retries", () =>
    Effect.gen(function* () {
      yield* retryTopic
      const delay = Schedule.max([Schedule.fibonacci("1 second"), Schedule.recurs(4)])
      const { calls, binding } = recording(() => true, { retry: growing({ tiers: [delay] }) })
      const app = yield* start(binding)
      yield* append("orders", 0, ["x"])
      yield* until(() => deadLettered(app) === 1, "1 second")
      assert.deepStrictEqual(
        calls.map(({ atMillis }) => atMillis),
        [0, 1_000, 2_000, 4_000, 7_000]
      )
    })
  )

  scenario("CLS-08 a route by time goes to the first delivery that waits as long, and never back", () =>
    Effect.gen(function* () {
      yield* retryTopic
      const { calls, binding } = recording(() => true, {}, Route.after("10 seconds"))
      const app = yield* start(binding)
      yield* append("orders", 0, ["x"])
      yield* until(() => deadLettered(app) === 1, "1 second")
      assert.deepStrictEqual(
        retried(calls).map(({ attempt, atMillis }) => [attempt, atMillis]),
        [
          [5, 16_000],
          [6, 46_000],
          [7, 76_000]
        ]
      )
    })
  )

  for (const settings of [
    { processingOrder: "partition" },
    { processingOrder: "key" },
    { processingOrder: "unordered" },
    { listenerType: "BATCH" },
    { processingOrder: "partition", ackMode: "MANUAL_IMMEDIATE" }
  ] as const) {
    const kind = Object.values(settings).join(" ")
    scenario(`MSG-20 RTY-09 ${kind}: no record is early, and none is held up by a longer wait in front of it`, () =>
      Effect.gen(function* () {
        const memory = yield* retryTopic
        const { calls, binding } = recording(() => false, settings)
        const attempts = Array.from({ length: 300 }, (_, index) => ((index * 7) % 6) + 1).toReversed()
        yield* memory.append("orders.retry-1", 0, copies(attempts))
        const app = yield* start(binding)
        for (let millis = 0; millis < 31_000; millis += 500) {
          yield* advance(499)
          yield* advance(1)
        }
        assert.strictEqual(calls.length, 300)
        for (const { value, atMillis } of calls) assert.strictEqual(atMillis, waits[Number(value.split("-")[0]) - 1])
        assert.strictEqual(yield* memory.committed("billing", "orders.retry-1", 0), 300n)
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
    )
  }

  scenario(
    "RTY-16 a copy of another producer waits as for its first delivery; a number out of range is the first",
    () =>
      Effect.gen(function* () {
        const memory = yield* retryTopic
        const [, forged] = copies([1, 8])
        yield* memory.append("orders.retry-1", 0, [{ key: bytes("k"), value: bytes("foreign"), timestamp: 0 }, forged!])
        const { calls, binding } = recording(() => false)
        yield* start(binding)
        yield* advance(999)
        assert.deepStrictEqual(calls, [])
        yield* advance(1)
        assert.deepStrictEqual(
          calls.map(({ value, attempt }) => [value, attempt]),
          [
            ["foreign", 1],
            ["8-1", 1]
          ]
        )
      })
  )

  scenario("BUF: where the buffer is full, the fetch pauses; nothing is early, and nothing is lost", () =>
    Effect.gen(function* () {
      const memory = yield* retryTopic
      const { calls, binding } = recording(() => false, { maxBufferedRecords: 40 })
      const attempts = Array.from({ length: 200 }, (_, index) => (index % 3) + 1)
      yield* memory.append("orders.retry-1", 0, copies(attempts))
      const app = yield* start(binding)
      yield* until(() => calls.length === 200, "500 millis")
      yield* advance("1 minute")
      assert.strictEqual(new Set(calls.map(({ value }) => value)).size, 200)
      for (const { value, atMillis } of calls) assert.isAtLeast(atMillis, waits[Number(value.split("-")[0]) - 1]!)
      assert.isTrue(
        app
          .of("FetchPaused")
          .some(({ topic, reasons }) => topic === "orders.retry-1" && reasons.includes("backpressure"))
      )
      assert.strictEqual(calls.length, 200)
      assert.strictEqual(yield* memory.committed("billing", "orders.retry-1", 0), 200n)
    })
  )
})

describe("a retry topic with a wait for each delivery, given up in the middle", () => {
  for (const processingOrder of ["partition", "key"] as const) {
    scenario(
      `LIF-12 REB ruling 83 ${processingOrder}: a stop behind a long wait loses nothing, and repeats nothing`,
      () =>
        Effect.gen(function* () {
          const memory = yield* retryTopic
          const { calls, binding } = recording(() => false, { processingOrder })
          yield* memory.append("orders.retry-1", 0, copies([5, 1, 2, 1, 5, 3]))
          const first = yield* start(binding)
          yield* advance("1 second")
          yield* advance("1 second")
          const before = yield* now
          yield* first.close
          assert.strictEqual((yield* now) - before, 0)
          assert.strictEqual(yield* memory.committed("billing", "orders.retry-1", 0), 0n)
          const second = yield* start(binding)
          yield* advance("2 seconds")
          // Before it has fetched far enough to know better, and then again.
          yield* second.close
          yield* start(binding)
          for (let second = 4; second < 40; second++) yield* advance("1 second")
          assert.deepStrictEqual(
            calls.map(({ value, atMillis }) => [value, atMillis]),
            [
              ["1-1", 1_000],
              ["1-3", 1_000],
              ["2-2", 2_000],
              ["3-5", 4_000],
              ["5-0", 16_000],
              ["5-4", 16_000]
            ]
          )
          assert.strictEqual(yield* memory.committed("billing", "orders.retry-1", 0), 6n)
          assert.strictEqual((yield* memory.log("orders.retry-1", 0)).length, 6)
        })
    )
  }

  scenario("REB a rebalance moves what waits to its next owner, who repeats nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* memory.createTopic("orders.retry-1", { partitions: 2 })
      for (const partition of [0, 1]) yield* memory.append("orders.retry-1", partition, copies([4, 1, 1, 2, 3]))
      const { calls, binding } = recording(() => false)
      const first = yield* start(binding)
      yield* advance("1 second")
      const second = yield* start(binding)
      for (let wait = 0; wait < 4; wait++) yield* advance("500 millis")
      assert.strictEqual(second.of("PartitionAssigned").filter(({ topic }) => topic === "orders.retry-1").length, 1)
      yield* first.close
      for (let wait = 0; wait < 20; wait++) yield* advance("500 millis")
      assert.deepStrictEqual(
        calls.map(({ atMillis }) => atMillis).toSorted((a, b) => a - b),
        [1_000, 1_000, 1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000, 8_000]
      )
    })
  )

  for (const [commitInterval, repeated] of [
    ["10 millis", []],
    ["1 hour", ["1-1", "1-2", "3-3", "3-4"]]
  ] as const) {
    scenario(
      `NFR-01 LIF-17 commits every ${commitInterval}: a crash loses nothing, and repeats what no commit has told of`,
      () =>
        Effect.gen(function* () {
          const memory = yield* retryTopic
          const killed = recording(() => false, { ackMode: "MANUAL", commitInterval })
          yield* memory.append("orders.retry-1", 0, copies([5, 1, 1, 3, 3, 4]))
          yield* start(killed.binding)
          yield* advance("3 seconds")
          yield* advance("1 second")
          yield* advance("20 millis")
          assert.deepStrictEqual(
            killed.calls.map(({ value }) => value),
            ["1-1", "1-2", "3-3", "3-4"]
          )
          const [victim] = (yield* memory.group("billing")).members
          yield* memory.inject({ _tag: "Kill", clientId: victim!.clientId })
          const { calls, binding } = recording(() => false, { commitInterval: "10 millis" })
          yield* start(binding)
          for (let wait = 0; wait < 90; wait++) yield* advance("1 second")
          assert.deepStrictEqual(
            calls.map(({ value }) => value),
            [...repeated, "4-5", "5-0"]
          )
          assert.strictEqual(yield* memory.committed("billing", "orders.retry-1", 0), 6n)
        })
    )
  }

  scenario("RTY-24 LIF-13 a shutdown waits for nobody who waits, and publishes nothing", () =>
    Effect.gen(function* () {
      const memory = yield* retryTopic
      const { calls, binding } = recording(() => true)
      yield* memory.append("orders.retry-1", 0, copies([5, 6]))
      const app = yield* start(binding)
      yield* advance("1 second")
      yield* app.close
      assert.deepStrictEqual(yield* memory.usage, nothingInUse)
      assert.deepStrictEqual(calls, [])
      assert.strictEqual((yield* memory.log("orders.retry-1", 0)).length, 2)
    })
  )
})

describe("a retry topic with a wait for each delivery, held", () => {
  scenario("PAU ruling 11 records that become due in a pause are handled at its end, those due first in front", () =>
    Effect.gen(function* () {
      const memory = yield* retryTopic
      const { calls, binding } = recording(() => false)
      yield* memory.append("orders.retry-1", 0, copies([3, 2, 1, 4]))
      const app = yield* start(binding)
      yield* app.connector.pause("orders")
      yield* advance("5 seconds")
      assert.deepStrictEqual(calls, [])
      yield* app.connector.resume("orders")
      yield* settle
      assert.deepStrictEqual(
        calls.map(({ value }) => value),
        ["1-2", "2-1", "3-0"]
      )
      yield* advance("3 seconds")
      assert.deepStrictEqual(
        calls.map(({ atMillis }) => atMillis),
        [5_000, 5_000, 5_000, 8_000]
      )
    })
  )

  scenario("CB-08 ruling 72 an open breaker uses nothing up: each record has its deliveries when it closes", () =>
    Effect.gen(function* () {
      const memory = yield* retryTopic
      let isDown = true
      const { calls, binding } = recording(() => isDown, {
        circuitBreaker: { minimumNumberOfCalls: 2, slidingWindowSize: 4, waitDurationInOpenState: "10 seconds" }
      })
      yield* memory.append("orders.retry-1", 0, copies([1, 1, 2, 3]))
      const app = yield* start(binding)
      yield* advance("1 second")
      assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
      const before = calls.length
      yield* advance("5 seconds")
      assert.strictEqual(calls.length, before)
      isDown = false
      for (let wait = 0; wait < 40; wait++) yield* advance("1 second")
      const handled = app.of("Settled").filter(({ settlement }) => settlement === "Handled")
      assert.strictEqual(handled.length, 4)
      assert.isFalse(app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"))
    })
  )

  scenario("OBS-12 HLT ruling 75 lag counts the records that wait, and a long wait is no stall", () =>
    Effect.gen(function* () {
      const memory = yield* retryTopic
      const retry = growing({ tiers: [{ delay: "1 second", multiplier: 3_600, maxAttempts: 2 }] })
      const { binding } = recording(() => false, { retry })
      yield* memory.append("orders.retry-1", 0, copies([2, 1, 1, 1]))
      const app = yield* start(binding)
      yield* advance("30 minutes")
      const { partitions } = yield* app.connector.snapshot("orders")
      const found = partitions.find(({ topic }) => topic === "orders.retry-1")
      assert.deepStrictEqual([found?.lag, found?.inFlight, found?.waitingMillis], [1n, 1, 0])
      const health = yield* app.connector.health
      assert.deepStrictEqual([health.status, health.reasons], ["UP", []])
    })
  )

  const hour = 3_600_000
  for (const [name, offMillis] of [
    ["back", -hour],
    ["ahead", hour]
  ] as const) {
    withWallClock(
      `RTY-09 ruling 13 a clock that is set ${name} by an hour: no record waits longer than its delay`,
      (set) =>
        Effect.gen(function* () {
          const memory = yield* retryTopic
          set(2 * hour)
          yield* memory.append("orders.retry-1", 0, copies([5, 1, 3, 4], 2 * hour))
          const { calls, binding } = recording(() => false)
          yield* start(binding)
          yield* advance("2 seconds")
          assert.strictEqual(calls.length, 1)
          set(2 * hour + offMillis)
          yield* advance("2 seconds")
          if (name === "back") assert.strictEqual(calls.length, 2)
          for (let wait = 0; wait < 60; wait++) yield* advance("1 second")
          assert.strictEqual(calls.length, 4)
        })
    )
  }
})
