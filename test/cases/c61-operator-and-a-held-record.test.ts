import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetterRecord, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Logger } from "effect"
import { type App, advance, append, headersOf, inTime, orders, scenario, start, text } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

const at = (offset: bigint, partition = 0) => ({ topic: "orders", partition, offset })

const isBad = (value: string) => value.startsWith("bad")

/** Fails each record whose value begins with `bad`, and remembers the others. */
const failing = () => {
  const handled: Array<string> = []
  const state = { calls: 0, mended: false }
  const handler = ({ value }: { readonly value: string }) =>
    Effect.suspend(() => {
      state.calls++
      if (isBad(value) && !state.mended) return Effect.fail(new Down())
      handled.push(value)
      return Effect.void
    })
  return { handled, state, handler }
}

const retry = RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 second" })

/** Each way in which a record holds its partition, and each scheduler. */
const bindings = {
  "STRICT with halt": (handler: ReturnType<typeof failing>["handler"]) =>
    Binding.make("orders", {
      ...orders,
      retry,
      orderingMode: "STRICT",
      onExhausted: "halt",
      onError: { Down: Route.retry },
      handler
    }),
  "STRICT with halt in batches of commits": (handler: ReturnType<typeof failing>["handler"]) =>
    Binding.make("orders", {
      ...{ ...orders, retry, orderingMode: "STRICT", onExhausted: "halt", onError: { Down: Route.retry } },
      ...{ listenerType: "BATCH", maxPollRecords: 10, handler }
    }),
  "Route.pause": (handler: ReturnType<typeof failing>["handler"]) =>
    Binding.make("orders", { ...orders, onError: { Down: Route.pause }, handler }),
  "Route.pause side by side": (handler: ReturnType<typeof failing>["handler"]) =>
    Binding.make("orders", { ...orders, processingOrder: "key", onError: { Down: Route.pause }, handler }),
  "Route.pause in a batch": (handler: ReturnType<typeof failing>["handler"]) =>
    Binding.makeBatch("orders", {
      ...{ ...orders, onError: { Down: Route.pause } },
      handleBatch: ({ deliveries }) => Effect.forEach(deliveries, handler, { discard: true })
    }),
  "Route.pause in a transaction": (handler: ReturnType<typeof failing>["handler"]) =>
    Binding.makeTransactional("orders", { ...orders, onError: { Down: Route.pause }, handler })
} as const

const held = Effect.fnUntraced(function* (name: keyof typeof bindings, values = ["o-0", "bad-1", "o-2"]) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  yield* memory.createTopic("orders.DLT")
  yield* append("orders", 0, values)
  const { handled, state, handler } = failing()
  const app = yield* start(bindings[name](handler))
  yield* advance("10 seconds")
  const settlements = () => app.of("Settled").map(({ settlement, record }) => `${text(record.value)} ${settlement}`)
  const committed = Effect.andThen(advance("10 seconds"), memory.committed("billing", "orders", 0))
  return { app, memory, handled, state, settlements, committed }
})

/** The log lines of an effect. */
const logged = Effect.fnUntraced(function* <E, R>(body: Effect.Effect<void, E, R>) {
  const lines: Array<string> = []
  const capture = Logger.make(({ message }) => void lines.push(String(message)))
  yield* Effect.provide(body, Logger.layer([capture]))
  return lines
})

const decisionsOf = (app: App) => app.of("RecordDecided").map(({ at: where, decision }) => ({ ...where, ...decision }))

describe("C61 OPS-11 an operator decides about a record that holds its partition", () => {
  for (const name of Object.keys(bindings) as ReadonlyArray<keyof typeof bindings>) {
    scenario(`C61 ruling 88 ${name}: skip drops the record, and the partition goes on`, () =>
      Effect.gen(function* () {
        const lines = yield* logged(
          Effect.gen(function* () {
            const { app, handled, state, settlements, committed } = yield* held(name)
            assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
            const { held: list } = yield* app.connector.snapshot("orders")
            assert.deepInclude(list[0]!, at(1n))
            assert.strictEqual(list[0]?.failure.className, "Down")
            // Long: a batch that waits for an operator uses up none of its time.
            yield* advance("1 hour")
            const { calls } = state
            yield* app.connector.skip("orders", at(1n), "test data")
            assert.strictEqual(yield* committed, 3n)
            assert.strictEqual(state.calls, calls + 1)
            assert.deepStrictEqual([...new Set(handled)], ["o-0", "o-2"])
            assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
            assert.deepStrictEqual(
              settlements().filter((line) => line.startsWith("bad")),
              ["bad-1 Halted", "bad-1 Skipped"]
            )
            assert.deepStrictEqual((yield* app.connector.snapshot("orders")).held, [])
            assert.lengthOf(app.of("ProcessingBudgetReached"), 0)
            assert.deepStrictEqual(decisionsOf(app), [{ ...at(1n), kind: "skip", reason: "test data" }])
          })
        )
        assert.include(lines, "An operator skipped held record orders-0@1: test data")
      })
    )

    scenario(
      `C61 ruling 88 ${name}: deadLetter keeps the record with reason MANUAL and why, and the partition goes on`,
      () =>
        Effect.gen(function* () {
          const lines = yield* logged(
            Effect.gen(function* () {
              const { app, memory, handled, committed } = yield* held(name)
              yield* app.connector.deadLetter("orders", at(1n), "customer is gone")
              assert.strictEqual(yield* committed, 3n)
              assert.deepStrictEqual([...new Set(handled)], ["o-0", "o-2"])
              const [letter, ...more] = yield* memory.log("orders.DLT", 0)
              assert.lengthOf(more, 0)
              const headers = headersOf(letter)
              assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "MANUAL")
              assert.strictEqual(headers.get("x-eventbus-dlt-detail"), "customer is gone")
              assert.strictEqual(DeadLetterRecord.read(letter!).dltDetail, "customer is gone")
              assert.deepStrictEqual(decisionsOf(app), [{ ...at(1n), kind: "dead-letter", reason: "customer is gone" }])
              assert.strictEqual(headers.get("x-eventbus-original-offset"), "1")
              const attempts = name.startsWith("STRICT") ? "2" : "1"
              assert.strictEqual(headers.get("x-eventbus-total-attempts"), attempts)
              assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
            })
          )
          assert.include(lines, "An operator dead-lettered held record orders-0@1: customer is gone")
        })
    )

    scenario(`C61 ruling 88 ${name}: after a resume the record is tried again, and is held once more`, () =>
      Effect.gen(function* () {
        const { app, state, settlements, committed } = yield* held(name)
        yield* advance("1 hour")
        yield* app.connector.resume("orders")
        yield* advance("10 seconds")
        assert.deepStrictEqual(
          settlements().filter((line) => line.startsWith("bad")),
          ["bad-1 Halted", "bad-1 Halted"]
        )
        state.mended = true
        yield* app.connector.resume("orders")
        assert.strictEqual(yield* committed, 3n)
        assert.deepStrictEqual((yield* app.connector.snapshot("orders")).held, [])
        assert.lengthOf(app.of("ProcessingBudgetReached"), 0)
      })
    )
  }

  scenario("C61 ruling 88 a record that holds no partition is refused, and the error names those that do", () =>
    Effect.gen(function* () {
      const { app } = yield* held("STRICT with halt")
      const refused = yield* Effect.flip(app.connector.skip("orders", at(0n), "no"))
      assert.strictEqual(refused._tag, "RecordNotHeld")
      assert.include(refused.message, "held: orders-0@1")
    })
  )

  scenario("C61 ruling 88 two records pause the binding: it goes on when both are decided", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, ["bad-0", "o-1"])
      yield* append("orders", 1, ["bad-2", "o-3"])
      const { handled, handler } = failing()
      const app = yield* start(bindings["Route.pause"](handler))
      yield* advance("1 second")
      const { held: list } = yield* app.connector.snapshot("orders")
      yield* Effect.forEach(list.slice(1), (record) => app.connector.skip("orders", record, "no"))
      yield* advance("1 second")
      if (list.length > 1) assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      yield* app.connector.skip("orders", list[0]!, "no")
      yield* advance("1 second")
      for (const record of (yield* app.connector.snapshot("orders")).held) {
        yield* app.connector.skip("orders", record, "no")
        yield* advance("1 second")
      }
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      assert.deepStrictEqual(handled.sort(), ["o-1", "o-3"])
    })
  )

  scenario("C61 ruling 88 what an operator has paused stays paused", () =>
    Effect.gen(function* () {
      const { app, handled, committed } = yield* held("STRICT with halt")
      yield* app.connector.pause("orders")
      yield* app.connector.skip("orders", at(1n), "test data")
      assert.strictEqual(yield* committed, 2n)
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      assert.deepStrictEqual(handled, ["o-0"])
      yield* app.connector.resume("orders")
      assert.strictEqual(yield* committed, 3n)
    })
  )

  scenario("C61 ruling 88 a stop leaves the held record to the next start", () =>
    Effect.gen(function* () {
      const { app, memory } = yield* held("STRICT with halt")
      yield* inTime(app.connector.stop("orders"))
      assert.deepStrictEqual((yield* app.connector.snapshot("orders")).held, [])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )
})
