import { assert, describe } from "@effect/vitest"
import { Binding, type Broker } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, orders, scenario, settle, start, until } from "../scenarios/bus.ts"

const latest = { ...orders, autoOffsetReset: "latest" } as const

const noting = (handled: Array<string>): Binding.Binding<never> =>
  Binding.make("orders", { ...latest, handler: ({ value }) => Effect.sync(() => handled.push(value)) })

const admin = <A, E>(use: (admin: Broker.Admin) => Effect.Effect<A, E>) =>
  MemoryBroker.MemoryBroker.use((memory) => inTime(Effect.scoped(Effect.flatMap(memory.broker.admin, use))))

const values = (partition: number) => Array.from({ length: 5 }, (_, index) => `p${partition}-${index}`)

/** Partitions 1 and 2 are added, and written to before any member knows them. */
const grow = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (topics) => topics.createPartitions("orders", 3)))
  yield* append("orders", 1, values(1))
  yield* append("orders", 2, values(2))
})

describe("C59 partitions are added under autoOffsetReset latest", () => {
  scenario("ruling 85 all that is written to them is handled, and nothing from before the group first read", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["old"])
      yield* advance("1 minute")
      const handled: Array<string> = []
      yield* start(noting(handled))
      yield* advance("1 minute")
      yield* append("orders", 0, ["new"])
      yield* settle
      yield* grow
      yield* until(() => handled.length >= 11, "1 second")
      assert.deepStrictEqual(handled.toSorted(), ["new", ...values(1), ...values(2)].toSorted())
    })
  )

  scenario("ruling 85 they are added while no member runs", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["old"])
      yield* advance("1 minute")
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* settle
      yield* app.close
      yield* advance("1 hour")
      yield* grow
      yield* advance("1 hour")
      yield* start(noting(handled))
      yield* until(() => handled.length >= 10, "1 second")
      assert.deepStrictEqual(handled.toSorted(), [...values(1), ...values(2)])
    })
  )

  scenario("rulings 85 and 89 the group has committed with the first version, which writes no time", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["old"])
      yield* memory.setCommitted("billing", "orders", 0, 1n)
      yield* advance("1 minute")
      const handled: Array<string> = []
      yield* start(noting(handled))
      yield* grow
      yield* until(() => handled.length >= 10, "1 second")
      assert.deepStrictEqual(handled.toSorted(), [...values(1), ...values(2)])
    })
  )

  scenario("ruling 85 a partition that was never committed starts when the group first read the topic", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 1, ["before"])
      yield* advance("1 minute")
      // The state that a member leaves behind that read partition 0 and died with its neighbour's first commit on the way.
      const first = yield* start(noting([]))
      yield* settle
      yield* first.close
      const metadata = (yield* memory.commits("billing")).find(({ partition }) => partition === 0)?.metadata ?? ""
      assert.match(metadata, /^eventbus:first-read=60000;topic=/)
      yield* memory.setCommitted("billing", "orders", 1, -1n)
      yield* append("orders", 1, ["after"])
      yield* advance("1 hour")
      const handled: Array<string> = []
      yield* start(noting(handled))
      yield* until(() => handled.length > 0, "1 second")
      assert.deepStrictEqual(handled, ["after"])
    })
  )

  scenario("ruling 85 a topic that is made again counts as never read", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* append("orders", 0, ["first"])
      yield* settle
      yield* app.close
      yield* admin((topics) => topics.deleteTopics(["orders"]))
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["old"])
      yield* advance("1 minute")
      yield* start(noting(handled))
      yield* append("orders", 0, ["new"])
      yield* until(() => handled.length > 1, "1 second")
      assert.deepStrictEqual(handled, ["first", "new"])
    })
  )

  scenario("ruling 85 a transactional binding keeps the time in the commits of its transactions", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const handled: Array<string> = []
      const binding = Binding.makeTransactional("orders", {
        ...latest,
        handler: ({ value }) => Effect.sync(() => handled.push(value))
      })
      yield* advance("1 minute")
      const app = yield* start(binding)
      yield* append("orders", 0, ["new"])
      yield* until(() => handled.length > 0, "1 second")
      yield* advance("1 second")
      yield* app.close
      yield* advance("1 hour")
      yield* grow
      yield* advance("1 hour")
      yield* start(binding)
      yield* until(() => handled.length >= 11, "1 second")
      assert.deepStrictEqual(handled.toSorted(), ["new", ...values(1), ...values(2)])
    })
  )
})
