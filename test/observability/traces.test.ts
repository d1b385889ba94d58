import { assert, describe, it } from "@effect/vitest"
import { Binding, type Broker, CurrentTransaction, RetryPolicy, Route, Tracing } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Option, Schema, Tracer } from "effect"
import { advance, append, bytes, headersOf, inTime, orders, scenario, settle, start, text } from "../scenarios/bus.ts"
import { parentIdOf, traced } from "./spans.ts"

class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {}

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "b7ad6b7169203331"
const sampled = `00-${traceId}-${spanId}-01`
const unsampled = `00-${traceId}-${spanId}-00`

/** Records on `orders` with these `traceparent` headers; none for undefined. */
const publishTraced = Effect.fnUntraced(function* (parents: ReadonlyArray<string | undefined>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.append(
    "orders",
    0,
    parents.map((parent, index) => ({
      value: bytes(`v${index}`),
      headers:
        parent === undefined
          ? []
          : [
              { key: "traceparent", value: bytes(parent) },
              { key: "tracestate", value: bytes("vendor=1") }
            ]
    }))
  )
})

const firstOf = Effect.fnUntraced(function* (topic: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  return headersOf((yield* memory.log(topic, 0))[0])
})

/** Fails in each of its deliveries: main topic, retry topic, and then it is a dead letter. */
const failing = Binding.make("orders", {
  ...orders,
  retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
  onError: { Declined: Route.retry },
  handler: () => new Declined()
})

describe("traces", () => {
  scenario("OBS-15 DLT-16 without a tracer, trace headers reach handler, retry and dead letter record unchanged", () =>
    Effect.gen(function* () {
      yield* publishTraced([sampled])
      const seen: Array<string | null | undefined> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
          onError: { Declined: Route.retry },
          handler: ({ headers }) =>
            Effect.suspend(() => {
              seen.push(text(headers.find(({ key }) => key === "traceparent")?.value))
              return new Declined()
            })
        })
      )
      yield* advance("5 minutes")
      assert.deepStrictEqual(seen, [sampled, sampled])
      for (const topic of ["orders.retry-1", "orders.DLT"]) {
        const headers = yield* firstOf(topic)
        assert.strictEqual(headers.get("traceparent"), sampled)
        assert.strictEqual(headers.get("tracestate"), "vendor=1")
      }
    })
  )

  scenario(
    "OBS-15 one trace from the producer over the retry topic to the dead letter, each step a child of the one before",
    () =>
      traced((spans) =>
        Effect.gen(function* () {
          yield* publishTraced([sampled])
          yield* start(failing)
          yield* advance("5 minutes")
          assert.deepStrictEqual(
            spans.map(({ name, kind, traceId }) => ({ name, kind, traceId })),
            [
              { name: "process orders", kind: "consumer", traceId },
              { name: "process orders.retry-1", kind: "consumer", traceId }
            ]
          )
          const [first, second] = spans
          assert.strictEqual(parentIdOf(first), spanId)
          assert.strictEqual(parentIdOf(second), first?.spanId)
          const letter = yield* firstOf("orders.DLT")
          assert.strictEqual(letter.get("traceparent"), `00-${traceId}-${second?.spanId}-01`)
          assert.strictEqual(letter.get("tracestate"), "vendor=1")
          assert.deepStrictEqual(Object.fromEntries(second?.attributes ?? []), {
            "messaging.system": "kafka",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": "orders.retry-1",
            "messaging.destination.partition.id": "0",
            "messaging.consumer.group.name": "billing",
            "eventbus.cluster": "default",
            "eventbus.binding": "orders",
            "messaging.kafka.offset": 0,
            "messaging.message.body.size": 2,
            "eventbus.retry.tier": 1,
            "eventbus.retry.attempt": 1
          })
          assert.strictEqual(second?.status._tag, "Ended")
        })
      )
  )

  scenario("OBS-15 DLT-16 a replayed dead letter continues its trace as a child of the last failed call", () =>
    traced((spans) =>
      Effect.gen(function* () {
        yield* publishTraced([sampled])
        const { connector } = yield* start(failing)
        yield* advance("5 minutes")
        const letters = yield* connector.deadLetters("orders")
        assert.deepInclude(yield* inTime(letters.replay(1)), { replayed: 1 })
        yield* advance("5 minutes")
        assert.deepStrictEqual(
          spans.map(({ name, traceId }) => ({ name, traceId })),
          ["orders", "orders.retry-1", "orders", "orders.retry-1"].map((topic) => ({
            name: `process ${topic}`,
            traceId
          }))
        )
        assert.deepStrictEqual(spans.map(parentIdOf), [spanId, ...spans.slice(0, 3).map((span) => span.spanId)])
        const memory = yield* MemoryBroker.MemoryBroker
        const again = headersOf((yield* memory.log("orders.DLT", 0)).at(-1))
        assert.strictEqual(again.get("traceparent"), `00-${traceId}-${spans[3]?.spanId}-01`)
        assert.strictEqual(again.get("tracestate"), "vendor=1")
      })
    )
  )

  scenario(
    "OBS-15 a record that is not sampled makes no span, nor does its handler; records that the handler sends still name the trace",
    () =>
      traced((spans) =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("sent")
          yield* publishTraced([unsampled])
          const producer = Tracing.producer(yield* memory.broker.producer())
          yield* start(
            Binding.make("orders", {
              ...orders,
              handler: () =>
                Effect.withSpan(Effect.orDie(producer.send({ topic: "sent", key: null, value: null })), "inside")
            })
          )
          assert.strictEqual(spans.length, 0)
          const headers = yield* firstOf("sent")
          assert.strictEqual(headers.get("traceparent"), unsampled)
          assert.strictEqual(headers.get("tracestate"), "vendor=1")
        })
      )
  )

  scenario("OBS-15 the spans and sends of a sampled handler are in the trace; a send has a span of its own", () =>
    traced((spans) =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("sent")
        yield* publishTraced([sampled])
        yield* start(
          Binding.makeTransactional("orders", {
            ...orders,
            onError: {},
            handler: () =>
              Effect.withSpan(
                Effect.orDie(CurrentTransaction.send({ topic: "sent", key: null, value: null })),
                "inside"
              )
          })
        )
        yield* settle
        assert.deepStrictEqual(
          spans.map(({ name, kind }) => `${kind} ${name}`),
          ["consumer process orders", "internal inside", "producer send sent"]
        )
        const [process, inside, send] = spans
        assert.strictEqual(parentIdOf(inside), process?.spanId)
        assert.strictEqual(parentIdOf(send), inside?.spanId)
        assert.strictEqual((yield* firstOf("sent")).get("traceparent"), `00-${traceId}-${send?.spanId}-01`)
      })
    )
  )

  scenario("OBS-15 a batch is one span, linked to every record that has a trace", () =>
    traced((spans) =>
      Effect.gen(function* () {
        const other = sampled.replace(spanId, "00f067aa0ba902b7")
        yield* publishTraced([sampled, undefined, other])
        yield* start(Binding.makeBatch("orders", { ...orders, handleBatch: () => Effect.void }))
        assert.strictEqual(spans.length, 1)
        const [span] = spans
        assert.deepStrictEqual(
          span?.links.map(({ span }) => span.spanId),
          [spanId, "00f067aa0ba902b7"]
        )
        assert.strictEqual(parentIdOf(span), undefined)
        assert.strictEqual(span?.attributes.get("messaging.batch.message_count"), 3)
      })
    )
  )

  scenario("OBS-15 with relation link the span is linked instead of a child", () =>
    traced((spans) =>
      Effect.gen(function* () {
        yield* publishTraced([sampled])
        yield* start(Binding.make("orders", { ...orders, handler: () => Effect.void }))
        const [span] = spans
        assert.strictEqual(parentIdOf(span), undefined)
        assert.notStrictEqual(span?.traceId, traceId)
        assert.deepStrictEqual(
          span?.links.map(({ span }) => span.spanId),
          [spanId]
        )
      }).pipe(Effect.provide(Tracing.layer({ relation: "link" })))
    )
  )

  for (const [ratio, least, most] of [
    [0, 0, 0],
    [0.1, 60, 140],
    [1, 1000, 1000]
  ] as const) {
    scenario(
      `OBS-15 a share of ${ratio} of records without a trace begins one; every attempt of a record shares the decision`,
      () =>
        traced((spans) =>
          Effect.gen(function* () {
            const memory = yield* MemoryBroker.MemoryBroker
            yield* memory.createTopic("orders")
            yield* append(
              "orders",
              0,
              Array.from({ length: 1000 }, (_, index) => `v${index}`)
            )
            yield* start(
              Binding.make("orders", {
                ...orders,
                retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 millis", jitter: 0 }),
                onError: { Declined: Route.retry },
                handler: ({ value }) => (value === "v7" || value === "v8" ? new Declined() : Effect.void)
              })
            )
            yield* advance("1 second")
            const offsets = spans.map(({ attributes }) => attributes.get("messaging.kafka.offset"))
            const distinct = new Set(offsets).size
            assert.isAtLeast(distinct, least)
            assert.isAtMost(distinct, most)
            const failed = offsets.filter((offset) => offset === 7 || offset === 8)
            assert.strictEqual(failed.length, new Set(failed).size * 2)
          }).pipe(Effect.provide(Tracing.layer({ sampleRatio: ratio })))
        )
    )
  }

  it("OBS-15 malformed headers name no span; headers of a later format version do", () => {
    const parentOf = (value: string) => Tracing.parentOf([{ key: "traceparent", value: bytes(value) }])
    const bad = [
      "",
      "garbage",
      sampled.toUpperCase(),
      sampled.replace("00-", "ff-"),
      sampled.replace(traceId, "0".repeat(32)),
      sampled.replace(spanId, "0".repeat(16)),
      `${sampled}-more`,
      `${sampled} `,
      sampled.slice(0, -1),
      `01${sampled.slice(2)}more`,
      `01${sampled.slice(2)}-${"x".repeat(300)}`
    ]
    for (const value of bad) assert.isTrue(Option.isNone(parentOf(value)), value)
    const later = Option.getOrThrow(parentOf(`01${sampled.slice(2)}-more`))
    assert.strictEqual(later.traceId, traceId)
    assert.isTrue(Option.isNone(Tracing.parentOf([{ key: "traceparent", value: null }])))
  })

  it.effect("OBS-15 the current span goes into the headers once; without one a record stays as it is", () =>
    Effect.gen(function* () {
      const record: Parameters<Broker.Producer["send"]>[0] = {
        topic: "orders",
        key: null,
        value: null,
        headers: [{ key: "traceparent", value: bytes("old") }]
      }
      assert.strictEqual(yield* Tracing.inject(record), record)
      const span = Tracer.externalSpan({ traceId, spanId, sampled: true })
      const injected = yield* Effect.withParentSpan(Tracing.inject(record), span)
      assert.deepStrictEqual(
        injected.headers?.map(({ key, value }) => [key, text(value)]),
        [["traceparent", sampled]]
      )
    })
  )
})
