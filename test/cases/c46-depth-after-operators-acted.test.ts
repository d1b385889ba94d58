import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, type EventBusConnector, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Metric } from "effect"
import { advance, append, deadLetterDepth, inTime, orders, scenario, start, text } from "../scenarios/bus.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

const states = ({ deadLetters }: Connector) =>
  Effect.gen(function* () {
    const commands = yield* deadLetters("orders")
    const { count, failed } = yield* inTime(commands.stats)
    const listed = yield* inTime(commands.list({ partition: 0, count: 100 }))
    const states = listed.map(({ state }) => state)
    return { count, failed, waiting: states.filter((state) => state === "waiting").length, states }
  })

const failing = { ...orders, retry: RetryPolicy.none, handler: () => Effect.die("no") }

describe("C46 depth and statistics after operators acted", () => {
  scenario("ruling 75 OBS-10 a window replay of two and a discard of one leave three of six", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { connector } = yield* start(Binding.make("orders", failing))
      for (const value of ["a", "b", "c", "d", "e", "f"]) {
        yield* append("orders", 0, [value])
        yield* advance("1 minute")
      }
      assert.deepStrictEqual(yield* deadLetterDepth, [6])
      const commands = yield* connector.deadLetters("orders")
      yield* connector.stop("orders")
      yield* inTime(commands.replayWindow(120_000, 240_000))
      assert.strictEqual(yield* inTime(commands.discard([{ partition: 0, offset: 5n }], "test data")), 1)
      yield* memory.createTopic("elsewhere")
      yield* connector.start("orders")
      yield* connector.pause("orders")
      const { count, waiting } = yield* states(connector)
      assert.deepStrictEqual([count, waiting], [3, 3])
      assert.deepStrictEqual(yield* deadLetterDepth, [3])
      yield* inTime(commands.replay(100))
      assert.deepStrictEqual(yield* deadLetterDepth, [0])
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  scenario("ruling 75 OBS-10 the markers of a transactional binding are no dead letters", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b", "c", "d", "e"])
      const { connector } = yield* start(Binding.makeTransactional("orders", failing))
      yield* advance("1 minute")
      assert.deepStrictEqual(yield* deadLetterDepth, [5])
      const { count, waiting } = yield* states(connector)
      assert.deepStrictEqual([count, waiting], [5, 5])
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  scenario("ruling 75 OBS-10 a custom handler leaves the ones that it has not had", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* append("orders", 0, ["a", "b", "c"])
      let had = 0
      const deadLetter = DeadLetter.custom(() => (++had === 3 ? Effect.never : Effect.void))
      yield* start(Binding.make("orders", { ...failing, deadLetter }))
      yield* advance("1 minute")
      assert.strictEqual(had, 3)
      assert.deepStrictEqual(yield* deadLetterDepth, [1])
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  scenario(
    "ruling 75 DLT-20 a letter that the custom handler failed for counts, and is listed as failed, after a restart too",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.DLT")
        yield* append("orders", 0, ["a", "fails", "c", "dies"])
        const had: Array<string | null> = []
        const deadLetter = DeadLetter.custom(({ value }) => {
          had.push(text(value))
          if (text(value) === "dies") throw new RangeError("bug")
          return text(value) === "fails" ? Effect.fail("no") : Effect.void
        })
        const { connector } = yield* start(Binding.make("orders", { ...failing, deadLetter }))
        yield* advance("1 minute")
        const seen = { count: 2, failed: 2, waiting: 0, states: ["dealt-with", "failed", "dealt-with", "failed"] }
        assert.deepStrictEqual(yield* states(connector), seen)
        assert.deepStrictEqual(yield* deadLetterDepth, [2])
        yield* connector.stop("orders")
        yield* connector.start("orders")
        yield* advance("1 minute")
        assert.deepStrictEqual(yield* states(connector), seen)
        assert.deepStrictEqual(yield* deadLetterDepth, [2])
        assert.deepStrictEqual(had, ["a", "fails", "c", "dies"])
        const commands = yield* connector.deadLetters("orders")
        assert.strictEqual(yield* inTime(commands.discard([{ partition: 0, offset: 1n }], "known")), 1)
        assert.deepInclude(yield* states(connector), { count: 1, failed: 1 })
        assert.deepStrictEqual(yield* deadLetterDepth, [1])
        yield* connector.pause("orders")
        assert.strictEqual((yield* inTime(commands.replayRecords([{ partition: 0, offset: 3n }]))).replayed, 1)
        assert.deepInclude(yield* states(connector), { count: 0, failed: 0 })
        assert.deepStrictEqual(yield* deadLetterDepth, [0])
      }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )
})
