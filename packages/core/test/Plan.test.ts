import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { inTime, now, orders, publish, scenario, start, until } from "../../../test/scenarios/bus.ts"
import * as Binding from "../src/Binding.ts"
import type * as BindingOptions from "../src/BindingOptions.ts"
import * as DeadLetter from "../src/DeadLetter.ts"
import * as Plan from "../src/Plan.ts"
import * as RetryPolicy from "../src/RetryPolicy.ts"
import * as Route from "../src/Route.ts"

class Down extends Data.TaggedError("Down")<object> {}

const bound = (settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}) =>
  Binding.make("orders", { ...orders, ...settings, handler: () => Effect.void })

const planned = (settings?: Partial<BindingOptions.Settings<Uint8Array | null, string>>) => Plan.make(bound(settings))

describe("plan of a binding", () => {
  it("names every topic with its role, its delay, and its creator", () => {
    const plan = planned({ retry: RetryPolicy.tiered({ tiers: ["1 minute", "5 minutes"], partitions: 3 }) })
    assert.deepStrictEqual(
      plan.topics.map(({ topic, role, delayMillis, partitions, createIfMissing }) => [
        topic,
        role,
        delayMillis,
        partitions,
        createIfMissing
      ]),
      [
        ["orders", "source", undefined, undefined, false],
        ["orders.retry-1", "retry", 60_000, 3, true],
        ["orders.retry-2", "retry", 300_000, 3, true],
        ["orders.DLT", "dead-letter", undefined, undefined, true]
      ]
    )
    const replaying = Binding.make("orders", {
      ...orders,
      deadLetter: DeadLetter.scheduledReplay({ cooldown: "1 hour" }),
      missingTopics: "wait",
      handler: () => Effect.void
    })
    assert.deepStrictEqual(
      Plan.make(replaying).topics.map(({ topic, createIfMissing }) => [topic, createIfMissing]),
      [
        ["orders", false],
        ["orders.DLT", false],
        ["orders.DLT.replays", true]
      ]
    )
  })

  it("names groups with their members, clients, and buffer limits", () => {
    const shared = planned({ concurrency: 3, retry: RetryPolicy.tiered({ tiers: ["1 minute"] }) })
    assert.deepStrictEqual(shared.consumers, [{ groupId: "billing", topics: ["orders", "orders.retry-1"], members: 3 }])
    assert.strictEqual(shared.clients, 4)
    const separate = planned({
      concurrency: 3,
      maxBufferedBytes: 1_000,
      maxBufferedRecords: 10,
      retry: RetryPolicy.tiered({ tiers: ["1 minute"], consumer: "separate" })
    })
    assert.deepStrictEqual(separate.consumers, [
      { groupId: "billing", topics: ["orders"], members: 3 },
      { groupId: "billing.retry", topics: ["orders.retry-1"], members: 1 }
    ])
    assert.deepStrictEqual(separate.memory, { records: 40, bytes: 4_000 })
  })

  it("RTY-05 the default tiers: 10 deliveries, 30 attempts, 1110 s of delays", () => {
    const { retries } = planned({ retry: RetryPolicy.tiered({ blocking: { jitter: 0 } }) })
    assert.deepStrictEqual([retries.deliveriesInAll, retries.attempts], [10, 30])
    const all = 1_110_000 + 10 * 300
    assert.deepStrictEqual(retries.exhausted, { earliestMillis: all, latestMillis: all })
    assert.strictEqual(retries.longestMillis, 1_110_000 + 10 * 420_000)
    const jittered = planned({ retry: RetryPolicy.blocking({ jitter: 0.5 }) }).retries
    assert.deepStrictEqual(jittered.exhausted, { earliestMillis: 150, latestMillis: 450 })
  })

  it("is computed at once even for the largest number of deliveries and attempts", () => {
    const retry = RetryPolicy.tiered({
      blocking: { maxAttempts: 1_000_000 },
      tiers: [{ delay: "1 second", maxAttempts: 1_000_000_000 }]
    })
    const { retries } = planned({ retry })
    assert.strictEqual(retries.deliveries.length, 100)
    assert.strictEqual(retries.deliveriesInAll, 1_000_000_001)
  })

  scenario("gives the exact millisecond of each attempt, and of the dead letter", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const calls: Array<number> = []
      const binding = Binding.make("orders", {
        ...orders,
        retry: RetryPolicy.tiered({
          blocking: { maxAttempts: 3, jitter: 0 },
          tiers: ["10 seconds", { delay: "1 minute", maxAttempts: 2 }]
        }),
        onError: { Down: Route.retry },
        handler: () =>
          Effect.andThen(
            Effect.map(now, (at) => calls.push(at)),
            new Down()
          )
      })
      const app = yield* start(binding)
      yield* publish("orders", ["x"])
      yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "9 seconds")
      const { retries } = Plan.make(binding)
      assert.strictEqual(calls.length, retries.attempts)
      assert.deepStrictEqual(
        retries.deliveries.map(({ first, last }) => [first.latestMillis, last.earliestMillis]),
        Array.from({ length: retries.deliveriesInAll }, (_, index) => [calls[index * 3], calls[index * 3 + 2]])
      )
      assert.strictEqual(retries.exhausted.latestMillis, calls.at(-1))
    })
  )
})

describe("plan checked against a cluster", () => {
  const findings = (settings?: Partial<BindingOptions.Settings<Uint8Array | null, string>>) =>
    Effect.map(inTime(Plan.check(planned(settings))), (all) =>
      all.map(({ severity, code, subject }) => [severity, code, subject].join(" "))
    )
  const tiered = RetryPolicy.tiered({ tiers: ["1 hour"] })

  scenario("a missing source is an error; topics that the binding makes are listed with their size", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      assert.deepStrictEqual(yield* findings(), ["error source-missing orders", "info topic-to-create orders.DLT"])
      yield* memory.createTopic("orders", { partitions: 6 })
      const [made, ...more] = yield* inTime(Plan.check(planned()))
      assert.deepStrictEqual(more, [])
      assert.include(made?.message, "6 partitions, replication 1")
      assert.deepStrictEqual(yield* findings({ missingTopics: "wait" }), ["error topic-missing orders.DLT"])
      // Looking changes nothing.
      assert.deepStrictEqual(yield* findings(), ["info topic-to-create orders.DLT"])
    })
  )

  scenario("CFG-12 more consumers than partitions is a warning with both numbers", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* memory.createTopic("orders.DLT", { partitions: 2 })
      assert.deepStrictEqual(yield* findings({ concurrency: 2 }), [])
      const [finding, ...more] = yield* inTime(Plan.check(planned({ concurrency: 5 })))
      assert.deepStrictEqual(more, [])
      assert.strictEqual(
        finding?.message,
        "concurrency is 5, topic 'orders' has 2 partitions: 3 consumers of each process will be idle."
      )
    })
  )

  scenario(
    "reports a retry topic that has fewer partitions, takes smaller records, is compacted, or has too short a retention",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 6, config: new Map([["max.message.bytes", "2000000"]]) })
        yield* memory.createTopic("orders.DLT", { partitions: 6, config: new Map([["max.message.bytes", "2000000"]]) })
        yield* memory.createTopic("orders.retry-1", {
          partitions: 2,
          config: new Map([
            ["max.message.bytes", "1000000"],
            ["cleanup.policy", "compact,delete"],
            ["retention.ms", "3600000"]
          ])
        })
        assert.deepStrictEqual(yield* findings({ retry: tiered }), [
          "warning fewer-partitions orders.retry-1",
          "warning smaller-messages orders.retry-1",
          "warning compacted orders.retry-1",
          "warning short-retention orders.retry-1"
        ])
      })
  )
})
