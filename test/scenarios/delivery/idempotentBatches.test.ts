/**
 * `Binding.makeBatch` with an idempotency store: the handler gets those records of a batch that were not handled yet.
 */
import { assert, describe } from "@effect/vitest"
import { Binding, type Delivery, EventBusError, IdempotencyStore, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Duration, Effect, Fiber, Layer } from "effect"
import { advance, append, orders, scenario, start, text, until, valuesOf } from "../bus.ts"
import { Down, Invalid } from "../kinds.ts"

type Store = IdempotencyStore.IdempotencyStore["Service"]
type Handle = (values: ReadonlyArray<string>) => Effect.Effect<void, Down | Invalid | EventBusError.BatchProcessing>

const lease = { lease: Duration.minutes(1) }

interface Setting {
  readonly key?: (delivery: Delivery.Delivery<Uint8Array | null, string>) => string
  readonly handle?: Handle
  readonly partitions?: number
  /** Another store in front of the one in memory. */
  readonly around?: (store: Store) => Store
}

/** The key of a record as the store gets it. */
const stored = (name: string) => `default/billing/orders:${name}`

/** A process that handles batches, and can be started again with the same store. */
const batches = Effect.fnUntraced(function* ({
  key = ({ value }) => value,
  handle = () => Effect.void,
  partitions = 1,
  around = (store) => store
}: Setting = {}) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions })
  const store = Context.get(yield* Layer.build(IdempotencyStore.layerMemory()), IdempotencyStore.IdempotencyStore)
  const calls: Array<string> = []
  const binding = Binding.makeBatch("orders", {
    ...orders,
    retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 second" }),
    onError: { Down: Route.retry, Invalid: Route.deadLetter() },
    idempotency: { key },
    handleBatch: ({ deliveries }) =>
      Effect.suspend(() => {
        const values = deliveries.map(({ value }) => value)
        calls.push(values.join(" "))
        return handle(values)
      })
  })
  const run = Effect.provideService(start(binding), IdempotencyStore.IdempotencyStore, around(store))
  const stateOf = (name: string) => Effect.map(store.lookUp!(stored(name)), ({ _tag }) => _tag)
  const states = (names: string) => Effect.forEach(names.split(" "), stateOf)
  return { memory, store, calls, run, states }
})

const settlements = (app: {
  readonly of: (
    tag: "Settled"
  ) => ReadonlyArray<{ readonly settlement: string; readonly record: { readonly value: Uint8Array | null } }>
}) => app.of("Settled").map(({ settlement, record }) => `${text(record.value)} ${settlement}`)

describe("idempotency of whole batches", () => {
  for (const [name, key] of [
    ["the default key", undefined],
    ["a key of the record", ({ value }: { readonly value: string }) => value]
  ] as const) {
    scenario(`OFF-19 ${name}: records that are delivered again are skipped, and new ones are handed over alone`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const calls: Array<string> = []
        const binding = Binding.makeBatch("orders", {
          ...orders,
          idempotency: key === undefined ? {} : { key },
          handleBatch: ({ deliveries }) => Effect.sync(() => calls.push(deliveries.map(({ value }) => value).join(" ")))
        })
        const store = yield* Layer.build(IdempotencyStore.layerMemory())
        const first = yield* Effect.provide(start(binding), store)
        yield* append("orders", 0, ["a", "b", "c"])
        yield* until(() => first.of("Settled").length === 3, "1 second")
        yield* first.close
        yield* memory.setCommitted("billing", "orders", 0, 0n)
        const again = yield* Effect.provide(start(binding), store)
        yield* until(() => again.of("Settled").length === 3, "1 second")
        assert.deepStrictEqual(calls, ["a b c"])
        yield* again.close
        yield* memory.setCommitted("billing", "orders", 0, 1n)
        yield* append("orders", 0, ["d", "e"])
        const last = yield* Effect.provide(start(binding), store)
        yield* until(() => last.of("Settled").length === 4, "1 second")
        yield* advance("10 seconds")
        assert.deepStrictEqual(calls, ["a b c", "d e"])
        assert.deepStrictEqual(settlements(last).sort(), ["b Skipped", "c Skipped", "d Handled", "e Handled"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 5n)
      })
    )
  }

  scenario(
    "OFF-19 C04 BatchProcessing.from: what comes before is confirmed, the failed record is free, the rest comes next",
    () =>
      Effect.gen(function* () {
        const { calls, run, states } = yield* batches({
          handle: (values) => {
            const at = values.indexOf("bad")
            return at === -1 ? Effect.void : Effect.fail(EventBusError.BatchProcessing.from(at, new Invalid()))
          }
        })
        yield* append("orders", 0, ["a", "bad", "c"])
        const app = yield* run
        yield* until(() => app.of("Settled").length === 3, "1 second")
        assert.deepStrictEqual(calls, ["a bad c", "c"])
        assert.deepStrictEqual(yield* states("a bad c"), ["Done", "Free", "Done"])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
      })
  )

  scenario(
    "OFF-19 C04 BatchProcessing.these among records that were handled before: each outcome falls to its record",
    () =>
      Effect.gen(function* () {
        const { store, calls, run, states } = yield* batches({
          handle: (values) => {
            const failures = values.flatMap((value, index) =>
              value.startsWith("bad") ? [{ index, error: new Invalid() }] : []
            )
            const [first, ...more] = failures
            return first === undefined
              ? Effect.void
              : Effect.fail(EventBusError.BatchProcessing.these([first, ...more]))
          }
        })
        for (const name of ["a", "d"]) {
          const claim = yield* store.begin(stored(name), lease)
          if (claim._tag === "Started") yield* store.complete(claim.token, { retention: Duration.days(1) })
        }
        yield* append("orders", 0, ["a", "bad-b", "c", "d", "bad-e", "f"])
        const app = yield* run
        yield* until(() => app.of("Settled").length === 6, "1 second")
        assert.deepStrictEqual(calls, ["bad-b c bad-e f"])
        assert.deepStrictEqual(settlements(app).sort(), [
          ...["a Skipped", "bad-b DeadLettered", "bad-e DeadLettered", "c Handled", "d Skipped", "f Handled"]
        ])
        assert.deepStrictEqual(yield* states("a bad-b c d bad-e f"), ["Done", "Free", "Done", "Done", "Free", "Done"])
      })
  )

  scenario("OFF-19 OFF-21 a failure that names no record frees all of them, and the next attempt gets them again", () =>
    Effect.gen(function* () {
      let isDown = true
      const { calls, run, states } = yield* batches({
        handle: () => Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.void))
      })
      yield* append("orders", 0, ["a", "b"])
      const app = yield* run
      yield* until(() => calls.length === 1)
      assert.deepStrictEqual(yield* states("a b"), ["Free", "Free"])
      isDown = false
      yield* until(() => app.of("Settled").length === 2, "1 second")
      assert.deepStrictEqual(calls, ["a b", "a b"])
      assert.deepStrictEqual(yield* states("a b"), ["Done", "Done"])
    })
  )

  for (const ends of ["complete", "abandon"] as const) {
    scenario(`OFF-20 a record that somebody else works on is waited for without holding others up (${ends})`, () =>
      Effect.gen(function* () {
        const { store, calls, run, states } = yield* batches()
        const claim = yield* store.begin(stored("b"), lease)
        assert(claim._tag === "Started")
        yield* append("orders", 0, ["a", "b", "c"])
        const app = yield* run
        yield* advance("5 seconds")
        assert.deepStrictEqual(calls, ["a"])
        assert.deepStrictEqual(yield* states("a b c"), ["Done", "InProgress", "Free"])
        if (ends === "abandon") yield* store.abandon(claim.token)
        else yield* store.complete(claim.token, { retention: Duration.days(1) })
        yield* until(() => app.of("Settled").length === 3, "1 second")
        assert.deepStrictEqual(calls, ends === "abandon" ? ["a", "b c"] : ["a", "c"])
      })
    )
  }

  scenario("OFF-20 two batches with the same keys in opposite order never wait for each other", () =>
    Effect.gen(function* () {
      const { calls, run } = yield* batches({ partitions: 2, handle: () => Effect.sleep("2 seconds") })
      yield* append("orders", 0, ["k1", "k2"])
      yield* append("orders", 1, ["k2", "k1"])
      const app = yield* run
      yield* until(() => app.of("Settled").length === 4, "1 second")
      assert.deepStrictEqual(calls.flatMap((call) => call.split(" ")).sort(), ["k1", "k2"])
    })
  )

  scenario(
    "OFF-19 a key that occurs twice in a batch is handled once; after a failure the second record is tried",
    () =>
      Effect.gen(function* () {
        const { calls, run } = yield* batches({
          key: ({ value }) => value.slice(0, 1),
          handle: (values) =>
            values.includes("x1")
              ? Effect.fail(EventBusError.BatchProcessing.from(values.indexOf("x1"), new Invalid()))
              : Effect.void
        })
        yield* append("orders", 0, ["a1", "b1", "a2", "x1", "x2"])
        const app = yield* run
        yield* until(() => app.of("Settled").length === 5, "1 second")
        assert.deepStrictEqual(calls, ["a1 b1", "x1", "x2"])
        assert.deepStrictEqual(settlements(app).sort(), [
          "a1 Handled",
          "a2 Skipped",
          "b1 Handled",
          "x1 DeadLettered",
          "x2 Handled"
        ])
      })
  )

  scenario("OFF-20 the claims of all records are renewed while the handler runs", () =>
    Effect.gen(function* () {
      const { run, states } = yield* batches({ handle: () => Effect.sleep("3 minutes") })
      yield* append("orders", 0, ["a", "b", "c"])
      yield* run
      for (let second = 0; second < 170; second++) yield* advance("1 second")
      assert.deepStrictEqual(yield* states("a b c"), ["InProgress", "InProgress", "InProgress"])
      for (let second = 0; second < 20; second++) yield* advance("1 second")
      assert.deepStrictEqual(yield* states("a b c"), ["Done", "Done", "Done"])
    })
  )

  scenario("OFF-21 a call that a stop cuts off frees its records", () =>
    Effect.gen(function* () {
      const { calls, run, states } = yield* batches({ handle: () => Effect.never })
      yield* append("orders", 0, ["a", "b"])
      const app = yield* run
      yield* until(() => calls.length === 1)
      const closing = yield* Effect.forkChild(app.close)
      for (let second = 0; second < 40; second++) yield* advance("1 second")
      yield* Fiber.join(closing)
      assert.deepStrictEqual(yield* states("a b"), ["Free", "Free"])
    })
  )

  scenario(
    "OFF-21 while the store refuses a key of a batch no record of it is handed over, and none stays claimed",
    () =>
      Effect.gen(function* () {
        let refuses = true
        let asked = 0
        const { calls, run, states } = yield* batches({
          around: (store) => ({
            ...store,
            begin: (key, options) =>
              Effect.suspend(() => {
                if (key === stored("b")) asked++
                return refuses && key === stored("b")
                  ? Effect.fail(
                      new IdempotencyStore.IdempotencyStoreError({
                        ...{ store: "test", operation: "begin", retryable: true, cause: new Error("away") }
                      })
                    )
                  : store.begin(key, options)
              })
          })
        })
        yield* append("orders", 0, ["a", "b", "c"])
        const app = yield* run
        yield* advance("100 millis")
        assert.deepStrictEqual(calls, [])
        assert.deepStrictEqual(yield* states("a b c"), ["Free", "Free", "Free"])
        // The call has failed, so the next one comes after the backoff.
        assert.strictEqual(asked, 1)
        refuses = false
        yield* until(() => app.of("Settled").length === 3, "1 second")
        assert.deepStrictEqual(calls, ["a b c"])
      })
  )

  scenario("CB-02 records that were handled before are no outcome for the circuit breaker", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const binding = Binding.makeBatch("orders", {
        ...orders,
        idempotency: {},
        circuitBreaker: { slidingWindowSize: 10 },
        handleBatch: () => Effect.void
      })
      const store = yield* Layer.build(IdempotencyStore.layerMemory())
      const first = yield* Effect.provide(start(binding), store)
      yield* append("orders", 0, ["a", "b", "c"])
      yield* until(() => first.of("Settled").length === 3, "1 second")
      assert.strictEqual((yield* first.connector.snapshot("orders")).breaker?.calls, 3)
      yield* first.close
      yield* memory.setCommitted("billing", "orders", 0, 0n)
      const again = yield* Effect.provide(start(binding), store)
      yield* until(() => again.of("Settled").length === 3, "1 second")
      assert.strictEqual((yield* again.connector.snapshot("orders")).breaker?.calls, 0)
    })
  )
})
