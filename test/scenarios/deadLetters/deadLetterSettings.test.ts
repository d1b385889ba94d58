import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, headersOf, orders, scenario, start, until, valuesOf } from "../bus.ts"

class Fraud extends Data.TaggedError("Fraud") {}
class Odd extends Data.TaggedError("Odd") {}

const binding = (settings: DeadLetter.Settings) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.none,
    deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, settings),
    onError: { Fraud: Route.deadLetter("fraud"), Odd: Route.retry },
    handler: ({ value }) => Effect.fail(value === "fraud" ? new Fraud() : new Odd())
  })

describe("headers and topics of dead letters", () => {
  scenario(
    "DLT-14 DLT-15 ruling 25 headers of Spring and of the brokers package, and the trail as JSON, beside ours",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 3 })
        yield* append("orders", 2, ["odd"])
        yield* start(binding({ headers: { spring: "plain", brokers: true, trailJson: true } }))
        const letters = (yield* Effect.forEach([0, 1, 2], (partition) => memory.log("orders.DLT", partition))).flat()
        assert.strictEqual(letters.length, 1)
        const headers = headersOf(letters[0])
        assert.strictEqual(headers.get("x-eventbus-original-topic"), "orders")
        assert.strictEqual(headers.get("kafka_dlt-original-topic"), "orders")
        const partition = letters[0]?.headers.find(({ key }) => key === "kafka_dlt-original-partition")?.value
        assert.deepStrictEqual(Array.from(partition ?? []), [0, 0, 0, 2])
        assert.strictEqual(headers.get("kafka_dlt-exception-fqcn"), "Odd")
        assert.strictEqual(headers.get("original-topic"), "orders")
        assert.strictEqual(headers.get("exception-class"), "Odd")
        assert.deepInclude(JSON.parse(headers.get("x-eventbus-trail") ?? "[]")[0], {
          tier: 0,
          exceptionClass: "Odd",
          attempts: 1
        })
      })
  )

  scenario(
    "NAM-03 a custom suffix, and another topic for some failures; an invalid topic name means the usual topic",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["fraud", "odd"])
        const topicFor = ({ tag, reason }: DeadLetter.FailureSummary) =>
          tag === "Fraud" && reason === "NON_RETRYABLE" ? "fraud.cases" : "no topic / name"
        const app = yield* start(binding({ topicSuffix: "dead", topicFor }))
        assert.deepStrictEqual(yield* valuesOf("fraud.cases"), ["fraud"])
        assert.deepStrictEqual(yield* valuesOf("orders.dead"), ["odd"])
        assert.deepStrictEqual(
          app.of("Settled").map(({ target }) => target?.topic),
          ["fraud.cases", "orders.dead"]
        )
      })
  )

  scenario(
    "DLT-02 ruling 23 ruling 73 while a dead letter cannot be published, a bounded number of records behind it is handled under `MANUAL`",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const values = ["odd", ...Array.from({ length: 12_000 }, (_, index) => `good-${index}`)]
        yield* append("orders", 0, values)
        let handled = 0
        yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.none,
            ackMode: "MANUAL",
            missingTopics: "wait",
            handler: ({ value }) => (value === "odd" ? Effect.die("odd") : Effect.sync(() => handled++))
          })
        )
        yield* advance("20 seconds")
        assert.isAtMost(handled, 10_000)
        yield* memory.createTopic("orders.DLT")
        yield* until(() => handled === 12_000, "5 seconds")
        yield* advance("5 seconds")
        assert.strictEqual(handled, 12_000)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 12_001n)
      })
  )
})
