import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, EventBusError, RetryPolicy, Route, Serde } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { advance, append, orders, runScenario, scenario, settle, start, until, valuesOf } from "../bus.ts"

class Bad extends Schema.TaggedError<Bad>()("Bad", {}) {}
class Worse extends Schema.TaggedError<Worse>()("Worse", {}) {}

const batch = { ...orders, listenerType: "BATCH", retry: RetryPolicy.none } as const
const offsets = (count: number) => Array.from({ length: count }, (_, index) => String(index))

describe("listenerType BATCH", () => {
  scenario("OFF-05 BND-04 the handler gets records one by one; one commit for the whole batch", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(7))
      const handled: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...batch,
          maxPollRecords: 3,
          handler: ({ value }) => Effect.sync(() => handled.push(value))
        })
      )
      assert.deepStrictEqual(handled, offsets(7))
      assert.deepStrictEqual(
        (yield* memory.commits("billing")).map(({ offset }) => offset),
        [3n, 6n, 7n]
      )
    })
  )

  scenario(
    "OFF-12 offset 6 of 0 to 9 fails: 6 is committed, 0 to 5 are not repeated, 7 to 9 come after 6 is settled",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, offsets(10))
        const handled: Array<string> = []
        yield* memory.addFault(FaultPlan.nth(1, { operation: "produce" }, { _tag: "Delay", duration: "5 seconds" }))
        yield* memory.createTopic("orders.DLT")
        yield* start(
          Binding.make("orders", {
            ...batch,
            handler: ({ value }) =>
              Effect.suspend(() => {
                handled.push(value)
                return value === "6" ? Effect.fail(new Bad()) : Effect.void
              }),
            onError: { Bad: Route.retry }
          })
        )
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 6n)
        assert.deepStrictEqual(handled, offsets(7))
        yield* advance("5 seconds")
        assert.deepStrictEqual(handled, offsets(10))
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 10n)
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["6"])
      })
  )

  scenario("OFF-12 a failure in partition A does not affect commits and progress of partition B", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, ["a0", "a1", "a2"])
      yield* append("orders", 1, ["b0", "b1", "b2"])
      const handled: Array<string> = []
      yield* start(
        Binding.make("orders", {
          ...batch,
          retry: RetryPolicy.blocking({
            maxAttempts: 2,
            initialBackoff: "10 seconds",
            maxBackoff: "10 seconds",
            jitter: 0
          }),
          maxPollInterval: "10 hours",
          handler: ({ value }) => (value === "a1" ? Effect.fail(new Bad()) : Effect.sync(() => handled.push(value))),
          onError: { Bad: Route.retry }
        })
      )
      assert.deepStrictEqual(handled, ["a0", "b0", "b1", "b2"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      assert.strictEqual(yield* memory.committed("billing", "orders", 1), 3n)
      yield* advance("10 seconds")
      assert.deepStrictEqual(handled.slice(4), ["a2"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
    })
  )

  scenario(
    "OFF-13 DLQ_AND_CONTINUE: the failed record is dead-lettered, the rest handled, the full batch committed",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, offsets(5))
        const handled: Array<string> = []
        yield* start(
          Binding.make("orders", {
            ...batch,
            batchFailureStrategy: "DLQ_AND_CONTINUE",
            handler: ({ value }) =>
              value === "1" || value === "3" ? Effect.fail(new Bad()) : Effect.sync(() => handled.push(value)),
            onError: { Bad: Route.retry }
          })
        )
        assert.deepStrictEqual(handled, ["0", "2", "4"])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["1", "3"])
        assert.deepStrictEqual(
          (yield* memory.commits("billing")).map(({ offset }) => offset),
          [5n]
        )
      })
  )

  scenario("REB-02 the 70 % valve ends a batch between two records, commits the finished records and goes on", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(6))
      const handled: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          ...batch,
          maxPollInterval: "10 seconds",
          handler: ({ value }) =>
            Effect.andThen(
              Effect.sleep("2500 millis"),
              Effect.sync(() => handled.push(value))
            )
        })
      )
      yield* until(() => handled.length === 6, "500 millis")
      assert.deepStrictEqual(handled, offsets(6))
      assert.strictEqual(app.of("ProcessingBudgetReached").length, 1)
      assert.deepStrictEqual(
        (yield* memory.commits("billing")).map(({ offset }) => offset),
        [3n, 6n]
      )
    })
  )

  scenario("REB-02 a pause in the middle of a batch uses none of its budget", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(4))
      let handled = 0
      const app = yield* start(
        Binding.make("orders", {
          ...batch,
          maxPollInterval: "10 seconds",
          handler: () =>
            Effect.andThen(
              Effect.sleep("1 second"),
              Effect.sync(() => handled++)
            )
        })
      )
      yield* app.connector.pause("orders")
      yield* advance("1 minute")
      assert.strictEqual(handled, 1)
      yield* app.connector.resume("orders")
      yield* until(() => handled === 4, "500 millis")
      assert.deepStrictEqual(app.of("ProcessingBudgetReached"), [])
    })
  )

  scenario("BND-05 batches with a processing order are refused with the reason", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(
        start(Binding.make("orders", { ...batch, processingOrder: "key", handler: () => Effect.void }))
      )
      assert.instanceOf(refused, EventBusError.ConfigurationValidation)
      assert.include(String(refused), "processingOrder")
    })
  )

  scenario("SER-04 a poison record in a batch is dead-lettered, its neighbours are handled", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ['{"n":1}', "{", '{"n":2}'])
      const handled: Array<number> = []
      yield* start(
        Binding.make("orders", {
          ...batch,
          value: Serde.json(Schema.Struct({ n: Schema.Number })),
          handler: ({ value }) => Effect.sync(() => handled.push(value.n))
        })
      )
      assert.deepStrictEqual(handled, [1, 2])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["{"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
    })
  )

  scenario("OFF-15 random batches, partitions and failures: each record is handled or dead-lettered exactly once", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 12 }), { minLength: 1, maxLength: 3 }),
          fc.integer({ min: 1, max: 5 }),
          fc.constantFrom("SEEK_TO_FAILED" as const, "DLQ_AND_CONTINUE" as const),
          fc.constantFrom("MANUAL" as const, "MANUAL_IMMEDIATE" as const),
          (failures, maxPollRecords, batchFailureStrategy, ackMode) =>
            runScenario(randomBatches(failures, { maxPollRecords, batchFailureStrategy, ackMode }))
        ),
        { numRuns: 25 }
      )
    )
  )
})

/** `failures[partition][offset]`: how often the record fails; 2 is once more than the attempts allow. */
const randomBatches = (
  failures: ReadonlyArray<ReadonlyArray<number>>,
  settings: Pick<
    BindingOptions.Options<null, string, never, never>,
    "maxPollRecords" | "batchFailureStrategy" | "ackMode"
  >
) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders", { partitions: failures.length })
    const all = failures.map((counts, partition) => counts.map((_, offset) => `${partition}/${offset}`))
    for (const [partition, values] of all.entries()) yield* append("orders", partition, values)
    const done: Array<string> = []
    const calls = new Map<string, number>()
    yield* start(
      Binding.make("orders", {
        ...batch,
        ...settings,
        commitInterval: 0,
        retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "10 millis", jitter: 0 }),
        handler: ({ value, record }) =>
          Effect.suspend(() => {
            const call = (calls.get(value) ?? 0) + 1
            calls.set(value, call)
            if (call <= failures[record.partition]![Number(record.offset)]!) return Effect.fail(new Bad())
            done.push(value)
            return Effect.void
          }),
        onError: { Bad: Route.retry }
      })
    )
    const dead = failures.flatMap((counts, partition) =>
      counts.flatMap((count, offset) => (count === 2 ? [`${partition}/${offset}`] : []))
    )
    yield* until(() => done.length + dead.length === all.flat().length, "10 millis")
    yield* advance("1 second")
    const letters: Array<string | null> = []
    for (const partition of dead.length === 0 ? [] : failures.keys()) {
      letters.push(...(yield* valuesOf("orders.DLT", partition)))
    }
    assert.deepStrictEqual(letters.sort(), dead.sort())
    for (const [partition, values] of all.entries()) {
      const ofPartition = done.filter((value) => value.startsWith(`${partition}/`))
      assert.deepStrictEqual(
        ofPartition,
        values.filter((value) => !dead.includes(value))
      )
      const committed = yield* memory.committed("billing", "orders", partition)
      assert.strictEqual(committed ?? 0n, BigInt(values.length))
    }
  })

describe("makeBatch (TST-06: batch adapter)", () => {
  const chunked = { ...orders, retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 second", jitter: 0 }) }

  scenario("OFF-05 the handler gets up to maxPollRecords consecutive records of one partition per call", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* append("orders", 0, ["a0", "a1", "a2"])
      yield* append("orders", 1, ["b0"])
      const calls: Array<string> = []
      yield* start(
        Binding.makeBatch("orders", {
          ...chunked,
          maxPollRecords: 2,
          handleBatch: ({ partition, deliveries }) =>
            Effect.sync(() => calls.push(`${partition}: ${deliveries.map(({ value }) => value).join(" ")}`))
        })
      )
      assert.deepStrictEqual(calls.sort(), ["0: a0 a1", "0: a2", "1: b0"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
    })
  )

  scenario(
    "OFF-14 from: records before the index are done, the failed record is tried alone, the rest comes again",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, offsets(5))
        const calls: Array<ReadonlyArray<string>> = []
        yield* start(
          Binding.makeBatch("orders", {
            ...chunked,
            handleBatch: ({ deliveries }) =>
              Effect.suspend(() => {
                const values = deliveries.map(({ value }) => value)
                calls.push(values)
                const at = values.indexOf("2")
                return at === -1 || calls.length === 2
                  ? Effect.void
                  : Effect.fail(EventBusError.BatchProcessing.from(at, new Bad()))
              })
          })
        )
        yield* advance("1 second")
        assert.deepStrictEqual(calls, [offsets(5), ["2"], ["3", "4"]])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 5n)
      })
  )

  scenario("OFF-14 these: only the named records are tried again; when exhausted, they are dead-lettered", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(4))
      const calls: Array<string> = []
      yield* start(
        Binding.makeBatch("orders", {
          ...chunked,
          handleBatch: ({ deliveries }) =>
            Effect.suspend(() => {
              calls.push(deliveries.map(({ value }) => value).join(""))
              const [first, ...more] = deliveries.flatMap(({ value }, index) =>
                value === "1" || value === "3" ? [{ index, error: new Bad() }] : []
              )
              return first === undefined
                ? Effect.void
                : Effect.fail(EventBusError.BatchProcessing.these([first, ...more]))
            })
        })
      )
      yield* advance("1 second")
      yield* advance("1 second")
      assert.deepStrictEqual(calls, ["0123", "1", "3"])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["1", "3"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
    })
  )

  scenario("OFF-14 a record takes the route of the error that is named for it", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(2))
      yield* start(
        Binding.makeBatch("orders", {
          ...chunked,
          handleBatch: ({ deliveries }): Effect.Effect<void, EventBusError.BatchProcessing | Worse> =>
            deliveries.length === 0
              ? Effect.fail(new Worse())
              : Effect.fail(EventBusError.BatchProcessing.these([{ index: 0, error: new Worse() }])),
          onError: { Worse: Route.deadLetter("never") }
        })
      )
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["0"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario("OFF-15 a failure that names no record splits the batch: only the bad record is dead-lettered", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(4))
      const alone: Array<string> = []
      yield* start(
        Binding.makeBatch("orders", {
          ...chunked,
          handleBatch: ({ deliveries }) =>
            Effect.suspend(() => {
              if (deliveries.some(({ value }) => value === "2")) return Effect.fail(new Bad())
              alone.push(...deliveries.map(({ value }) => value))
              return Effect.void
            }),
          onError: { Bad: Route.retry }
        })
      )
      yield* advance("1 second")
      yield* advance("1 second")
      assert.deepStrictEqual(alone, ["0", "1", "3"])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["2"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
    })
  )

  for (const outside of [2, 7, -1, 0.5]) {
    scenario(`OFF-14 index ${outside} is outside of a batch of two and is ignored: no record counts as done`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, offsets(2))
        const calls: Array<number> = []
        const app = yield* start(
          Binding.makeBatch("orders", {
            ...chunked,
            handleBatch: ({ deliveries }) =>
              Effect.suspend(() => {
                calls.push(deliveries.length)
                return calls.length === 1
                  ? Effect.fail(EventBusError.BatchProcessing.from(outside, new Bad()))
                  : Effect.void
              })
          })
        )
        assert.deepStrictEqual(calls, [2])
        yield* advance("1 second")
        assert.deepStrictEqual(calls, [2, 2])
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
    )
  }

  scenario("REB-03 the batch's time counts in the processing budget of the record that it names", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(2))
      const calls: Array<number> = []
      const app = yield* start(
        Binding.makeBatch("orders", {
          ...chunked,
          maxPollInterval: "10 seconds",
          maxPollRecords: 2,
          retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "2 seconds", jitter: 0 }),
          handleBatch: ({ deliveries }) =>
            Effect.suspend(() => {
              calls.push(deliveries.length)
              return Effect.andThen(
                Effect.sleep("6 seconds"),
                Effect.fail(EventBusError.BatchProcessing.these([{ index: 0, error: new Bad() }]))
              )
            })
        })
      )
      // 6 of its 7 seconds are over: there is no room for a wait of 2.
      yield* advance("6 seconds")
      yield* advance("10 seconds")
      assert.deepStrictEqual(calls, [2])
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["0"])
      assert.strictEqual(app.of("ProcessingBudgetReached").length, 1)
    })
  )

  scenario("CB-02 REB-03 a batch that the processing budget cuts off is a failure of the dependency", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, offsets(2))
      const app = yield* start(
        Binding.makeBatch("orders", {
          ...chunked,
          maxPollInterval: "10 seconds",
          maxPollRecords: 2,
          circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1 },
          handleBatch: () => Effect.never
        })
      )
      yield* advance("7 seconds")
      yield* advance("1 second")
      assert.deepStrictEqual(
        app.of("BreakerChanged").map(({ to }) => to),
        ["OPEN"]
      )
    })
  )

  scenario(
    "CB-08 ruling 17 a record that its batch names as failed after the breaker has opened elsewhere stays where it is",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* memory.createTopic("orders.DLT")
        for (const partition of [0, 1]) yield* append("orders", partition, ["0"])
        const app = yield* start(
          Binding.makeBatch("orders", {
            ...chunked,
            retry: RetryPolicy.none,
            circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: "1 hour" },
            onError: { Bad: Route.retry },
            handleBatch: ({ partition }) =>
              Effect.andThen(
                Effect.sleep(partition === 0 ? "2 seconds" : "1 second"),
                Effect.fail(EventBusError.BatchProcessing.these([{ index: 0, error: new Bad() }]))
              )
          })
        )
        for (let second = 0; second < 5; second++) yield* advance("1 second")
        assert.strictEqual(app.of("BreakerChanged").at(-1)?.to, "OPEN")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), [])
      })
  )

  scenario(
    "CB-08 rulings 28 and 72 a batch whose failure opened the breaker stays: its records make the trial calls one by one",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, offsets(3))
        const calls: Array<number> = []
        yield* start(
          Binding.makeBatch("orders", {
            ...chunked,
            retry: RetryPolicy.none,
            circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: "10 seconds" },
            onError: { Bad: Route.retry },
            handleBatch: ({ deliveries }) =>
              Effect.suspend(() => (calls.push(deliveries.length) === 1 ? Effect.fail(new Bad()) : Effect.void))
          })
        )
        assert.deepStrictEqual(calls, [3])
        yield* advance("10 seconds")
        assert.deepStrictEqual(calls, [3, 1, 1, 1])
      })
  )

  scenario(
    "SER-04 a poison record is left out of the batch; the handler sees the readable records around it in order",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["1", "{", "2"])
        const calls: Array<ReadonlyArray<number>> = []
        yield* start(
          Binding.makeBatch("orders", {
            ...chunked,
            value: Serde.json(Schema.Number),
            handleBatch: ({ deliveries }) => Effect.sync(() => calls.push(deliveries.map(({ value }) => value)))
          })
        )
        yield* settle
        assert.deepStrictEqual(calls, [[1], [2]])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["{"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      })
  )

  scenario("CLS-11 a batch handler that throws synchronously fails its batch, not its partition", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["0"])
      const app = yield* start(
        Binding.makeBatch("orders", {
          ...chunked,
          handleBatch: () => {
            throw new Error("sync")
          }
        })
      )
      yield* until(() => app.of("Settled").length === 1, "1 second")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["0"])
    })
  )
})
