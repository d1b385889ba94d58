/** `plan --check` names problems of the topics of a binding with order per key, and keys that a change of its settings would leave behind. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, inTime, scenario, start } from "../../../../test/scenarios/bus.ts"
import { orders as ordersOf, publish } from "../../../../test/scenarios/order/orders.ts"
import * as Binding from "../../src/Binding.ts"
import type * as BindingOptions from "../../src/BindingOptions.ts"
import * as Plan from "../../src/Plan.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"

type Settings = Partial<BindingOptions.Settings<Uint8Array | null, Uint8Array | null>>

const minutes = RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 2 }] })

const found = (settings: Settings = {}) =>
  inTime(
    Plan.check(
      Plan.make(
        Binding.make("orders", {
          ...{ topic: "orders", groupId: "billing", orderingMode: "PER_KEY", processingOrder: "key", retry: minutes },
          ...settings,
          handler: () => Effect.void
        })
      )
    )
  )

const isProblem = ({ severity }: Plan.Finding): boolean => severity !== "info"

const shown = (findings: ReadonlyArray<Plan.Finding>) =>
  findings.filter(isProblem).map(({ severity, code, subject }) => `${severity} ${code} ${subject}`)

const source = (config: Readonly<Record<string, string>>, partitions = 1) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) =>
    createTopic("orders", { partitions, config: new Map(Object.entries(config)) })
  )

describe("PKO-07 the plan of a binding with order per key", () => {
  scenario(
    "PKO-07 retention of the source below twice all delays is refused with path, value and what is allowed",
    () =>
      Effect.gen(function* () {
        yield* source({ "retention.ms": "239999" })
        const [first, ...more] = (yield* found()).filter(({ severity }) => severity === "error")
        assert.deepStrictEqual(more, [])
        assert.deepStrictEqual([first?.code, first?.subject], ["short-retention", "orders"])
        assert.include(
          first?.message,
          "retention.ms of source 'orders' is 239999; allowed with orderingMode PER_KEY is 240000"
        )
        assert.deepStrictEqual(shown(yield* found({ orderingMode: "RELAXED_IN_RETRY" })), [])
      })
  )

  for (const [title, config] of [
    ["of twice all delays", { "retention.ms": "240000" }],
    ["without an end", { "retention.ms": "-1" }],
    ["of a topic that is compacted and deletes nothing", { "retention.ms": "1", "cleanup.policy": "compact" }]
  ] as const) {
    scenario(`PKO-07 retention ${title} is accepted`, () =>
      Effect.gen(function* () {
        yield* source(config)
        assert.deepStrictEqual(
          (yield* found()).filter(({ code }) => code === "short-retention"),
          []
        )
      })
    )
  }

  scenario("PKO-07 a compacted source, and holdFor of more than half the retention, are warnings", () =>
    Effect.gen(function* () {
      yield* source({ "retention.ms": "3600000", "cleanup.policy": "compact,delete" })
      const held = (holdFor: `${number} minutes`) => found({ perKey: { onDeadLetter: "hold", holdFor } })
      assert.deepStrictEqual(shown(yield* held("30 minutes")), ["warning compacted orders"])
      const findings = (yield* held("31 minutes")).filter(isProblem)
      assert.deepStrictEqual(shown(findings), ["warning short-retention orders", "warning compacted orders"])
      assert.include(findings[0]?.message, "perKey.holdFor is 1860000 ms, retention.ms of 'orders' is 3600000")
    })
  )

  scenario("PKO-07 a retry topic that is narrower than its source, compacted, or forgets held records is refused", () =>
    Effect.gen(function* () {
      yield* source({}, 6)
      const narrow = yield* found({ retry: RetryPolicy.tiered({ tiers: ["1 minute"], partitions: 3 }) })
      assert.deepStrictEqual(shown(narrow), ["error fewer-partitions orders.retry-1"])
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders.retry-1", {
        partitions: 2,
        config: new Map([
          ["cleanup.policy", "compact,delete"],
          ["retention.ms", "7200000"]
        ])
      })
      assert.deepStrictEqual(shown(yield* found({ perKey: { onDeadLetter: "hold", holdFor: "2 hours" } })), [
        ...["error fewer-partitions orders.retry-1", "error compacted orders.retry-1"],
        "error short-retention orders.retry-1"
      ])
    })
  )
})

describe("PKO-08 a plan that would leave parked keys behind", () => {
  const parked = Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders")
    const app = yield* start(ordersOf({ order: "key", fails: { a1: 9 }, tiers: ["10 seconds", "60 seconds"] }).binding)
    yield* publish([
      ["a", "a1"],
      ["a", "a2"]
    ])
    yield* advance("15 seconds")
    yield* app.close
  })
  const tiers = (...delays: ReadonlyArray<`${number} seconds`>) =>
    RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: delays.map((delay) => ({ delay, maxAttempts: 1 })) })
  const both = tiers("10 seconds", "60 seconds")

  scenario("PKO-08 a new group name is refused while keys of the name that it adopts are parked", () =>
    Effect.gen(function* () {
      yield* parked
      const findings = (yield* found({ groupId: "invoicing", adopts: ["billing"], retry: both })).filter(isProblem)
      assert.includeMembers(
        findings.map(({ severity, code }) => `${severity} ${code}`),
        ["error parked-keys"]
      )
      assert.include(findings.map(({ message }) => message).join(), "group 'billing', which the binding adopts")
    })
  )

  scenario("PKO-08 a removed tier with parked keys is refused, and so is a mode that forgets them", () =>
    Effect.gen(function* () {
      yield* parked
      const [refused, ...more] = (yield* found({ retry: tiers("10 seconds") })).filter(isProblem)
      assert.deepStrictEqual(more, [])
      assert.deepStrictEqual(
        [refused?.severity, refused?.code, refused?.subject],
        ["error", "parked-keys", "orders.retry-2"]
      )
      assert.include(refused?.message, "the binding does not read it")
      const strict = { orderingMode: "STRICT", retry: RetryPolicy.blocking() } as const
      assert.deepStrictEqual(shown(yield* found(strict)), ["error parked-keys orders.retry-2"])
      const relaxed = { orderingMode: "RELAXED_IN_RETRY", processingOrder: "unordered", retry: both } as const
      const [unordered] = (yield* found(relaxed)).filter(isProblem)
      assert.include(unordered?.message, "keeps no order of keys in it")
    })
  )

  scenario("PKO-08 settings that serve parked keys are accepted, and others once none is left", () =>
    Effect.gen(function* () {
      yield* parked
      assert.deepStrictEqual(shown(yield* found({ retry: both })), [])
      assert.deepStrictEqual(shown(yield* found({ orderingMode: "RELAXED_IN_RETRY", retry: both })), [])
      yield* start(ordersOf({ order: "key", tiers: ["10 seconds", "60 seconds"] }).binding)
      yield* advance("70 seconds")
      yield* advance("10 seconds")
      assert.deepStrictEqual(shown(yield* found({ retry: tiers("10 seconds") })), [])
    })
  )
})
