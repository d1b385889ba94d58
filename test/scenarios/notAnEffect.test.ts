import { assert, describe } from "@effect/vitest"
import { Binding, IdempotencyStore, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start } from "./bus.ts"

/** What a handler in JavaScript, or behind an `any`, may return, or meet in its course: no Effect. */
const returned: ReadonlyArray<readonly [name: string, value: unknown, said: string]> = [
  ["nothing", undefined, "the handler returned no Effect: undefined"],
  ["a promise", Promise.resolve(), "the handler returned no Effect: object"],
  ["a number", 1, "the handler returned no Effect: number"],
  [
    "an effect that goes on with a promise",
    Effect.flatMap(Effect.void, () => Promise.resolve() as unknown as Effect.Effect<void>),
    "Fiber.runLoop: Not a valid effect: [object Promise]"
  ]
]

describe("a handler that returns no Effect is a defect of its record, and has no place for ever (ruling 16)", () => {
  for (const [name, value, said] of returned) {
    const options = {
      ...orders,
      ackMode: "MANUAL",
      maxInFlight: 1,
      retry: RetryPolicy.blocking({ maxAttempts: 2, initialInterval: "1 second" })
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
