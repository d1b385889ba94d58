/** `eventbus.records.failed` for every kind of handler and every way in which a delivery ends. */
import { assert, describe } from "@effect/vitest"
import { Binding, CurrentTransaction, EventBusError, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Metric } from "effect"
import { advance, append, bytes, inTime, orders, start, text } from "../scenarios/bus.ts"
import { metered } from "./series.ts"

class Down extends Data.TaggedError("Down") {}
class Slow extends Data.TaggedError("Slow") {}
class Invalid extends Data.TaggedError("Invalid") {}
class Unwanted extends Data.TaggedError("Unwanted") {}

type Errors = Down | Slow | Invalid | Unwanted

/** The failed deliveries that each value makes, as `topic exception count`. */
const expected: Readonly<Record<string, ReadonlyArray<string>>> = {
  fine: [],
  // The second attempt in place succeeds: the delivery did not fail.
  recovers: [],
  // A handler that interrupts itself has neither succeeded nor failed.
  "interrupts itself": [],
  // Two attempts in place are one delivery. Two deliveries in the tier are two.
  down: ["orders Down 1", "orders.retry-1 Down 2"],
  "down once": ["orders Down 1"],
  // The last error of a delivery counts.
  "slow, then down": ["orders Down 1"],
  dies: ["orders RangeError 1", "orders.retry-1 RangeError 2"],
  invalid: ["orders Invalid 1"],
  unwanted: ["orders Unwanted 1"],
  unreadable: ["orders DecodeFailure 1"]
}

const handler = () => {
  const calls = new Map<string, number>()
  return ({ value }: { readonly value: string }): Effect.Effect<void, Errors> =>
    Effect.suspend((): Effect.Effect<void, Errors> => {
      const call = (calls.get(value) ?? 0) + 1
      calls.set(value, call)
      switch (value) {
        case "recovers":
          return call === 1 ? Effect.fail(new Down()) : Effect.void
        case "interrupts itself":
          return call === 1 ? Effect.interrupt : Effect.void
        case "down":
          return Effect.fail(new Down())
        case "down once":
          return call <= 2 ? Effect.fail(new Down()) : Effect.void
        case "slow, then down":
          return call > 2 ? Effect.void : Effect.fail(call === 1 ? new Slow() : new Down())
        case "dies":
          return Effect.die(new RangeError("no"))
        case "invalid":
          return Effect.fail(new Invalid())
        case "unwanted":
          return Effect.fail(new Unwanted())
        default:
          return Effect.void
      }
    })
}

type Handle = ReturnType<typeof handler>

const value = Serde.make<string>({
  name: "text that may be unreadable",
  encode: bytes,
  decode: (given) => {
    const read = text(given) ?? ""
    if (read === "unreadable") throw new Error("no text")
    return read
  }
})

const settings = {
  ...{ ...orders, value },
  retry: RetryPolicy.tiered({
    blocking: { maxAttempts: 2, initialBackoff: "1 second" },
    tiers: [{ delay: "10 seconds", maxAttempts: 2 }]
  }),
  onError: { Down: Route.retry, Slow: Route.retry, Invalid: Route.deadLetter(), Unwanted: Route.skip }
} as const

const bindings: Readonly<Record<string, (handle: Handle) => Binding.Binding<never>>> = {
  single: (handle) => Binding.make("orders", { ...settings, handler: handle }),
  "by key": (handle) => Binding.make("orders", { ...settings, processingOrder: "key", handler: handle }),
  unordered: (handle) => Binding.make("orders", { ...settings, processingOrder: "unordered", handler: handle }),
  "in batches": (handle) => Binding.make("orders", { ...settings, listenerType: "BATCH", handler: handle }),
  transactional: (handle) =>
    Binding.makeTransactional("orders", {
      ...settings,
      handler: (delivery) =>
        Effect.andThen(
          Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes(delivery.value) })),
          handle(delivery)
        )
    })
}

/** Every series of the counter that is not 0, as `topic exception count`, with exactly the labels that the row names beside the cluster. */
const failed = Effect.map(Metric.snapshot, (all) =>
  all
    .flatMap((series) => {
      if (series.id !== "eventbus.records.failed" || series.type !== "Counter") return []
      const { cluster, binding, topic, exception, ...more } = { ...series.attributes }
      assert.deepStrictEqual({ cluster, binding, more }, { cluster: "default", binding: "orders", more: {} })
      return Number(series.state.count) === 0 ? [] : [`${topic} ${exception} ${series.state.count}`]
    })
    .sort()
)

const topics = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "out", "orders.retry-1", "orders.DLT"]) yield* memory.createTopic(topic)
  return memory
})

describe("OBS-02 the counter of failed deliveries", () => {
  for (const [kind, bindingOf] of Object.entries(bindings)) {
    for (const [name, counts] of Object.entries(expected)) {
      metered(
        `OBS-02 ruling 63 ruling 75 ${kind}: a record that is '${name}' counts ${counts.join(", ") || "nothing"}`,
        () =>
          Effect.gen(function* () {
            yield* topics
            yield* start(bindingOf(handler()))
            yield* append("orders", 0, [name])
            for (let round = 0; round < 12; round++) yield* advance("5 seconds")
            assert.deepStrictEqual(yield* failed, [...counts].sort())
          })
      )
    }
  }

  metered("OBS-02 ruling 75 a batch counts each record that it names as failed, and no other", () =>
    Effect.gen(function* () {
      yield* topics
      yield* append("orders", 0, ["a", "b", "c", "d"])
      yield* start(
        Binding.makeBatch("orders", {
          ...{ ...settings, retry: RetryPolicy.none },
          handleBatch: ({ deliveries }) => {
            const [first, ...more] = deliveries.flatMap(({ value }, index) =>
              value === "b" || value === "d" ? [{ index, error: new Invalid() }] : []
            )
            return first === undefined ? Effect.void : EventBusError.BatchProcessing.these([first, ...more])
          }
        })
      )
      yield* advance("5 seconds")
      assert.deepStrictEqual(yield* failed, ["orders Invalid 2"])
    })
  )

  metered(
    "OBS-02 ruling 75 a record that is held counts once for each delivery, and not again when an operator decides",
    () =>
      Effect.gen(function* () {
        yield* topics
        yield* append("orders", 0, ["held", "held too"])
        const { connector } = yield* start(
          Binding.make("orders", { ...orders, onError: { Down: Route.pause }, handler: () => Effect.fail(new Down()) })
        )
        const at = (offset: bigint) => ({ topic: "orders", partition: 0, offset })
        yield* advance("5 seconds")
        assert.deepStrictEqual(yield* failed, ["orders Down 1"])
        yield* connector.resume("orders")
        yield* advance("5 seconds")
        assert.deepStrictEqual(yield* failed, ["orders Down 2"])
        yield* inTime(connector.skip("orders", at(0n), "test data"), "1 second")
        yield* advance("5 seconds")
        // The second record is held by now.
        assert.deepStrictEqual(yield* failed, ["orders Down 3"])
        yield* inTime(connector.deadLetter("orders", at(1n), "test data"), "1 second")
        yield* advance("5 seconds")
        assert.deepStrictEqual(yield* failed, ["orders Down 3"])
      })
  )

  metered(
    "OBS-02 CB-08 a delivery that an open breaker holds counts nothing, nor one whose partition is given up",
    () =>
      Effect.gen(function* () {
        yield* topics
        yield* append("orders", 0, ["a", "b"])
        const circuitBreaker = {
          minimumNumberOfCalls: 2,
          slidingWindowSize: 2,
          waitDurationInOpenState: "1 minute"
        } as const
        const app = yield* start(
          Binding.make("orders", { ...settings, circuitBreaker, handler: () => Effect.fail(new Down()) })
        )
        yield* advance("3 seconds")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        const opened = yield* failed
        assert.deepStrictEqual(opened, ["orders Down 1"])
        yield* advance("30 minutes")
        assert.deepStrictEqual(yield* failed, opened)
      })
  )

  metered("OBS-02 ruling 6 a delivery that ends because its partition is given up counts nothing", () =>
    Effect.gen(function* () {
      yield* topics
      const retry = RetryPolicy.blocking({ maxAttempts: 5, initialBackoff: "10 seconds", jitter: 0 })
      const handler = () => Effect.die(new RangeError("no"))
      const app = yield* start(Binding.make("orders", { ...orders, retry, handler }))
      yield* append("orders", 0, ["a"])
      yield* advance("5 seconds")
      const other = yield* start(Binding.make("orders", { ...orders, retry, handler, autoStartup: false }))
      yield* inTime(app.connector.stop("orders"))
      assert.isTrue(app.of("Settled").every(({ settlement }) => settlement === "Abandoned"))
      assert.deepStrictEqual(yield* failed, [])
      yield* inTime(other.close)
    })
  )
})
