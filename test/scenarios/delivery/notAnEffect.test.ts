import { assert, describe } from "@effect/vitest"
import { Binding, IdempotencyStore, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { type App, advance, append, orders, scenario, start, text } from "../bus.ts"

/** A handler in JavaScript, or behind an `any`, may return or yield a value that is not an Effect. */
const returned: ReadonlyArray<readonly [name: string, value: unknown, said: string]> = [
  ["nothing", undefined, "the handler returned undefined; an Effect is expected"],
  ["a promise", Promise.resolve(), "the handler returned a Promise; an Effect is expected"],
  ["a number", 1, "the handler returned number; an Effect is expected"],
  [
    "an effect that goes on with a promise",
    Effect.flatMap(Effect.void, () => Promise.resolve() as unknown as Effect.Effect<void>),
    "an effect went on with a Promise; an Effect is expected"
  ]
]

describe("a handler that returns no Effect is a defect of its record, and gives its slot back (ruling 16)", () => {
  for (const [name, value, said] of returned) {
    const options = {
      ...orders,
      ackMode: "MANUAL",
      maxInFlight: 1,
      retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 second" })
    } as const
    const handler = ({ value: text }: { readonly value: string }) =>
      text === "bad" ? (value as Effect.Effect<void>) : Effect.void

    const kinds = {
      partition: () => Binding.make("orders", { ...options, handler }),
      once: () => Binding.make("orders", { ...options, idempotency: {}, handler }),
      key: () => Binding.make("orders", { ...options, processingOrder: "key", handler }),
      batch: () =>
        Binding.makeBatch("orders", {
          ...options,
          value: Serde.string,
          handleBatch: ({ deliveries }) =>
            deliveries.some(({ value }) => value === "bad") ? (value as Effect.Effect<void>) : Effect.void
        }),
      transactional: () =>
        Binding.makeTransactional("orders", { ...orders, maxInFlight: 1, retry: options.retry, handler })
    }
    for (const [kind, binding] of Object.entries(kinds)) {
      scenario(`${kind}, ${name}`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 2 })
          yield* append("orders", 0, ["bad", "a2"])
          yield* append("orders", 1, ["b1", "bad", "b3"])
          const app = yield* start(binding())
          for (let second = 0; second < 20; second++) yield* advance("1 second")
          const settled = app.of("Settled").map(({ settlement }) => settlement)
          assert.deepStrictEqual(settled.toSorted(), ["DeadLettered", "DeadLettered", "Handled", "Handled", "Handled"])
          for (const { failure } of app.of("AttemptFailed")) assert.strictEqual(failure.message, said)
        }).pipe(Effect.provide(IdempotencyStore.layerMemory()))
      )
    }
  }
})

/** A yielded value that ends the fiber of a call without its finalizers. */
const noEffect = Promise.resolve() as unknown as Effect.Effect<never>
const retry = RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 second" })

describe("a call that yields a value that is not an Effect (ruling 16)", () => {
  const settlements = (app: App) =>
    app
      .of("Settled")
      .map(({ settlement }) => settlement)
      .toSorted()

  for (const listenerType of ["SINGLE", "BATCH"] as const)
    scenario(`${listenerType}: gives its slot back after a record that was tried again in place`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        let calls = 0
        const handler = ({ value }: { readonly value: string }) => {
          if (value === "once" && calls++ === 0) return Effect.die("down")
          return value === "promise" ? Effect.flatMap(Effect.void, () => noEffect) : Effect.void
        }
        const app = yield* start(Binding.make("orders", { ...orders, listenerType, maxInFlight: 1, retry, handler }))
        yield* append("orders", 0, ["once", "promise", "behind"])
        for (let second = 0; second < 5; second++) yield* advance("1 second")
        yield* append("orders", 1, ["other"])
        for (let second = 0; second < 5; second++) yield* advance("1 second")
        assert.deepStrictEqual(settlements(app), ["DeadLettered", "Handled", "Handled", "Handled"])
      })
    )

  scenario("in an interceptor of a transactional binding: the transaction is aborted", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const binding = Binding.makeTransactional("orders", {
        ...orders,
        maxInFlight: 1,
        retry,
        interceptors: [(call, { records }) => (text(records[0]?.value) === "bad" ? noEffect : call)],
        handler: () => Effect.void
      })
      const app = yield* start(binding)
      yield* append("orders", 0, ["a", "bad", "behind"])
      yield* append("orders", 1, ["other"])
      for (let second = 0; second < 10; second++) yield* advance("1 second")
      assert.deepStrictEqual(settlements(app), ["DeadLettered", "Handled", "Handled", "Handled"])
    })
  )

  scenario("after its partition was lost: gives its slot back", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const handler = ({ value }: { readonly value: string }) =>
        value === "promise"
          ? Effect.uninterruptible(Effect.flatMap(Effect.sleep("10 seconds"), () => noEffect))
          : Effect.void
      const app = yield* start(Binding.make("orders", { ...orders, maxInFlight: 1, retry: RetryPolicy.none, handler }))
      yield* append("orders", 0, ["promise"])
      yield* advance("1 second")
      yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
      for (let second = 0; second < 15; second++) yield* advance("1 second")
      yield* append("orders", 1, ["other"])
      for (let second = 0; second < 60; second++) yield* advance("1 second")
      assert.strictEqual(app.of("Settled").filter(({ partition }) => partition === 1).length, 1)
    })
  )
})
