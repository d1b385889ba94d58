import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, bytes, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import type { PlanRequest } from "../../src/ReplayPlan.ts"
import * as TopicName from "../../src/TopicName.ts"
import { ordersReplay } from "../replay/ordersReplay.ts"
import { atOnce, commitAll, lettersCopied, runsOf } from "./runProcesses.ts"

const withLetters = Effect.fnUntraced(function* (values: ReadonlyArray<string> = [..."abcde"]) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  yield* append("orders.DLT", 0, values)
  return memory
})

const at = (...offsets: ReadonlyArray<number>) => offsets.map((offset) => ({ partition: 0, offset: BigInt(offset) }))

const from = (topic: string, value: string, replays = 0) => ({
  ...{ key: bytes("k"), value: bytes(value) },
  headers: Object.entries({
    "x-eventbus-original-topic": topic,
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": "7",
    "x-eventbus-replay-count": String(replays),
    "x-eventbus-copy-owner": "orders.DLT/billing"
  }).map(([key, header]) => ({ key, value: bytes(header) }))
})

const failure = <A, E, R>(effect: Effect.Effect<A, E, R>) => inTime(Effect.flip(effect), "1 second")

type Change = () => Effect.Effect<void, unknown, MemoryBroker.MemoryBroker>

describe("plans over dead letters", () => {
  scenario(
    "OPS-07 a plan says what it would take, from where to where, and what stays and why; it changes nothing",
    () =>
      Effect.gen(function* () {
        const memory = yield* withLetters([..."abc"])
        yield* memory.createTopic("returns")
        yield* memory.append("orders.DLT", 0, [
          from("returns", "r1"),
          from("strangers", "s1"),
          from("strangers", "s2"),
          from("orders", "often", 3)
        ])
        const runs = yield* runsOf("host-a", { origins: ["returns"] })
        const plan = yield* inTime(runs.plan({ action: "replay", select: { all: true }, reason: "gateway is back" }))
        assert.deepInclude(plan, {
          ...{ action: "replay", tier: undefined, transform: undefined, reason: "gateway is back", by: "host-a" },
          ...{ rate: 50, canary: 20, canaryWaitMillis: 60_000, stopAbove: 5, ignoreMaxReplays: false },
          ...{ count: 4, passedOver: 1, unreadable: 0, sample: at(0, 1, 2, 3), ends: at(7) },
          targets: new Map([
            ["orders", 3],
            ["returns", 1]
          ]),
          refusals: new Map([["Topic 'strangers' is neither the main topic of the binding nor one of its origins.", 2]])
        })
        assert.strictEqual(plan.expiresAtMillis - plan.createdAtMillis, 900_000)
        assert.lengthOf(yield* memory.log("orders", 0), 0)
        const other = yield* runsOf("host-b")
        assert.deepStrictEqual(yield* inTime(other.getPlan(plan.id)), plan)
        assert.deepStrictEqual(yield* inTime(other.list), [])
      })
  )

  scenario("OPS-07 a plan for a tier whose topic is missing says that nothing would be published", () =>
    Effect.gen(function* () {
      yield* withLetters()
      const runs = yield* runsOf("host-a")
      const request = { ...atOnce, action: "toTier", tier: 2 } as const
      const missing = yield* inTime(runs.plan(request))
      assert.strictEqual(missing.count, 0)
      assert.deepStrictEqual(Array.from(missing.refusals.values()), [5])
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders.retry-2")
      const plan = yield* inTime(runs.plan(request))
      assert.deepStrictEqual(plan.targets, new Map([["orders.retry-2", 5]]))
      assert.strictEqual((yield* inTime(runs.apply(plan.id))).dealtWith, 5)
      assert.lengthOf(yield* memory.log("orders.retry-2", 0), 5)
    })
  )

  scenario("OPS-07 no plan takes letters to a retry tier where keys keep their order, also no older one", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters()
      yield* memory.createTopic("orders.retry-2")
      const request = { ...atOnce, action: "toTier", tier: 2 } as const
      const older = yield* inTime((yield* runsOf("host-a")).plan(request))
      const runs = yield* runsOf("host-a", { ordersKeys: true })
      const refused = yield* failure(runs.plan(request))
      assert.deepInclude(refused, { _tag: "InvalidArgument", argument: "tier", given: "2" })
      assert.include(refused.message, 'no retry tier with orderingMode "PER_KEY"')
      assert.strictEqual((yield* failure(runs.apply(older.id)))._tag, "PlanStale")
      assert.strictEqual((yield* inTime(runs.plan(atOnce))).count, 5)
    })
  )

  scenario("OPS-07 the selection is frozen: letters that come after the plan are not taken", () =>
    Effect.gen(function* () {
      yield* withLetters()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan(atOnce))
      yield* append("orders.DLT", 0, ["late"])
      const receipt = yield* inTime((yield* runsOf("host-b")).apply(plan.id))
      assert.deepInclude(receipt, { state: "done", count: 5, dealtWith: 5 })
      assert.deepStrictEqual(yield* lettersCopied(plan.id), ["0@0", "0@1", "0@2", "0@3", "0@4"])
    })
  )

  scenario("OPS-07 a plan is applied once, and the second one learns by whom", () =>
    Effect.gen(function* () {
      yield* withLetters()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan(atOnce))
      yield* inTime(runs.apply(plan.id))
      const refused = yield* failure((yield* runsOf("host-b")).apply(plan.id))
      assert.deepInclude(refused, { _tag: "PlanApplied", id: plan.id, host: "host-a" })
      assert.lengthOf(yield* lettersCopied(plan.id), 5)
    })
  )

  scenario("OPS-07 a plan expires after 15 minutes, and one that nobody made is unknown", () =>
    Effect.gen(function* () {
      yield* withLetters()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan(atOnce))
      yield* advance("15 minutes")
      yield* advance("2 seconds")
      assert.strictEqual((yield* failure(runs.apply(plan.id)))._tag, "PlanExpired")
      const id = "00000000-0000-4000-8000-000000000000"
      assert.deepInclude(yield* failure(runs.apply(id)), { _tag: "UnknownPlan", id, topic: "orders.DLT" })
      assert.strictEqual((yield* failure(runs.getPlan(id)))._tag, "UnknownPlan")
      yield* advance("1 day")
      yield* inTime(runs.plan(atOnce))
      assert.strictEqual((yield* failure(runs.getPlan(plan.id)))._tag, "UnknownPlan")
    })
  )

  const stale: ReadonlyArray<readonly [what: string, change: Change, says: RegExp]> = [
    [
      "somebody replayed a letter of it",
      () =>
        Effect.gen(function* () {
          const { broker } = yield* MemoryBroker.MemoryBroker
          const tiers = Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, [])
          yield* inTime(Replay.make({ ...ordersReplay, broker, tiers }).replayRecords(at(1)))
        }),
      /takes 4 letters instead of 5/
    ],
    [
      "a purge removed a letter of it",
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          const admin = yield* memory.broker.admin
          yield* admin.deleteRecords("orders.DLT", [{ partition: 0, before: 1n }])
        }).pipe(Effect.scoped),
      /takes 4 letters instead of 5/
    ],
    [
      "the topic was made again",
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          const admin = yield* memory.broker.admin
          yield* admin.deleteTopics(["orders.DLT"])
          yield* memory.createTopic("orders.DLT")
          yield* append("orders.DLT", 0, [..."abcde"])
        }).pipe(Effect.scoped),
      /topic 'orders.DLT' was made again/
    ]
  ]
  for (const [what, change, says] of stale) {
    scenario(`OPS-07 a plan is refused when ${what}, and says so`, () =>
      Effect.gen(function* () {
        yield* withLetters()
        const runs = yield* runsOf("host-a")
        const plan = yield* inTime(runs.plan(atOnce))
        yield* Effect.orDie(change())
        const refused = yield* failure(runs.apply(plan.id))
        assert.strictEqual(refused._tag, "PlanStale")
        assert.match(refused.message, says)
        assert.lengthOf(yield* lettersCopied(plan.id), 0)
        assert.deepStrictEqual(yield* inTime(runs.list), [])
      })
    )
  }

  scenario("OPS-07 a plan is refused when the binding may write to other topics, or has lost its transform", () =>
    Effect.gen(function* () {
      yield* withLetters()
      const transforms = new Map([["repair", () => Effect.succeed({ value: "x" })]])
      const runs = yield* runsOf("host-a", { origins: ["returns"], transforms })
      const plan = yield* inTime(runs.plan({ ...atOnce, transform: "repair" }))
      const refused = yield* failure((yield* runsOf("host-b")).apply(plan.id))
      assert.match(refused.message, /may write to 'orders' instead of 'orders', 'returns'/)
      assert.match(refused.message, /transform .repair., a function in the code of the binding, is missing/)
    })
  )

  scenario("OPS-07 OPS-08 entries that nobody wrote in a transaction count for nothing", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan(atOnce))
      const forged = "11111111-1111-4111-8111-111111111111"
      const own = yield* memory.log("orders.DLT.replays", 0)
      yield* memory.append("orders.DLT.replays", 0, [
        { key: bytes(`plan/${forged}/billing`), value: own[0]!.value },
        { key: bytes(`halt/${plan.id}/billing`), value: bytes(`{"v":1,"verb":"cancel","reason":"x","by":"x"}`) },
        { key: bytes(`plan/${plan.id}/billing`), value: null },
        { key: bytes(`plan/${plan.id}/billing`), value: bytes("{") }
      ])
      assert.strictEqual((yield* failure(runs.apply(forged)))._tag, "UnknownPlan")
      assert.deepInclude(yield* inTime(runs.apply(plan.id)), { state: "done", dealtWith: 5 })
    })
  )

  scenario("OPS-07 a discard plan gives letters up for its reason, and publishes nothing", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters()
      const runs = yield* runsOf("host-a")
      const request = { action: "discard", select: { records: at(1, 3) }, reason: "the customer is gone" } as const
      const plan = yield* inTime(runs.plan(request))
      assert.deepInclude(plan, { count: 2, targets: new Map() })
      const receipt = yield* inTime(runs.apply(plan.id))
      assert.deepInclude(receipt, { state: "done", dealtWith: 2, passed: 0, waiting: 0, closed: true })
      assert.lengthOf(yield* memory.log("orders", 0), 0)
      const rest = yield* inTime(runs.plan(atOnce))
      assert.deepStrictEqual(rest.sample, at(0, 2, 4))
    })
  )
})

const request = { action: "replay", select: { all: true }, reason: "why" } as const

/** A mutation of a request, and where the refusal says it is. */
const bad: ReadonlyArray<readonly [change: object, argument: string]> = [
  [{ action: "purge" }, "action"],
  [{ action: undefined }, "action"],
  [{ tier: 1 }, "tier"],
  [{ action: "toTier" }, "tier"],
  [{ action: "toTier", tier: "1" }, "tier"],
  [{ select: {} }, "selection"],
  [{ select: { records: [{ partition: 0, offset: 1 }] } }, "selection.records[0].offset"],
  [{ select: undefined }, "selection"],
  [{ transform: "unknown" }, "transform"],
  [{ transform: 3 }, "transform"],
  ...[0, -1, 1.5, Number.NaN, 100_001, "50", null].map((rate) => [{ rate }, "rate"] as const),
  ...[-1, 0.5, Number.POSITIVE_INFINITY, "1"].map((canary) => [{ canary }, "canary"] as const),
  ...[-1, "soon", Number.NaN, {}].map((canaryWait) => [{ canaryWait }, "canaryWait"] as const),
  ...[-1, 101, Number.NaN, "5"].map((stopAbove) => [{ stopAbove }, "stopAbove"] as const),
  [{ ignoreMaxReplays: "yes" }, "ignoreMaxReplays"],
  ...["", "  ", undefined, 7].map((reason) => [{ reason }, "reason"] as const),
  [{ by: "" }, "by"],
  [{ rates: 5 }, "rates"],
  [{ action: "discard", rate: 5 }, "rate"],
  [{ action: "discard", canary: 5 }, "canary"],
  [{ action: "discard", transform: "repair" }, "transform"]
]

describe("what no command takes", () => {
  scenario("OPS-07 a plan is refused by path, with the value and what is allowed, and nothing is written", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters()
      const transforms = new Map([["repair", () => Effect.succeed({ value: "x" })]])
      const runs = yield* runsOf("host-a", { transforms })
      for (const [change, argument] of bad) {
        const given = { ...request, ...change } as PlanRequest
        const refused = yield* failure(runs.plan(given))
        const shown = `${JSON.stringify(change)}: ${JSON.stringify(refused)}`
        assert.deepInclude(refused, { _tag: "InvalidArgument", command: "plan", argument }, shown)
        assert.isNotEmpty(refused._tag === "InvalidArgument" ? refused.expected : "", shown)
      }
      const tier = yield* failure(runs.plan({ ...request, action: "toTier", tier: 3 }))
      assert.deepInclude(tier, { _tag: "UnknownTier", tier: 3, tiers: 2 })
      const none = yield* failure(runs.plan(null as never))
      assert.deepInclude(none, { _tag: "InvalidArgument", argument: "request" })
      const admin = yield* memory.broker.admin
      assert.notInclude(yield* admin.listTopics, "orders.DLT.replays")
    }).pipe(Effect.scoped)
  )

  scenario("OPS-08 ids, reasons and rates of runs are refused by path", () =>
    Effect.gen(function* () {
      yield* withLetters()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan(atOnce))
      for (const id of ["", "x", "../plan", plan.id.toUpperCase(), `${plan.id} `, 7 as never, undefined as never]) {
        for (const refused of [
          yield* failure(runs.apply(id)),
          yield* failure(runs.resume(id)),
          yield* failure(runs.receipt(id)),
          yield* failure(runs.pause(id, "why")),
          yield* failure(runs.cancel(id, "why")),
          yield* failure(runs.setRate(id, 5)),
          yield* failure(runs.getPlan(id))
        ])
          assert.deepInclude(refused, { _tag: "InvalidArgument", argument: "id" }, String(id))
      }
      assert.deepInclude(yield* failure(runs.pause(plan.id, " ")), { _tag: "InvalidArgument", argument: "reason" })
      assert.deepInclude(yield* failure(runs.setRate(plan.id, 0)), { _tag: "InvalidArgument", argument: "rate" })
      // A plan that was not applied has no run.
      assert.strictEqual((yield* failure(runs.pause(plan.id, "why")))._tag, "UnknownRun")
      yield* inTime(runs.apply(plan.id))
      yield* commitAll
      for (const refused of [
        yield* failure(runs.pause(plan.id, "why")),
        yield* failure(runs.cancel(plan.id, "why")),
        yield* failure(runs.setRate(plan.id, 5)),
        yield* failure(runs.resume(plan.id))
      ])
        assert.deepInclude(refused, { _tag: "RunOver", state: "done" })
    })
  )
})
