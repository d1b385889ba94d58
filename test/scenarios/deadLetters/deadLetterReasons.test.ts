/** Every way in which a record becomes a dead letter, for every kind of handler: the reason, and the time. */
import { assert, describe } from "@effect/vitest"
import {
  Binding,
  CurrentTransaction,
  EventBusError,
  type Failure,
  Outcome,
  RetryPolicy,
  Route,
  Serde
} from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Cause, Clock, Data, Effect } from "effect"
import { advance, append, bytes, headersOf, inTime, now, orders, scenario, start, text, until } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}
class Invalid extends Data.TaggedError("Invalid") {}
class Excluded extends Data.TaggedError("Excluded") {}
class Classified extends Data.TaggedError("Classified")<{ readonly message: string }> {}

interface Handed {
  readonly value: string
}

/** The reason that each value leads to, and the text beside it. */
const expected: Readonly<Record<string, readonly [reason: Failure.DeadLetterReason, detail: string | undefined]>> = {
  exhausted: ["RETRIES_EXHAUSTED", undefined],
  dies: ["RETRIES_EXHAUSTED", undefined],
  "by rule": ["NON_RETRYABLE", "not for us"],
  "by list": ["NON_RETRYABLE", undefined],
  "by classifier": ["NON_RETRYABLE", undefined],
  "to a tier that does not exist": [
    "NON_RETRYABLE",
    "the route asks for retry tier 9, and the binding has 2 retry tiers"
  ],
  "by result": ["NON_RETRYABLE", undefined],
  unreadable: ["NON_RETRYABLE", undefined],
  "by decision": ["MANUAL", "above the limit"],
  "by decision without a reason": ["MANUAL", undefined]
}

/** The time of the last failure, by value. */
const failures = () => {
  const last = new Map<string, number>()
  const handle = ({ value }: Handed) =>
    Effect.gen(function* () {
      yield* Effect.sleep("3 seconds")
      last.set(value, yield* now)
      switch (value) {
        case "dies":
          return yield* Effect.die(new RangeError("no"))
        case "by rule":
          return yield* new Invalid()
        case "by list":
          return yield* Effect.die(new Excluded())
        case "by classifier":
        case "to a tier that does not exist":
          return yield* Effect.die(new Classified({ message: value }))
        case "by result":
          return Outcome.failure(new Error("no such customer"))
        case "by decision":
          return Outcome.deadLetter("above the limit")
        case "by decision without a reason":
          return Outcome.deadLetter()
        default:
          return yield* new Down()
      }
    })
  return { last, handle }
}

type Handle = ReturnType<typeof failures>["handle"]

const value = Serde.make<string>({
  name: "text that may be unreadable",
  encode: bytes,
  decode: (given) => {
    const read = text(given) ?? ""
    if (read === "unreadable") throw new Error("no text")
    return read
  }
})

const settings = {
  ...{ ...orders, value, onError: { Down: Route.retry, Invalid: Route.deadLetter("not for us") } },
  retry: RetryPolicy.tiered({
    blocking: { maxAttempts: 2, initialBackoff: "1 second" },
    tiers: ["10 seconds", "1 minute"],
    nonRetryableExceptions: ["Excluded"]
  }),
  classifier: ({ className, message }: Failure.Failure) => {
    if (className !== "Classified") return undefined
    return message === "by classifier" ? Route.deadLetter() : Route.tier(9)
  }
} as const

/** A result in place of an error, for a handler of batches, whose results mean nothing. */
const raised = (handled: ReturnType<Handle>) =>
  Effect.flatMap(handled, (result) => (result._tag === "SuccessResult" ? Effect.void : Effect.fail(result)))

const bindings = {
  single: (handler: Handle) => Binding.make("orders", { ...settings, handler }),
  "by key": (handler: Handle) => Binding.make("orders", { ...settings, processingOrder: "key", handler }),
  unordered: (handler: Handle) => Binding.make("orders", { ...settings, processingOrder: "unordered", handler }),
  "in batches": (handler: Handle) => Binding.make("orders", { ...settings, listenerType: "BATCH", handler }),
  "whole batches": (handler: Handle) =>
    Binding.makeBatch("orders", {
      ...settings,
      handleBatch: ({ deliveries }) =>
        Effect.gen(function* () {
          const exits = yield* Effect.forEach(deliveries, (delivery) =>
            Effect.result(sandboxed(raised(handler(delivery))))
          )
          const [first, ...more] = exits.flatMap((exit, index) =>
            exit._tag === "Failure" ? [{ index, error: exit.failure }] : []
          )
          if (first !== undefined) return yield* EventBusError.BatchProcessing.these([first, ...more])
        })
    }),
  transactional: (handler: Handle) =>
    Binding.makeTransactional("orders", {
      ...settings,
      handler: (delivery) =>
        Effect.andThen(
          Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes(delivery.value) })),
          handler(delivery)
        )
    })
}

/** With a defect as the error, so that a batch can name it. */
const sandboxed = <E>(effect: Effect.Effect<void, E>): Effect.Effect<void, unknown> =>
  Effect.catchCause(effect, (cause) => Effect.fail(Cause.squash(cause)))

const topics = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "out", "orders.DLT"]) yield* memory.createTopic(topic)
  return memory
})

describe("why a record is a dead letter", () => {
  for (const [kind, bindingOf] of Object.entries(bindings)) {
    scenario(`DLT-05 ruling 60 ${kind}: each way has its reason, and the time of its dead-lettering`, () =>
      Effect.gen(function* () {
        const memory = yield* topics
        yield* advance("1 hour")
        const values = Object.keys(expected)
        const { last, handle } = failures()
        const app = yield* start(bindingOf(handle))
        const clock = yield* Clock.Clock
        const deadAt = new Map<string, number>()
        yield* app.connector.subscribe((event) => {
          if (event._tag === "Settled" && event.settlement === "DeadLettered")
            deadAt.set(text(event.record.value)!, clock.currentTimeMillisUnsafe())
        })
        yield* append("orders", 0, values)
        const dead = () => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered")
        yield* until(() => dead().length === values.length, "10 seconds")
        const letters = new Map(
          (yield* memory.log("orders.DLT", 0)).map((each) => [text(each.value)!, headersOf(each)])
        )
        assert.strictEqual(letters.size, values.length)
        for (const [each, [reason, detail]] of Object.entries(expected)) {
          const headers = letters.get(each)!
          assert.deepStrictEqual(
            [headers.get("x-eventbus-dlt-reason"), headers.get("x-eventbus-dlt-detail")],
            [reason, detail],
            each
          )
          const deadMillis = Number(headers.get("x-eventbus-dlt-timestamp"))
          // The broker of this test takes no time, apart from the first copies, which wait until their topics are known.
          assert.isAtMost(Math.abs(deadAt.get(each)! - deadMillis), last.has(each) ? 0 : 1_000, each)
          assert.isAtLeast(deadMillis, last.get(each) ?? 3_600_000, each)
        }
        assert.sameMembers(
          dead().map(({ target }) => target?.reason),
          Object.values(expected).map(([reason]) => reason)
        )
      })
    )
  }

  scenario("DLT-05 ruling 18 a record that uses up the processing budget has exhausted its retries", () =>
    Effect.gen(function* () {
      const memory = yield* topics
      yield* append("orders", 0, ["hangs"])
      yield* start(
        Binding.make("orders", {
          ...{ ...orders, retry: RetryPolicy.none, maxPollInterval: "10 seconds", maxPollRecords: 1 },
          handler: () => Effect.never
        })
      )
      yield* advance("8 seconds")
      const headers = headersOf((yield* memory.log("orders.DLT", 0))[0])
      assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
      assert.strictEqual(headers.get("x-eventbus-dlt-timestamp"), "7000")
    })
  )

  scenario("DLT-05 ruling 53 a batch that goes on dead-letters its failed record as exhausted, past the tiers", () =>
    Effect.gen(function* () {
      const memory = yield* topics
      yield* append("orders", 0, ["exhausted"])
      const batch = { listenerType: "BATCH", batchFailureStrategy: "DLQ_AND_CONTINUE" } as const
      yield* start(Binding.make("orders", { ...settings, ...batch, handler: failures().handle }))
      yield* advance("10 seconds")
      const headers = headersOf((yield* memory.log("orders.DLT", 0))[0])
      assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "RETRIES_EXHAUSTED")
      assert.strictEqual(headers.get("x-eventbus-total-attempts"), "2")
    })
  )

  scenario("DLT-05 ruling 88 an operator's command is MANUAL, at the time of the command", () =>
    Effect.gen(function* () {
      const memory = yield* topics
      yield* append("orders", 0, ["held"])
      const { connector } = yield* start(
        Binding.make("orders", { ...orders, onError: { Down: Route.pause }, handler: () => Effect.fail(new Down()) })
      )
      yield* advance("2 hours")
      const at = { topic: "orders", partition: 0, offset: 0n }
      yield* inTime(connector.deadLetter("orders", at, "customer is gone"), "1 second")
      yield* advance("1 minute")
      const headers = headersOf((yield* memory.log("orders.DLT", 0))[0])
      assert.strictEqual(headers.get("x-eventbus-dlt-reason"), "MANUAL")
      assert.strictEqual(headers.get("x-eventbus-dlt-detail"), "customer is gone")
      assert.strictEqual(headers.get("x-eventbus-dlt-timestamp"), "7200000")
    })
  )
})
