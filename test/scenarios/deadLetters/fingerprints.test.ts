import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, type Failure, LogFormat, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Logger, Schema } from "effect"
import { advance, append, headersOf, orders, publish, scenario, settle, start, text } from "../bus.ts"

class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", {
  card: Schema.String,
  holder: Schema.Struct({ name: Schema.String })
}) {}
class Declined extends Data.TaggedError("Declined")<{ readonly card: string; readonly cause: unknown }> {}

const card = "4111111111111111"
const holder = { name: "Ada Lovelace" }
const all = { headers: { spring: "plain", brokers: true, trailJson: true } } as const

const charge = (value: string) =>
  Effect.tryPromise(() =>
    Promise.reject(new TypeError(`charge of ${value} failed`, { cause: new Error("ECONNREFUSED") }))
  )
const refund = (value: string) => Effect.die(new RangeError(`refund of ${value} failed`))

const binding = (settings: DeadLetter.Settings = {}) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.none,
    deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, settings),
    onError: () => Route.retry,
    handler: ({ value }) => (value.startsWith("refund") ? refund(value) : charge(value))
  })

const listed = (app: Effect.Success<ReturnType<typeof start>>) =>
  Effect.gen(function* () {
    const letters = yield* app.connector.deadLetters("orders")
    return yield* letters.list({ partition: 0, count: 100 })
  })

describe("why a record was dead-lettered", () => {
  scenario("OPS-02 the list of dead letters tells causes and group; failures of one place are one group", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["charge 1", "refund 2", "charge 3", "refund 4"])
      const app = yield* start(binding())
      const letters = (yield* listed(app)).map(({ letter }) => letter)
      assert.strictEqual(letters.length, 4)
      assert.deepStrictEqual(letters[0]?.cause, [
        { className: "TypeError", message: "charge of charge 1 failed" },
        { className: "Error", message: "ECONNREFUSED" }
      ])
      assert.deepStrictEqual(letters[1]?.cause, [])
      const groups = letters.map(({ fingerprint }) => fingerprint)
      assert.strictEqual(groups[0], groups[2])
      assert.strictEqual(groups[1], groups[3])
      assert.strictEqual(new Set(groups).size, 2)
      for (const letter of letters)
        assert.strictEqual(headersOf(letter.record).get("x-eventbus-last-exception-fingerprint"), letter.fingerprint)
    })
  )

  scenario("OPS-03 a function of the user's groups, once for each dead letter, also those that carry no group", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* publish("orders.DLT", ["of another tool"])
      yield* append("orders", 0, ["charge 1", "refund 2"])
      const seen: Array<Failure.FailureToGroup> = []
      const fingerprint = (failure: Failure.FailureToGroup) => {
        seen.push(failure)
        if (failure.exceptionClass === "UnknownError") throw new Error("a function that throws")
        return failure.exceptionClass
      }
      const app = yield* start(binding({ fingerprint }))
      assert.strictEqual(seen.length, 2)
      const groups = (yield* listed(app)).map(({ letter }) => letter.fingerprint)
      assert.deepStrictEqual([groups[0], groups[2]], ["own-unknown", "own-RangeError"])
      assert.match(groups[1] ?? "", /^v1-[0-9a-f]{16}$/)
      assert.strictEqual(seen.length, 3)
    })
  )

  scenario(
    "OPS-02 a record that is retried costs nothing of it: causes and group are read where it is dead-lettered",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.DLT")
        yield* append("orders", 0, ["one"])
        let stacks = 0
        let grouped = 0
        const error = Object.defineProperty({ _tag: "Down", message: "down" }, "stack", { get: () => String(stacks++) })
        const fingerprint = () => String(grouped++)
        yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.tiered({ tiers: [{ delay: "1 second", maxAttempts: 3 }] }),
            deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { fingerprint }),
            onError: () => Route.retry,
            handler: () => Effect.fail(error)
          })
        ).pipe(Effect.provide(Logger.layer([])))
        yield* advance("2500 millis")
        assert.deepStrictEqual([(yield* memory.log("orders.DLT", 0)).length, stacks, grouped], [0, 0, 0])
        yield* advance("10 seconds")
        assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
        assert.strictEqual(grouped, 1)
      })
  )
})

describe("what an error may tell", () => {
  const lines: Array<string> = []
  const capture = Logger.layer([
    Logger.map(LogFormat.text, (line) => void lines.push(line)),
    Logger.map(LogFormat.json, (line) => void lines.push(line)),
    Logger.map(Logger.formatLogFmt, (line) => void lines.push(line))
  ])

  scenario("OPS-02 fields of tagged errors are in no header and no log line, in no tier and no dead letter", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["typed", "died", "wrapped", "cause", "plain"])
      const declined = new CardDeclined({ card, holder })
      const ends: Record<string, Effect.Effect<void, unknown>> = {
        typed: Effect.fail(declined),
        died: Effect.die(declined),
        wrapped: Effect.tryPromise(() => Promise.reject(declined)),
        cause: Effect.fail(new Declined({ card, cause: declined })),
        plain: Effect.die({ card, [card]: holder })
      }
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ tiers: [{ delay: "1 second" }] }),
          deadLetter: DeadLetter.withSettings(
            DeadLetter.alertAndStore(() => Effect.fail(declined)),
            all
          ),
          onError: () => Route.retry,
          handler: ({ value }) => Effect.asVoid(ends[value] ?? Effect.void)
        })
      )
      yield* advance("30 seconds")
      yield* settle
      const letters = yield* memory.log("orders.DLT", 0)
      assert.strictEqual(letters.length, 5)
      assert.strictEqual(app.of("AlertFailed").length, 5)
      const copies = [...letters, ...(yield* memory.log("orders.retry-1", 0))]
      const headers = copies.flatMap((copy) => copy.headers.map(({ value }) => text(value) ?? ""))
      for (const told of [...headers, ...lines]) {
        assert.notInclude(told, card)
        assert.notInclude(told, holder.name)
      }
      assert.isTrue(lines.some((line) => line.includes("CardDeclined: {card, holder}")))
      assert.strictEqual(headersOf(letters[0]).get("x-eventbus-last-exception-message"), "{card, holder}")
      assert.include(headersOf(letters[2]).get("x-eventbus-last-exception-cause") ?? "", "{card, holder}")
    }).pipe(Effect.provide(capture))
  )
})
