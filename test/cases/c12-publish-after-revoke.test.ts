import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, orders, scenario, start, until } from "../scenarios/bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

describe("C12 a dead letter publish after the partition was revoked", () => {
  scenario(
    "REB-05 REB-06 RTY-24 the old owner stops its retries at once; the new owner runs the whole cycle; there is one copy",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* append("orders", 0, ["a"])
        yield* append("orders", 1, ["b"])
        const failing = Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "1 second", multiplier: 1, jitter: 0 }),
          handler: () => Effect.andThen(Effect.sleep("500 millis"), Effect.fail(new Boom())),
          onError: { Boom: Route.retry }
        })
        const old = yield* start(failing)
        // 500 ms run, 1 s wait, 500 ms run, and now in the second wait.
        for (let step = 0; step < 5; step++) yield* advance("500 millis")
        const fresh = yield* start(failing)
        const moved = old.of("PartitionRevoked")[0]!.partition
        const attemptsOf = (app: typeof old) =>
          app
            .of("AttemptFailed")
            .filter(({ partition }) => partition === moved)
            .map(({ attempt }) => attempt)
        assert.deepStrictEqual(
          old.of("PartitionReleased").map(({ partition }) => partition),
          [moved]
        )
        yield* until(() => fresh.of("Settled").length === 1, "250 millis")
        assert.deepStrictEqual(attemptsOf(old), [1, 2])
        assert.deepStrictEqual(attemptsOf(fresh), [1, 2, 3])
        yield* advance("10 seconds")
        const letters = [...(yield* memory.log("orders.DLT", 0)), ...(yield* memory.log("orders.DLT", 1))]
        assert.strictEqual(letters.length, 2)
        const commits = (yield* memory.commits("billing")).filter(({ partition }) => partition === moved)
        assert.deepStrictEqual(
          commits.filter(({ offset }) => offset > 0n).map(({ offset }) => offset),
          [1n]
        )
        assert.strictEqual(yield* old.connector.getState("orders"), "RUNNING")
      })
  )
})

describe("C12 a retry publish after the partition was revoked", () => {
  for (const [name, millis] of [
    ["in the backoff of the main topic", 2_000],
    ["in the backoff of the tier", 10_000 + 4_000],
    ["while the record waits in the tier", 8_000]
  ] as const) {
    scenario(`RTY-24 REB-05 revoked ${name}: the old owner stops at once, and each tier gets one copy`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        yield* append("orders", 0, ["a"])
        yield* append("orders", 1, ["b"])
        const failing = Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({
            blocking: { maxAttempts: 3, initialBackoff: "1 second", multiplier: 1, jitter: 0 },
            tiers: [{ delay: "10 seconds", maxAttempts: 1 }]
          }),
          handler: () => Effect.andThen(Effect.sleep("500 millis"), Effect.fail(new Boom())),
          onError: { Boom: Route.retry }
        })
        const old = yield* start(failing)
        for (let step = 0; step < millis; step += 500) yield* advance("500 millis")
        const fresh = yield* start(failing)
        const settledOf = (app: typeof old) => app.of("Settled").filter(({ settlement }) => settlement !== "Abandoned")
        const isOver = () =>
          [...settledOf(old), ...settledOf(fresh)].filter(({ settlement }) => settlement === "DeadLettered").length >= 2
        yield* until(isOver, "250 millis")
        yield* advance("1 minute")
        const copies = Effect.fnUntraced(function* (topic: string) {
          return [...(yield* memory.log(topic, 0)), ...(yield* memory.log(topic, 1))].length
        })
        assert.strictEqual(yield* copies("orders.retry-1"), 2)
        assert.strictEqual(yield* copies("orders.DLT"), 2)
        // The new owner gives a record that was given up between its attempts all attempts again.
        for (const { attempts } of [...settledOf(old), ...settledOf(fresh)]) assert.strictEqual(attempts, 3)
        for (const app of [old, fresh]) assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      })
    )
  }
})
