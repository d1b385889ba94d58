import { assert, describe } from "@effect/vitest"
import { Binding, type Classifier, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { append, headersOf, now, orders, publish, scenario, settle, start, until } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

const retry = RetryPolicy.tiered({
  blocking: { maxAttempts: 2, jitter: 0 },
  tiers: ["1 second", "2 seconds"]
})

/** Values that plain JavaScript may return instead of a decision or a route. */
const nonsense: ReadonlyArray<unknown> = [
  null,
  undefined,
  0,
  "DEAD_LETTER",
  {},
  { routing: "NEXT" },
  { routing: "SKIP_TO_TIER" },
  { routing: "SKIP_TO_TIER", targetTier: Number.NaN },
  { routing: "SKIP_TO_TIER", targetTier: -5 },
  { routing: "SKIP_TO_TIER", targetTier: Number.NEGATIVE_INFINITY },
  { routing: "SKIP_TO_TIER", targetTier: "2" },
  { _tag: "Tier" },
  { _tag: "Tier", tier: Number.NaN },
  { _tag: "Tier", tier: -1 },
  { _tag: "After", delayMillis: Number.NaN },
  { _tag: "After", delayMillis: "soon" },
  { _tag: "constructor" },
  { _tag: "__proto__", routing: "__proto__" },
  Promise.resolve({ routing: "DEAD_LETTER" }),
  Effect.succeed(Route.deadLetter()),
  Object.defineProperty({}, "routing", {
    get: () => {
      throw new Error("getter")
    }
  }),
  new Proxy({}, { get: () => Symbol("x"), has: () => true })
]

/** Ways in which user code decides about failures, each answering what it is given. */
const ways: Record<string, (answer: () => unknown) => Binding.Binding<never>> = {
  classifier: (answer) =>
    Binding.make("orders", {
      ...orders,
      retry,
      classifier: answer as Classifier.ExceptionClassifier,
      handler: () => Effect.die(new Error("no"))
    }),
  "function for all errors": (answer) =>
    Binding.make("orders", {
      ...orders,
      retry,
      onError: answer as (error: Down) => Route.Route,
      handler: () => Effect.fail(new Down())
    }),
  "rule of a tag": (answer) =>
    Binding.make("orders", {
      ...orders,
      retry,
      onError: { Down: answer as (error: Down) => Route.Route },
      handler: () => Effect.fail(new Down())
    })
}

describe("rules that throw or return invalid values", () => {
  for (const [way, bindingOf] of Object.entries(ways)) {
    scenario(
      `CLS-06 CLS-12 ${way}: each record takes the whole route of an unknown error, and is dead-lettered once`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          const answers = [
            ...nonsense.map((answer) => () => answer),
            () => {
              throw undefined
            },
            () => {
              throw Object.create(null)
            }
          ]
          for (const [index, answer] of answers.entries()) {
            const app = yield* start(bindingOf(answer))
            yield* publish("orders", [String(index)])
            const isDead = () => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered")
            yield* until(isDead, "1 second")
            const letters = yield* memory.log("orders.DLT", 0)
            assert.strictEqual(letters.length, index + 1, `answer ${index}`)
            const headers = headersOf(letters.at(-1))
            assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED", `answer ${index}`)
            assert.include(["7", "14"], headers.get("x-eventbus-total-attempts"), `answer ${index}`)
            assert.deepStrictEqual(app.of("SessionCrashed"), [])
            yield* app.close
          }
        })
    )
  }

  scenario(
    "CLS-09 ruling 15 when a classifier names a tier that does not exist, the record is dead-lettered at once",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const targets = [3, 1.5, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER]
        yield* append("orders", 0, targets.map(String))
        let next = 0
        yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second", "2 seconds"] }),
            classifier: () => ({ routing: "SKIP_TO_TIER", targetTier: targets[next++]! }),
            handler: () => Effect.die("no")
          })
        )
        yield* settle
        const letters = (yield* memory.log("orders.DLT", 0)).map(headersOf)
        assert.deepStrictEqual(
          letters.map((headers) => headers.get("x-eventbus-dlt-reason")),
          targets.map(() => "NON_RETRYABLE")
        )
      })
  )

  scenario(
    "CLS-13 RTY-20 the duration of a failure decides its route: in place, early tier, late tier, dead letter topic",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const lasts = new Map([
          ["transient", 150],
          ["short-lived", 5_000],
          ["extended", 100_000],
          ["permanent", Number.POSITIVE_INFINITY]
        ])
        const handled: Array<readonly [value: string, tier: number]> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.tiered({ blocking: { jitter: 0 } }),
            onError: { Down: Route.retry },
            handler: ({ value, tier }) =>
              Effect.flatMap(now, (atMillis) => {
                if (atMillis < (lasts.get(value) ?? 0)) return Effect.fail(new Down())
                return Effect.sync(() => handled.push([value, tier]))
              })
          })
        )
        yield* append("orders", 0, ["transient", "short-lived", "extended", "permanent", "behind"])
        yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "9 seconds")
        assert.deepStrictEqual(handled, [
          ["transient", 0],
          // Relaxed: it overtakes the three that wait.
          ["behind", 0],
          ["short-lived", 1],
          ["extended", 2]
        ])
        const [letter] = yield* memory.log("orders.DLT", 0)
        assert.strictEqual(headersOf(letter).get("x-eventbus-retry-tier"), "3")
      })
  )
})
