import { assert, describe } from "@effect/vitest"
import { Binding, BrokerError, DeadLetter, RetryPolicy } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { type App, advance, append, inTime, orders, scenario, start, text } from "../bus.ts"

const failing = { ...orders, retry: RetryPolicy.none, handler: () => Effect.die("no") }

/** A topic whose records all end in the dead letter topic. */
const withLetters = Effect.fnUntraced(function* (values: ReadonlyArray<string>) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic)
  yield* append("orders", 0, values)
  return memory
})

/** Runs for a minute. */
const running = Effect.fnUntraced(function* (deadLetter: DeadLetter.DeadLetter) {
  const app = yield* start(Binding.make("orders", { ...failing, deadLetter }))
  yield* advance("1 minute")
  return app
})

/** Fails for the values that begin with "fails". */
const custom = DeadLetter.custom(({ value }) =>
  text(value)?.startsWith("fails") === true ? Effect.fail("no") : Effect.void
)

/** `count` and `failed` of the statistics, then the state of each listed letter. */
const states = Effect.fnUntraced(function* ({ connector }: App) {
  const { list, stats } = yield* connector.deadLetters("orders")
  const { count, failed } = yield* inTime(stats)
  const listed = yield* inTime(list({ partition: 0, count: 100 }))
  return [count, failed, ...listed.map(({ state }) => state)]
})

const troubleOf = ({ connector }: App) =>
  Effect.map(connector.getByTopic("orders"), ([binding]) => binding?.deadLetterStrategy?.error._tag)

describe("dead letters that a custom handler failed for", () => {
  scenario("ruling 75 DLT-20 one that comes again after a crash, and is handled then, is dealt with", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters(["a", "b"])
      let isDown = true
      const flaky = DeadLetter.custom(() => (isDown ? Effect.fail("down") : Effect.void))
      const first = yield* running(flaky)
      assert.deepStrictEqual(yield* states(first), [2, 2, "failed", "failed"])
      yield* first.close
      yield* memory.setCommitted("billing.dlt", "orders.DLT", 0, 1n)
      isDown = false
      assert.deepStrictEqual(yield* states(yield* running(flaky)), [1, 1, "failed", "dealt-with"])
    })
  )

  scenario(
    "ruling 75 DLT-20 DLT-26 under another strategy a replay takes the failed ones, and the position never goes back",
    () =>
      Effect.gen(function* () {
        const memory = yield* withLetters(["a", "fails", "c", "fails again", "e"])
        const first = yield* running(custom)
        yield* first.close
        const app = yield* running(DeadLetter.storeOnly)
        assert.deepStrictEqual((yield* states(app)).slice(0, 2), [2, 2])
        yield* app.connector.pause("orders")
        const { replay } = yield* app.connector.deadLetters("orders")
        assert.strictEqual((yield* inTime(replay(1))).replayed, 1)
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 5n)
        const one = ["dealt-with", "dealt-with", "dealt-with", "failed", "dealt-with"]
        assert.deepStrictEqual(yield* states(app), [1, 1, ...one])
        assert.strictEqual((yield* inTime(replay(100))).replayed, 1)
        assert.strictEqual((yield* inTime(replay(100))).replayed, 0)
        assert.deepStrictEqual((yield* states(app)).slice(0, 2), [0, 0])
        assert.deepStrictEqual(
          (yield* memory.log("orders", 0)).slice(5).map(({ value }) => text(value)),
          ["fails", "fails again"]
        )
      })
  )

  scenario(
    "ruling 75 DLT-20 a missing right to note them stops no handler, shows in health, and the note is written once it is there",
    () =>
      Effect.gen(function* () {
        const memory = yield* withLetters(["fails 1"])
        const error = new BrokerError.AuthorizationFailed({
          ...{ resource: "topic", name: "orders.DLT.replays", operation: "write" }
        })
        yield* memory.addFault(
          FaultPlan.nth(1, { operation: "produce", topic: "orders.DLT.replays" }, { _tag: "Refuse", error })
        )
        const app = yield* running(custom)
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 1n)
        assert.strictEqual(yield* troubleOf(app), "AuthorizationFailed")
        yield* append("orders", 0, ["b"])
        yield* advance("1 minute")
        assert.deepStrictEqual(yield* states(app), [1, 1, "failed", "dealt-with"])
        assert.strictEqual(yield* troubleOf(app), undefined)
      })
  )
})
