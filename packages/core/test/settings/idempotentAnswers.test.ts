import { assert, describe, it } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { Cause, Clock, Context, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { IdempotencyStore, IdempotencyStoreError, layerMemory, type Options } from "../../src/IdempotencyStore.ts"
import { idempotent } from "../../src/internal/settings/idempotent.ts"
import { idempotentBatch } from "../../src/internal/settings/idempotentBatch.ts"
import { delivery } from "./orderDelivery.ts"

type Store = IdempotencyStore["Service"]

const memory = Effect.map(Layer.build(layerMemory()), (context) => Context.get(context, IdempotencyStore))

const noKeys: ReadonlyArray<readonly [string, () => unknown]> = [
  ["undefined", () => undefined],
  ["null", () => null],
  ["an empty text", () => ""],
  ["NaN", () => Number.NaN],
  ["a number", () => 7],
  ["an object", () => ({})],
  ["a Promise", () => Promise.resolve("k")],
  ["a symbol", () => Symbol("k")],
  ["a lone surrogate", () => "\ud800"]
]

describe("a key that is none", () => {
  for (const [title, key] of noKeys) {
    it.effect(
      `ruling 16 OFF-19 ${title} fails each record, as a function that throws does: none is skipped as done`,
      () =>
        Effect.gen(function* () {
          const store = yield* memory
          const options = { groupId: "billing", key: key as () => string }
          let handled = 0
          const one = idempotent(options, store, () => Effect.sync(() => void handled++))
          const batch = idempotentBatch(options, store, () => Effect.sync(() => void handled++))
          for (const offset of [1, 2, 3]) {
            const exits: ReadonlyArray<Exit.Exit<unknown, unknown>> = [
              yield* Effect.exit(one(delivery(offset))),
              yield* Effect.exit(batch([delivery(offset)]))
            ]
            for (const exit of exits) {
              assert(Exit.isFailure(exit))
              assert.match(
                Cause.pretty(exit.cause),
                /^(TypeError: the idempotency key is|ReturnedPromise: the idempotency key returned)/
              )
            }
          }
          assert.strictEqual(handled, 0)
        })
    )
  }
})

const token = { key: "k", id: "1" }
const good = (begin: () => unknown): Store => ({
  name: "mine",
  begin: begin as Store["begin"],
  complete: () => Effect.succeed(true),
  abandon: () => Effect.succeed(true),
  renew: () => Effect.succeed(true)
})

const noAnswers: ReadonlyArray<readonly [string, () => unknown]> = [
  ["another tag", () => Effect.succeed({ _tag: "Weird" })],
  ["a text", () => Effect.succeed("Done")],
  ["null", () => Effect.succeed(null)],
  ["undefined", () => Effect.succeed(undefined)],
  ["a time that is none", () => Effect.succeed({ _tag: "InProgress", untilMillis: Number.NaN })],
  ["no token", () => Effect.succeed({ _tag: "Started" })],
  ["a token without a key", () => Effect.succeed({ _tag: "Started", token: { id: "1" } })],
  ["no Effect", () => undefined],
  ["a Promise", () => Promise.resolve({ _tag: "Started", token })]
]

describe("an answer of a store that is none", () => {
  for (const [title, begin] of noAnswers) {
    it.effect(`OFF-19 ruling 86 ${title} fails the record with the store's error, at the first look`, () =>
      Effect.gen(function* () {
        let asked = 0
        const store = good(() => {
          asked++
          return begin()
        })
        const options = { groupId: "billing", key: () => "k" }
        const exits: ReadonlyArray<Exit.Exit<unknown, unknown>> = [
          yield* Effect.exit(idempotent(options, store, () => Effect.void)(delivery(1))),
          yield* Effect.exit(idempotentBatch(options, store, () => Effect.void)([delivery(1)]))
        ]
        for (const exit of exits) {
          assert(Exit.isFailure(exit))
          const error = exit.cause.reasons.find(Cause.isFailReason)?.error
          assert.instanceOf(error, IdempotencyStoreError)
          assert.strictEqual(error.operation, "begin")
          assert.isFalse(error.retryable)
        }
        assert.strictEqual(asked, 2)
      })
    )
  }

  it.effect("OFF-19 ruling 86 a wrong answer after the handler keeps its success", () =>
    Effect.gen(function* () {
      for (const complete of [() => undefined, () => Effect.succeed("yes"), () => Promise.resolve(true)]) {
        const store: Store = {
          ...good(() => Effect.succeed({ _tag: "Started", token })),
          complete: complete as unknown as Store["complete"],
          renew: (() => undefined) as unknown as Store["renew"]
        }
        const handled = yield* idempotent({ groupId: "billing", key: () => "k" }, store, () => Effect.succeed("done"))(
          delivery(1)
        )
        assert.strictEqual(handled, "done")
      }
    })
  )

  it.effect("OFF-19 a lease that is always about to run out is not asked about without a pause", () =>
    Effect.gen(function* () {
      let asked = 0
      const store = good(() =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          asked++
          return { _tag: "InProgress", untilMillis: now - 1 }
        })
      )
      const waiting = yield* Effect.forkChild(
        idempotent({ groupId: "billing", key: () => "k" }, store, () => Effect.void)(delivery(1)),
        { startImmediately: true }
      )
      for (let i = 0; i < 100; i++) yield* TestClock.adjust("10 millis")
      assert.isAtMost(asked, 21)
      yield* Fiber.interrupt(waiting)
    })
  )
})

describe("keys of two bindings of one group", () => {
  const binding = (topic: string, idempotency: Options<unknown, string>, groupId = "billing") =>
    Binding.make(topic, { topic, groupId, value: Serde.string, idempotency, handler: () => Effect.void })
  const key = () => "order-1"
  const paths = (...bindings: ReadonlyArray<Binding.Binding<unknown>>) =>
    Array.from(Binding.problems(bindings), ([at, issues]) => [at, ...issues.map(({ path }) => path)])

  it("OFF-19 ruling 89 two keys of their own on two topics are refused without a scope in one of them", () => {
    assert.deepStrictEqual(paths(binding("placed", { key }), binding("shipped", { key })), [[1, "idempotency.scope"]])
    assert.deepStrictEqual(paths(binding("placed", { key }), binding("shipped", { key, scope: "shipped" })), [])
    assert.deepStrictEqual(paths(binding("placed", { key, scope: "x" }), binding("shipped", { key, scope: "x" })), [])
    assert.deepStrictEqual(paths(binding("placed", { key }), binding("shipped", {})), [])
    assert.deepStrictEqual(paths(binding("placed", { key }), binding("shipped", { key }, "other")), [])
  })

  it.effect("OFF-19 ruling 89 a scope keeps the same key apart, and without one the stored key stays as it was", () =>
    Effect.gen(function* () {
      const store = yield* memory
      const seen: Array<string> = []
      const spied: Store = {
        ...store,
        begin: (stored, options) => {
          seen.push(stored)
          return store.begin(stored, options)
        }
      }
      let handled = 0
      for (const settings of [{}, { scope: "shipped" }, { scope: "a/b:c" }, { scope: "s", cluster: "eu" }])
        yield* idempotent({ groupId: "billing", key, ...settings }, spied, () => Effect.sync(() => void handled++))(
          delivery(1)
        )
      assert.strictEqual(handled, 4)
      assert.deepStrictEqual(seen, [
        "billing:order-1",
        "default/billing/shipped:order-1",
        "default/billing/a%2Fb%3Ac:order-1",
        "eu/billing/s:order-1"
      ])
    })
  )
})
