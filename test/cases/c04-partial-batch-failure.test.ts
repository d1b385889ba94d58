import { assert, describe } from "@effect/vitest"
import { Binding, BrokerError, RetryPolicy, Route } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, orders, scenario, start, until, valuesOf } from "../scenarios/bus.ts"

class Bad extends Schema.TaggedError<Bad>()("Bad", {}) {}

const partitions = ["a", "b", "c"].map((letter) => [0, 1, 2, 3].map((index) => `${letter}${index}`))

/** Three partitions in batches of up to 12; `failures` says how often a record fails before it succeeds. */
const run = Effect.fnUntraced(function* (failures: ReadonlyMap<string, number>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 3 })
  for (const [partition, values] of partitions.entries()) yield* append("orders", partition, values)
  const calls = new Map<string, number>()
  const handled: Array<string> = []
  const app = yield* start(
    Binding.make("orders", {
      ...orders,
      listenerType: "BATCH",
      maxPollRecords: 12,
      retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "10 millis", jitter: 0 }),
      handler: ({ value }) =>
        Effect.suspend(() => {
          const call = (calls.get(value) ?? 0) + 1
          calls.set(value, call)
          if (call <= (failures.get(value) ?? 0)) return Effect.fail(new Bad())
          handled.push(value)
          return Effect.void
        }),
      onError: { Bad: Route.retry }
    })
  )
  yield* until(
    () => app.of("Settled").filter(({ settlement }) => settlement !== "Abandoned").length === 12,
    "10 millis"
  )
  yield* advance("1 second")
  const committed: Array<bigint | undefined> = []
  for (const partition of [0, 1, 2]) committed.push(yield* memory.committed("billing", "orders", partition))
  assert.deepStrictEqual(committed, [4n, 4n, 4n])
  return { handled, calls }
})

const all = partitions.flat()

describe("C04 TST-06 partial batch failure across several partitions", () => {
  scenario(
    "the first record of a partition always fails: its attempts are bounded, it is dead-lettered once, all others are handled once",
    () =>
      Effect.gen(function* () {
        const { handled, calls } = yield* run(new Map([["b0", Number.POSITIVE_INFINITY]]))
        assert.deepStrictEqual(
          [...handled].sort(),
          all.filter((value) => value !== "b0")
        )
        assert.strictEqual(calls.get("b0"), 2)
        assert.deepStrictEqual(
          yield* valuesOf("orders.DLT", 1).pipe(Effect.map((own) => own.length)),
          1 - (yield* elsewhere)
        )
      })
  )

  scenario("the record fails once and then succeeds: every record is handled exactly once", () =>
    Effect.gen(function* () {
      const { handled } = yield* run(new Map([["b0", 1]]))
      assert.deepStrictEqual([...handled].sort(), all)
    })
  )

  scenario(
    "the last record of a partition fails: nothing waits for records behind the end, and no record is skipped",
    () =>
      Effect.gen(function* () {
        const { handled } = yield* run(new Map([["c3", Number.POSITIVE_INFINITY]]))
        assert.deepStrictEqual(
          [...handled].sort(),
          all.filter((value) => value !== "c3")
        )
      })
  )

  scenario("the commit of the finished records fails once: it is repeated, and nothing is handled again", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const error = new BrokerError.RebalanceInProgress({ groupId: "billing" })
      yield* memory.addFault(FaultPlan.nth(1, { operation: "commit" }, { _tag: "Refuse", error }))
      const { handled } = yield* run(new Map([["b0", 1]]))
      assert.deepStrictEqual([...handled].sort(), all)
    })
  )
})

/** Dead letters that the key put into the other partitions. */
const elsewhere = Effect.map(
  Effect.all([valuesOf("orders.DLT", 0), valuesOf("orders.DLT", 2)]),
  (logs) => logs.flat().length
)
