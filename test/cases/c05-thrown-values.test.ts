import { assert, describe } from "@effect/vitest"
import { Binding, IdempotencyStore, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, headersOf, orders, scenario, settle, start } from "../scenarios/bus.ts"

const withoutMessage = Object.defineProperty(new Error(), "message", { value: undefined })
const throwingGetter = Object.defineProperty(new Error(), "message", {
  get: () => {
    throw new Error("getter")
  }
})
const cyclic = new Error("cyclic")
cyclic.cause = cyclic

const hostile: ReadonlyArray<unknown> = [
  undefined,
  null,
  "text",
  42,
  { code: 1 },
  withoutMessage,
  throwingGetter,
  cyclic,
  Object.create(null),
  Symbol("x")
]

const revoked = (target: object): unknown => {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** Values that throw when somebody asks which class made them. */
const proxies: Readonly<Record<string, () => unknown>> = {
  "a revoked Proxy of an object": () => revoked({}),
  "a revoked Proxy of a function": () => revoked(() => {}),
  "a Proxy whose prototype throws": () =>
    new Proxy(new Error("hidden"), {
      getPrototypeOf: () => {
        throw new Error("no prototype for you")
      }
    })
}

/** Ways in which a handler can end badly. */
const ways: Record<string, (value: unknown) => Effect.Effect<void, never>> = {
  throw: (value) => {
    throw value
  },
  die: (value) => Effect.die(value),
  reject: (value) => Effect.promise(() => Promise.reject(value)),
  fail: (value) => Effect.orDie(Effect.fail(value))
}

describe("C05 a thrown value that is not a proper Error", () => {
  for (const [way, end] of Object.entries(ways)) {
    scenario(`CLS-10 ${way}: each is dead-lettered with a class name and a message, all offsets committed`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append(
          "orders",
          0,
          hostile.map((_, index) => String(index))
        )
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.none,
            handler: ({ value }) => end(hostile[Number(value)])
          })
        )
        yield* settle
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), BigInt(hostile.length))
        const letters = yield* memory.log("orders.DLT", 0)
        assert.strictEqual(letters.length, hostile.length)
        for (const headers of letters.map(headersOf)) {
          assert.isAbove(headers.get("x-eventbus-last-exception-class")?.length ?? 0, 0)
          assert.isString(headers.get("x-eventbus-last-exception-message"))
          assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
        }
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
    )
  }

  scenario("CLS-10 Effect.fail of values without a tag, with a route for all", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append(
        "orders",
        0,
        hostile.map((_, index) => String(index))
      )
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          handler: ({ value }) => Effect.fail(hostile[Number(value)]),
          onError: () => ({ _tag: "DeadLetter", reason: undefined })
        })
      )
      yield* settle
      assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, hostile.length)
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), BigInt(hostile.length))
    })
  )

  for (const [name, make] of Object.entries(proxies)) {
    const fails = ({ value }: { readonly value: string }) =>
      value === "bad" ? Effect.fail(make() as never) : Effect.void
    const settings = { ...orders, retry: RetryPolicy.none }
    const store = { idempotency: { key: ({ value }: { readonly value: string }) => value } }
    const bindings: Readonly<Record<string, Binding.Binding<IdempotencyStore.IdempotencyStore>>> = {
      "record by record": Binding.make("orders", { ...settings, handler: fails }),
      "side by side": Binding.make("orders", { ...settings, processingOrder: "unordered", handler: fails }),
      "with a store": Binding.make("orders", { ...settings, ...store, handler: fails }),
      "in batches": Binding.makeBatch("orders", {
        ...settings,
        handleBatch: ({ deliveries }) => Effect.forEach(deliveries, fails)
      })
    }
    for (const [how, binding] of Object.entries(bindings)) {
      scenario(`CLS-10 Effect.fail of ${name}, ${how}: the record is dead-lettered, those behind it are handled`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* append("orders", 0, ["good", "bad", "behind"])
          const app = yield* start(binding)
          for (let second = 0; second < 5; second++) yield* advance("1 second")
          assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
          assert.deepStrictEqual(app.of("SessionCrashed"), [])
        }).pipe(Effect.provide(IdempotencyStore.layerMemory()))
      )
    }
    scenario(`CLS-10 a handler of batches succeeds with ${name}`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["a", "b"])
        const app = yield* start(
          Binding.makeBatch("orders", { ...settings, handleBatch: () => Effect.sync(() => make()) })
        )
        yield* advance("1 second")
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      }).pipe(Effect.provide(IdempotencyStore.layerMemory()))
    )
  }
})
