import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, type Broker, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, bytes, headersOf, now, orders, publish, scenario, settle, start, until, valuesOf } from "../bus.ts"

class Down extends Data.TaggedError("Down")<{ readonly retryAfter: string }> {}

interface Call {
  readonly atMillis: number
  readonly value: string
  readonly tier: number
  readonly attempt: number
}

/** A binding on topic `orders` whose handler fails while `fails` says so, and everything that it was called with. */
const recording = (
  fails: (value: string, call: number) => boolean,
  settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {},
  route: Route.Route | ((error: Down) => Route.Route) = Route.retry
) => {
  const calls: Array<Call> = []
  const binding = Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 } }),
    ...settings,
    onError: { Down: route },
    handler: ({ value, tier, attempt }) =>
      Effect.flatMap(now, (atMillis) => {
        calls.push({ atMillis, value, tier, attempt })
        const retryAfter = value.startsWith("dead") ? "never" : "30 seconds"
        return fails(value, calls.length) ? Effect.fail(new Down({ retryAfter })) : Effect.void
      })
  })
  return { calls, binding }
}

const always = () => true
const times = (calls: ReadonlyArray<Call>) => calls.map(({ atMillis }) => atMillis)

describe("retry tiers (TST-06: tiered retry)", () => {
  scenario("RTY-05 RTY-06 RTY-07 RTY-08 by default 30 attempts over 1110 s of tier delay, then one dead letter", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const retry = RetryPolicy.tiered({ blocking: { jitter: 0 } })
      const { calls, binding } = recording(always, { retry })
      const app = yield* start(binding)
      yield* publish("orders", ["x"])
      yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "9 seconds")
      assert.strictEqual(calls.length, 30)
      assert.deepStrictEqual(
        [0, 1, 2, 3].map((tier) => calls.filter((call) => call.tier === tier).length),
        [3, 9, 9, 9]
      )
      // Each delivery takes 300 ms of waits in place, each tier its delay three times.
      const starts = calls.filter((_, index) => index % 3 === 0).map(({ atMillis }) => atMillis)
      const due = [0, 10, 20, 30, 90, 150, 210, 510, 810, 1110]
      assert.deepStrictEqual(
        starts,
        due.map((seconds, deliveries) => seconds * 1_000 + deliveries * 300)
      )
      const [letter, ...more] = yield* memory.log("orders.DLT", 0)
      assert.deepStrictEqual(more, [])
      const headers = headersOf(letter)
      assert.strictEqual(headers.get("x-eventbus-total-attempts"), "30")
      assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
      assert.strictEqual(headers.get("x-eventbus-retry-tier"), "3")
      assert.deepStrictEqual(
        [0, 1, 2, 3].map((tier) => headers.get(`x-eventbus-tier${tier}-attempts`)),
        ["3", "9", "9", "9"]
      )
    })
  )

  scenario(
    "RTY-12 RTY-13 RTY-14 RTY-15 NAM-01 a retry record names its origin and its failures; success in a tier finishes it",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* memory.append("orders", 1, [
          { key: bytes("k"), value: bytes("x"), timestamp: 7, headers: [{ key: "mine", value: bytes("1") }] }
        ])
        const { calls, binding } = recording((_, call) => call <= 4)
        yield* start(binding)
        yield* advance("31 seconds")
        yield* advance("60 seconds")
        assert.deepStrictEqual(
          calls.map(({ tier, attempt }) => [tier, attempt]),
          [
            [0, 1],
            [1, 1],
            [1, 2],
            [1, 3],
            [2, 1]
          ]
        )
        const inTier1 = (yield* memory.log("orders.retry-1", 0)).concat(yield* memory.log("orders.retry-1", 1))
        const inTier2 = (yield* memory.log("orders.retry-2", 0)).concat(yield* memory.log("orders.retry-2", 1))
        assert.strictEqual(inTier1.length, 3)
        assert.strictEqual(inTier2.length, 1)
        for (const [index, record] of inTier1.entries()) {
          const headers = headersOf(record)
          const expected = {
            mine: "1",
            "x-eventbus-original-topic": "orders",
            "x-eventbus-original-partition": "1",
            "x-eventbus-original-offset": "0",
            "x-eventbus-original-timestamp": "7",
            "x-eventbus-retry-tier": "1",
            "x-eventbus-retry-attempt": String(index + 1),
            "x-eventbus-retry-timestamp": String(index * 10_000),
            "x-eventbus-total-attempts": String(index + 1),
            "x-eventbus-first-failure-timestamp": "0",
            "x-eventbus-tier0-exception": "Down",
            "x-eventbus-tier0-exhausted-at": "0"
          }
          for (const [name, value] of Object.entries(expected)) assert.strictEqual(headers.get(name), value, name)
          // It has not given the record up yet.
          assert.isFalse(headers.has("x-eventbus-tier1-exception"))
          assert.deepStrictEqual([record.key, record.value], [bytes("k"), bytes("x")])
        }
        assert.strictEqual(headersOf(inTier2[0]).get("x-eventbus-tier1-exhausted-at"), "30000")
        assert.deepStrictEqual(yield* valuesOf("orders", 0), [])
        assert.deepStrictEqual(yield* committed("billing", "orders.retry-2"), yield* ends("orders.retry-2"))
        yield* advance("1 hour")
        assert.strictEqual(calls.length, 5)
      })
  )

  scenario(
    "RTY-09 RTY-10 RTY-11 ruling 13 no record is early, delays overlap, the main topic and other partitions go on",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 3 })
        const { calls, binding } = recording((value, call) => value.startsWith("bad") && call <= 200)
        const app = yield* start(binding)
        yield* publish(
          "orders",
          Array.from({ length: 100 }, (_, index) => `bad-${index}`)
        )
        yield* publish(
          "orders",
          Array.from({ length: 100 }, (_, index) => `good-${index}`)
        )
        yield* settle
        assert.strictEqual(calls.length, 200)
        yield* advance(9_999)
        assert.strictEqual(calls.length, 200)
        yield* advance(1)
        assert.strictEqual(calls.length, 300)
        assert.deepStrictEqual(new Set(times(calls.slice(200))), new Set([10_000]))
        const paused = app.of("FetchPaused").filter(({ reasons }) => reasons.includes("delay"))
        assert.sameMembers(
          paused.map(({ topic, partition }) => `${topic}-${partition}`),
          ["orders.retry-1-0", "orders.retry-1-1", "orders.retry-1-2"]
        )
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      })
  )

  scenario(
    "RTY-09 RTY-10 fetching resumes shortly before a record is due, so that the records behind it arrive in time",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 1 })
        const { calls, binding } = recording((_, call) => call <= 1, { fetchMaxWait: "50 millis" })
        const app = yield* start(binding)
        yield* publish("orders", ["x"])
        const fetches = () => ["FetchPaused", "FetchResumed"].map((tag) => app.of(tag as "FetchPaused").length)
        yield* advance(9_849)
        assert.deepStrictEqual(fetches(), [1, 0])
        yield* advance(1)
        assert.deepStrictEqual(fetches(), [1, 1])
        yield* advance(149)
        assert.strictEqual(calls.length, 1)
        yield* advance(1)
        assert.deepStrictEqual(times(calls), [0, 10_000])
        assert.deepStrictEqual(fetches(), [1, 1])
      })
  )

  scenario("RTY-09 due times survive a rebalance and a restart", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { calls, binding } = recording((_, call) => call === 1)
      const first = yield* start(binding)
      yield* publish("orders", ["x"])
      yield* advance("4 seconds")
      yield* first.close
      yield* advance("3 seconds")
      yield* start(binding)
      yield* advance("2 seconds")
      assert.deepStrictEqual(times(calls), [0])
      yield* advance("20 seconds")
      assert.deepStrictEqual(times(calls), [0, 10_000])
    })
  )

  scenario("RTY-09 ruling 13 no record is a millisecond early, whatever else is due and whenever it is fetched", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { calls, binding } = recording((_, call) => call <= 4)
      const first = yield* start(binding)
      const published = [0, 1, 500, 1_499]
      for (const atMillis of published) {
        yield* advance(atMillis - (yield* now))
        yield* publish("orders", [`at ${atMillis}`])
        yield* settle
      }
      yield* first.close
      yield* advance(9_999 - (yield* now))
      yield* start(binding)
      yield* advance("5 seconds")
      assert.deepStrictEqual(
        calls.slice(4).map(({ value, atMillis }) => [value, atMillis]),
        published.map((atMillis) => [`at ${atMillis}`, atMillis + 10_000])
      )
    })
  )

  scenario("ruling 13 a record whose due time passed while no process ran is handled at once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { calls, binding } = recording((_, call) => call === 1)
      const first = yield* start(binding)
      yield* publish("orders", ["x"])
      yield* settle
      yield* first.close
      yield* advance("1 day")
      const before = yield* now
      yield* start(binding)
      yield* advance("1 second")
      assert.strictEqual(calls.length, 2)
      assert.isAtMost(calls[1]!.atMillis - before, 1_000)
    })
  )

  scenario(
    "CLS-08 CLS-09 RTY-04 routes to a tier, to the next tier and by time only go forward, at the first attempt",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        const story = Effect.fnUntraced(function* (topic: string, route: Route.Route | ((error: Down) => Route.Route)) {
          yield* memory.createTopic(topic)
          const { calls, binding } = recording(
            always,
            {
              topic,
              retry: RetryPolicy.tiered({
                tiers: (["10 seconds", "1 minute", "5 minutes"] as const).map((delay) => ({ delay, maxAttempts: 1 }))
              })
            },
            route
          )
          const app = yield* start(binding)
          yield* publish(topic, ["x"])
          yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "10 seconds")
          yield* app.close
          return calls.map(({ tier }) => tier)
        })
        assert.deepStrictEqual(yield* story("a", Route.tier(2)), [0, 2, 3])
        assert.deepStrictEqual(yield* story("b", Route.nextTier), [0, 1, 2, 3])
        assert.deepStrictEqual(yield* story("c", Route.after("30 seconds")), [0, 2, 3])
        assert.deepStrictEqual(yield* story("d", Route.after("1 hour")), [0, 3])
        assert.deepStrictEqual(
          yield* story("e", ({ retryAfter }) => Route.after(retryAfter as "30 seconds")),
          [0, 2, 3]
        )
        assert.deepStrictEqual(yield* story("f", () => Route.tier(4)), [0])
        const letter = headersOf((yield* memory.log("f.DLT", 0))[0])
        assert.strictEqual(letter.get("x-eventbus-dlt-reason"), "NON_RETRYABLE")
        assert.include(letter.get("x-eventbus-dlt-detail"), "and the binding has 3 retry tiers")
        // An answer that names no tier and no delay is no route: the record is retried as after an unknown error.
        for (const [topic, route] of [
          ["g", () => Route.tier(Number.NaN)],
          ["h", () => Route.after(Number.NaN)],
          ["i", () => Route.after("soon" as "1 second")]
        ] as const)
          assert.deepStrictEqual(yield* story(topic, route), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
        const trail = headersOf((yield* memory.log("a.DLT", 0))[0])
        assert.deepStrictEqual(
          [0, 1, 2, 3].map((tier) => trail.get(`x-eventbus-tier${tier}-exception`)),
          ["Down", undefined, "Down", "Down"]
        )
      })
  )

  scenario("ruling 23 without a key a copy keeps its partition number, if its topic has it", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 3 })
      yield* memory.createTopic("orders.DLT", { partitions: 1 })
      const { binding } = recording(always, {}, (error) =>
        error.retryAfter === "never" ? Route.deadLetter() : Route.retry
      )
      const app = yield* start(binding)
      const values = ["dead 1", "late 1", "dead 2", "late 2"]
      yield* memory.append(
        "orders",
        2,
        values.map((value) => ({ value: bytes(value) }))
      )
      yield* settle
      assert.deepStrictEqual(yield* valuesOf("orders.retry-1", 2), ["late 1", "late 2"])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["dead 1", "dead 2"])
      assert.deepStrictEqual(app.of("PublishFailed"), [])
    })
  )

  scenario("equal delays share one topic; the tier travels in the header", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const tiers = (["10 seconds", "10 seconds", "1 minute"] as const).map((delay) => ({ delay, maxAttempts: 2 }))
      const retry = RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers, equalDelays: "share" })
      const { calls, binding } = recording(always, { retry })
      const app = yield* start(binding)
      yield* publish("orders", ["x"])
      yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "10 seconds")
      assert.deepStrictEqual(
        calls.map(({ tier, attempt }) => `${tier}.${attempt}`),
        ["0.1", "1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]
      )
      assert.strictEqual((yield* memory.log("orders.retry-1", 0)).length, 4)
      assert.notInclude(yield* topicNames, "orders.retry-2")
      assert.strictEqual((yield* memory.log("orders.retry-3", 0)).length, 2)
    })
  )

  scenario("RTY-18 a separate consumer reads the tiers in its own group", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const retry = RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, consumer: "separate" })
      const { calls, binding } = recording((_, call) => call === 1, { retry })
      yield* start(binding)
      yield* publish("orders", ["x"])
      yield* advance("11 seconds")
      yield* advance("1 second")
      assert.deepStrictEqual(times(calls), [0, 10_000])
      assert.deepStrictEqual(yield* committed("billing.retry", "orders.retry-1"), yield* ends("orders.retry-1"))
      assert.deepStrictEqual(yield* committed("billing", "orders.retry-1"), [])
    })
  )

  scenario("RTY-18 ruling 50 a tier can be paused by itself; the binding goes on", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { calls, binding } = recording((value) => value === "bad")
      const app = yield* start(binding)
      yield* app.connector.pause("orders", { tier: 1 })
      yield* publish("orders", ["bad"])
      yield* advance("1 minute")
      yield* publish("orders", ["good"])
      yield* settle
      assert.deepStrictEqual(
        calls.map(({ value }) => value),
        ["bad", "good"]
      )
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      const again = yield* Effect.flip(app.connector.pause("orders", { tier: 1 }))
      assert.include(again.message, "tiers paused by themselves: 1")
      yield* app.connector.pause("orders")
      yield* app.connector.resume("orders", { tier: 1 })
      yield* advance("1 minute")
      assert.strictEqual(calls.length, 2)
      yield* app.connector.resume("orders")
      yield* settle
      assert.strictEqual(calls.length, 3)
    })
  )

  scenario("ruling 50 a tier that does not exist is refused with the tiers that do, in whatever state", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { binding } = recording(() => false)
      const { connector } = yield* start(binding)
      for (const command of [connector.pause, connector.resume]) {
        for (const tier of [99, 0, -1, 1.5]) {
          const missing = yield* Effect.flip(command("orders", { tier }))
          assert.strictEqual(missing._tag, "UnknownTier")
          assert.strictEqual(missing.message, `There is no tier ${tier}: the binding has tiers 1 to 3.`)
        }
        for (const options of [null, { tier: "1" }, { tier: null }, "1"])
          assert.strictEqual((yield* Effect.flip(command("orders", options as never)))._tag, "InvalidArgument")
      }
      yield* connector.stop("orders")
      assert.strictEqual((yield* Effect.flip(connector.pause("orders", { tier: 99 })))._tag, "UnknownTier")
    })
  )

  scenario(
    "NAM-08 NAM-09 CFG ruling 1 tiers with one topic name, and tiers that two groups would share, are refused with both names",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const { binding } = recording(always)
        const app = yield* start(binding)
        const other = Binding.make("audit", { ...orders, groupId: "audit", handler: () => Effect.void })
        const refusal = yield* Effect.flip(app.connector.register(other))
        assert.include(refusal.message, "'orders.DLT'")
        assert.include(refusal.message, "binding 'orders'")
        assert.include(refusal.message, "perGroup")
        const strict = Binding.make("strict", {
          ...orders,
          topic: "s",
          retry: RetryPolicy.tiered(),
          orderingMode: "STRICT",
          handler: () => Effect.void
        })
        assert.include((yield* Effect.flip(app.connector.register(strict))).message, "STRICT")
      })
  )

  scenario("RTY-23 a retry topic that is deleted while in use is made again, and nothing is lost", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { calls, binding } = recording((_, call) => call <= 1)
      yield* start(binding)
      yield* withAdmin((admin) => admin.deleteTopics(["orders.retry-1"]))
      yield* publish("orders", ["x"])
      yield* advance("30 seconds")
      yield* advance("30 seconds")
      assert.strictEqual(calls.length, 2)
      assert.strictEqual((yield* memory.log("orders.retry-1", 0)).length, 1)
    })
  )
})

const withAdmin = <A, E>(use: (admin: Broker.Admin) => Effect.Effect<A, E>) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) => Effect.scoped(Effect.flatMap(broker.admin, use)))

/** Log ends of the partitions that have records. */
const ends = (topic: string) =>
  withAdmin((admin) =>
    Effect.map(admin.topicOffsets(topic), (offsets) =>
      offsets.flatMap(({ partition, logEnd }) => (logEnd === 0n ? [] : [{ topic, partition, offset: logEnd }]))
    )
  )

const committed = (groupId: string, topic: string) =>
  withAdmin((admin) =>
    Effect.map(admin.committedOffsets(groupId, [topic]), (offsets) =>
      offsets.flatMap(({ topic, partition, offset }) => (offset > 0n ? { topic, partition, offset } : []))
    )
  )

const topicNames = withAdmin((admin) => admin.listTopics)
