/** The dead letters of a binding of several topics: lists show all of them, and commands are about one topic. */
import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, type DeadLetterList, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, deadLetterDepth, inTime, scenario, start, until, valuesOf } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

const topics = ["orders", "payments"] as const

const settings = {
  topic: topics,
  groupId: "billing",
  value: Serde.string,
  retry: RetryPolicy.blocking({ maxAttempts: 1 }),
  onError: { Down: Route.retry }
} as const

const failing = Binding.make("billing", { ...settings, handler: () => Effect.fail(new Down()) })

/** A binding whose records have all failed, one a minute: o1, p1, o2, p2 and so on. */
const withLetters = (each: number) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    for (const topic of topics) yield* memory.createTopic(topic)
    const app = yield* start(failing)
    for (let n = 1; n <= each; n++) {
      for (const topic of topics) {
        yield* append(topic, 0, [`${topic[0]}${n}`])
        yield* advance("1 minute")
      }
    }
    yield* until(() => app.of("Settled").length === 2 * each, "1 second")
    return { ...app, letters: yield* app.connector.deadLetters("billing"), runs: yield* app.connector.runs("billing") }
  })

const shown = ({ letters }: DeadLetterList.SummaryPage) =>
  letters.map(({ sourceTopic, partition, offset }) => `${sourceTopic} ${partition}@${offset}`)

describe("RCH-11 lists and figures of several topics", () => {
  scenario("RCH-11 a list shows the newest letters of all topics, and its pages have each of them once", () =>
    Effect.gen(function* () {
      const { letters } = yield* withLetters(3)
      const newest = [3, 2, 1].flatMap((n) => [`payments 0@${n - 1}`, `orders 0@${n - 1}`])
      assert.deepStrictEqual(shown(yield* inTime(letters.letters())), newest)
      const found: Array<string> = []
      let before: string | undefined
      do {
        const page: DeadLetterList.SummaryPage = yield* inTime(
          letters.letters({ limit: 1, ...(before === undefined ? {} : { before }) })
        )
        found.push(...shown(page))
        before = page.next
      } while (before !== undefined)
      assert.deepStrictEqual(found, newest)
    })
  )

  scenario("RCH-11 the cursor of one topic is none of all topics, nor the other way round", () =>
    Effect.gen(function* () {
      const { letters } = yield* withLetters(2)
      const { next: ofAll = "" } = yield* inTime(letters.letters({ limit: 1 }))
      const orders = yield* letters.ofTopic("orders")
      const { next: ofOne = "" } = yield* inTime(orders.letters({ limit: 1 }))
      for (const [list, cursor] of [
        [letters, ofOne],
        [orders, ofAll]
      ] as const) {
        const error = yield* Effect.flip(inTime(list.letters({ before: cursor })))
        assert.strictEqual(error._tag, "InvalidArgument")
      }
    })
  )

  scenario("RCH-11 figures and groups count the letters of all topics, and so does the gauge", () =>
    Effect.gen(function* () {
      const { letters } = yield* withLetters(2)
      const { count, stored, byExceptionClass } = yield* inTime(letters.stats)
      assert.deepStrictEqual([count, stored, Array.from(byExceptionClass)], [4, 4, [["Down", 4]]])
      const { groups } = yield* inTime(letters.groups())
      assert.deepStrictEqual(
        groups.map((group) => [group.sourceTopic, group.originalTopic, group.count]),
        [
          ["payments", "payments", 2],
          ["orders", "orders", 2]
        ]
      )
      const orders = yield* letters.ofTopic("orders")
      assert.strictEqual((yield* inTime(orders.stats)).count, 2)
      assert.deepStrictEqual(yield* deadLetterDepth, [4])
    })
  )
})

describe("RCH-11 commands on the letters of one topic", () => {
  scenario("RCH-11 a command without a topic does nothing, and names the topics", () =>
    Effect.gen(function* () {
      const { letters, runs } = yield* withLetters(1)
      const select = { all: true } as const
      const refused = yield* Effect.forEach(
        [
          letters.replay(1),
          letters.replayWindow(0, 1),
          letters.discard([{ partition: 0, offset: 0n }], "why"),
          letters.letter({ partition: 0, offset: 0n }),
          letters.purge(Number.POSITIVE_INFINITY),
          letters.rehearse(select),
          runs.plan({ action: "replay", select, reason: "why" })
        ],
        (command) => Effect.flip(inTime(command as Effect.Effect<unknown, { readonly message: string }>))
      )
      for (const { message } of refused)
        assert.match(
          message,
          /: topic is undefined, expected a topic that the binding reads: orders, payments\. Nothing was done\.$/
        )
      assert.strictEqual((yield* inTime(letters.stats)).count, 2)
      const { message } = yield* Effect.flip(letters.ofTopic("refunds"))
      assert.strictEqual(
        message,
        "deadLetters: topic is refunds, expected a topic that the binding reads: orders, payments. Nothing was done."
      )
    })
  )

  scenario("RCH-11 a replay of one topic publishes there alone, and the letters of the other one stay", () =>
    Effect.gen(function* () {
      const { letters } = yield* withLetters(2)
      const payments = yield* letters.ofTopic("payments")
      assert.strictEqual((yield* inTime(payments.replay(Number.POSITIVE_INFINITY))).replayed, 2)
      assert.deepStrictEqual(yield* valuesOf("payments"), ["p1", "p2", "p1", "p2"])
      assert.deepStrictEqual(yield* valuesOf("orders"), ["o1", "o2"])
      const orders = yield* letters.ofTopic("orders")
      assert.strictEqual((yield* inTime(orders.stats)).count, 2)
    })
  )

  scenario("RCH-11 a plan is made for one topic, and its id finds it among the runs of all topics", () =>
    Effect.gen(function* () {
      const { runs } = yield* withLetters(1)
      const payments = yield* runs.ofTopic("payments")
      const plan = yield* inTime(payments.plan({ action: "replay", select: { all: true }, reason: "again", canary: 0 }))
      assert.deepStrictEqual(Array.from(plan.targets), [["payments", 1]])
      assert.strictEqual((yield* inTime(runs.getPlan(plan.id))).count, 1)
      const receipt = yield* inTime(runs.apply(plan.id))
      assert.deepStrictEqual([receipt.state, receipt.dealtWith], ["done", 1])
      assert.strictEqual((yield* inTime(runs.receipt(plan.id))).id, plan.id)
      assert.deepStrictEqual(
        (yield* inTime(runs.list)).map(({ id }) => id),
        [plan.id]
      )
      const orders = yield* runs.ofTopic("orders")
      assert.strictEqual((yield* Effect.flip(inTime(orders.receipt(plan.id))))._tag, "UnknownRun")
      const unknown = "01234567-89ab-4cde-8f01-23456789abcd"
      assert.strictEqual((yield* Effect.flip(inTime(runs.receipt(unknown))))._tag, "UnknownRun")
      assert.strictEqual((yield* Effect.flip(inTime(runs.apply(unknown))))._tag, "UnknownPlan")
    })
  )
})

scenario("RCH-11 a custom handler gets the dead letters of every topic", () =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    for (const topic of topics) yield* memory.createTopic(topic)
    const got: Array<string> = []
    const binding = Binding.make("billing", {
      ...settings,
      deadLetter: DeadLetter.custom((letter) => Effect.sync(() => void got.push(letter.originalTopic))),
      handler: () => Effect.fail(new Down())
    })
    yield* start(binding)
    for (const topic of topics) yield* append(topic, 0, ["1", "2"])
    yield* until(() => got.length === 4, "1 second")
    assert.deepStrictEqual(got.toSorted(), ["orders", "orders", "payments", "payments"])
  })
)

scenario("RCH-11 a scheduled replay brings the letters of every topic back to it", () =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    for (const topic of topics) yield* memory.createTopic(topic)
    let isDown = true
    const handled: Array<string> = []
    const binding = Binding.make("billing", {
      ...settings,
      deadLetter: DeadLetter.scheduledReplay({ cooldown: "1 minute" }),
      handler: ({ record }) =>
        Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.sync(() => void handled.push(record.topic))))
    })
    const app = yield* start(binding)
    for (const topic of topics) yield* append(topic, 0, ["1"])
    yield* until(() => app.of("Settled").length === 2, "1 second")
    isDown = false
    yield* until(() => handled.length === 2, "1 minute")
    assert.deepStrictEqual(handled.toSorted(), ["orders", "payments"])
  })
)
