import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Context, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { IdempotencyStore, IdempotencyStoreError, layerMemory } from "../../src/IdempotencyStore.ts"
import { idempotent, type Settings } from "../../src/internal/settings/idempotent.ts"
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
          const options = { groupId: "billing", topic: "orders", key: key as () => string }
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
        const options = { groupId: "billing", topic: "orders", key: () => "k" }
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
        const handled = yield* idempotent({ groupId: "billing", topic: "orders", key: () => "k" }, store, () =>
          Effect.succeed("done")
        )(delivery(1))
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
        idempotent({ groupId: "billing", topic: "orders", key: () => "k" }, store, () => Effect.void)(delivery(1)),
        { startImmediately: true }
      )
      for (let i = 0; i < 100; i++) yield* TestClock.adjust("10 millis")
      assert.isAtMost(asked, 21)
      yield* Fiber.interrupt(waiting)
    })
  )
})

describe("keys of bindings of one group", () => {
  const key = () => "order-1"
  /** How often a handler of these settings runs for the key, and which keys the store is asked for. */
  const run = Effect.fnUntraced(function* (...all: ReadonlyArray<Partial<Settings<null, string>>>) {
    const store = yield* memory
    const claimed: Array<string> = []
    const spied: Store = {
      ...store,
      begin: (stored, options) => {
        claimed.push(stored)
        return store.begin(stored, options)
      }
    }
    let handled = 0
    for (const settings of all)
      yield* Effect.exit(
        idempotent({ groupId: "billing", topic: "placed", key, ...settings }, spied, () =>
          Effect.sync(() => void handled++)
        )(delivery(1))
      )
    return { handled, claimed: new Set(claimed) }
  })

  it.effect(
    "OFF-19 the same key on two topics is other work, also in two processes that cannot compare their settings",
    () =>
      Effect.gen(function* () {
        const { handled } = yield* run({}, { topic: "shipped" }, {}, { topic: "shipped" })
        assert.strictEqual(handled, 2)
      })
  )

  it.effect("OFF-19 bindings that name one scope share their keys", () =>
    Effect.gen(function* () {
      const { handled } = yield* run({ scope: "x" }, { topic: "shipped", scope: "x" })
      assert.strictEqual(handled, 1)
    })
  )

  it.effect("OFF-19 ruling 81 topic and scope keep keys apart whatever characters they have", () =>
    Effect.gen(function* () {
      const { handled, claimed } = yield* run(
        {},
        { scope: "shipped" },
        { scope: "a/b:c" },
        { scope: "s", cluster: "eu" }
      )
      assert.strictEqual(handled, 4)
      assert.includeMembers(Array.from(claimed), [
        "default/billing/placed:order-1",
        "default/billing/shipped:order-1",
        "default/billing/a%2Fb%3Ac:order-1",
        "eu/billing/s:order-1"
      ])
    })
  )

  it.effect(
    "OFF-19 ruling 77 ruling 89 a key that a former version stored for the whole group counts, but not under a scope",
    () =>
      Effect.gen(function* () {
        const store = yield* memory
        const claim = yield* store.begin("billing:order-1", { lease: Duration.minutes(1) })
        if (claim._tag === "Started") yield* store.complete(claim.token, { retention: Duration.minutes(1) })
        const handled: Array<string> = []
        const handle = (name: string, settings: Partial<Settings<null, string>>) =>
          Effect.exit(
            idempotent({ groupId: "billing", topic: "placed", key, ...settings }, store, () =>
              Effect.sync(() => void handled.push(name))
            )(delivery(1))
          )
        yield* handle("topic", {})
        yield* handle("scope", { scope: "own" })
        assert.deepStrictEqual(handled, ["scope"])
      })
  )
})
