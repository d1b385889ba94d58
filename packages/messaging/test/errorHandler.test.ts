import { assert, describe, it } from "@effect/vitest"
import { type ConsumerRecord, Publisher } from "@eventbus/core"
import { KafkaErrorHandler } from "@eventbus/messaging"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import * as Memory from "./memory.ts"

const Kafka = Publisher.layer().pipe(Layer.provideMerge(MemoryBroker.layer({ autoCreateTopics: "on" })))
const handler = KafkaErrorHandler.make({ topics: ["docs-emails", "docs-users", "docs-receipts"] })
const utf8 = (text: string) => new TextEncoder().encode(text)

const record = (topic: string, headers: Readonly<Record<string, string>> = {}): KafkaErrorHandler.FailedRecord => ({
  ...{ topic, key: utf8("k"), value: Uint8Array.of(0, 255, 1) },
  headers: Object.entries(headers).map(([key, value]): ConsumerRecord.Header => ({ key, value: utf8(value) }))
})

const headersOf = (topic: string) => Effect.map(Memory.record(topic, 0n), ({ headers }) => headers)

describe("KafkaErrorHandler", () => {
  it.effect("MSG-41 routeToDlq keeps key, bytes and headers, and says topic, error, time and count", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.parse("2026-03-01T10:00:00Z"))
      yield* handler.routeToDlq(record("docs-emails", { tenant: "t", "retry-count": "2" }), new TypeError("null"))
      const { log } = yield* MemoryBroker.MemoryBroker
      const [letter] = yield* log("docs-emails-dlq", 0)
      assert.deepStrictEqual([letter!.key, letter!.value], [utf8("k"), Uint8Array.of(0, 255, 1)])
      assert.deepStrictEqual(yield* headersOf("docs-emails-dlq"), {
        ...{
          tenant: "t",
          "original-topic": "docs-emails",
          "exception-message": "null",
          "exception-class": "TypeError"
        },
        ...{ "failure-timestamp": "2026-03-01T10:00:00.000Z", "retry-count": "2" }
      })
    }).pipe(Effect.provide(Kafka))
  )

  it.effect(
    "MSG-41 any topic has dead letters, a retry topic those of its topic; headers of the connector are left out",
    () =>
      Effect.gen(function* () {
        yield* handler.routeToDlq(record("strange", { "x-eventbus-copy-owner": "g" }), "text")
        yield* handler.routeToDlq(record("docs-users-retry"), new Error("e"))
        const strange = yield* headersOf("strange-dlq")
        assert.deepInclude(strange, { "original-topic": "strange", "retry-count": "0", "exception-message": "text" })
        assert.notProperty(strange, "x-eventbus-copy-owner")
        assert.include(yield* headersOf("docs-users-dlq"), { "original-topic": "docs-users" })
      }).pipe(Effect.provide(Kafka))
  )

  it.effect("MSG-42 retryFromDlq sends any copy, also one without an owner, to its topic with retry-count + 1", () =>
    Effect.gen(function* () {
      const letter = record("docs-users-dlq", { "original-topic": "docs-users", tenant: "t", "retry-count": "4" })
      assert.isTrue(yield* handler.retryFromDlq(letter))
      assert.include(yield* headersOf("docs-users"), { tenant: "t", "retry-count": "5" })
    }).pipe(Effect.provide(Kafka))
  )

  it.effect(
    "MSG-42 retryFromDlq refuses a topic that is not declared, with the value of the header; nothing is sent",
    () =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip(
          handler.retryFromDlq(record("docs-users-dlq", { "original-topic": "payments" }))
        )
        assert.strictEqual(refused._tag, "UndeclaredTopic")
        assert.strictEqual(
          refused.message,
          "Header original-topic is 'payments'; allowed is a declared topic: docs-emails, docs-users, docs-receipts."
        )
        const without = yield* Effect.flip(handler.retryFromDlq(record("docs-users-dlq")))
        assert.include(without.message, "is missing")
        const { partitionCount } = yield* MemoryBroker.MemoryBroker
        assert.strictEqual(yield* partitionCount("payments"), 0)
      }).pipe(Effect.provide(Kafka))
  )

  it.effect(
    "MSG-43 routeToRetryOrDlq: the retry topic while retry-count is below the limit, else the dead letters",
    () =>
      Effect.gen(function* () {
        const error = new Error("away")
        assert.strictEqual(
          yield* handler.routeToRetryOrDlq(record("docs-emails", { "retry-count": "1" }), error, 2),
          "retry"
        )
        assert.include(yield* headersOf("docs-emails-retry"), { "retry-count": "2", "exception-message": "away" })
        const again = record("docs-emails-retry", { "retry-count": "2" })
        assert.strictEqual(yield* handler.routeToRetryOrDlq(again, error, 2), "dlq")
        assert.include(yield* headersOf("docs-emails-dlq"), { "retry-count": "2", "original-topic": "docs-emails" })
        assert.strictEqual(yield* handler.routeToRetryOrDlq(record("other"), error, 2), "dlq")
        const broken = record("docs-users", { "retry-count": "-7e3" })
        assert.strictEqual(yield* handler.routeToRetryOrDlq(broken, error, 1), "retry")
        assert.include(yield* headersOf("docs-users-retry"), { "retry-count": "1" })
      }).pipe(Effect.provide(Kafka))
  )

  it.effect("MSG-43 C58 a limit that is no number, or negative, ends the retries", () =>
    Effect.gen(function* () {
      for (const limit of [Number.NaN, -1, -Infinity]) {
        const route = yield* handler.routeToRetryOrDlq(record("docs-emails"), new Error("e"), limit)
        assert.strictEqual(route, "dlq", String(limit))
      }
    }).pipe(Effect.provide(Kafka))
  )

  it("MSG-44 every declared topic has a retry topic, any other has none", () => {
    assert.deepStrictEqual(["docs-emails", "docs-receipts", "docs-nothing"].map(handler.getRetryTopic), [
      "docs-emails-retry",
      "docs-receipts-retry",
      undefined
    ])
  })

  it.effect("MSG-45 each dead letter is counted for the topic that it is of", () =>
    Effect.gen(function* () {
      yield* handler.routeToDlq(record("docs-emails-retry"), new Error("e"))
      const series = (yield* Metric.snapshot).filter(({ id }) => id === "kafka.messaging.messages.dlq")
      assert.deepStrictEqual(
        series.map(({ attributes }) => attributes),
        [{ topic: "docs-emails", operation: "dlq" }]
      )
    }).pipe(Effect.provide(Kafka), Effect.provideService(Metric.MetricRegistry, new Map()))
  )
})
