/** Answers of a relay's functions that are of another kind, and headers that an event brings along. */
import { assert, describe, it } from "@effect/vitest"
import { EventEnvelope, Outbox, OutboxSchema } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

/** Answers that are neither a text nor null. */
const odd: ReadonlyArray<readonly [kind: string, answer: unknown]> = [
  ["undefined", undefined],
  ["a number", 7],
  ["an object", { id: "o-1" }],
  ["true", true],
  ["a function", () => "o-1"],
  ["a Promise", Promise.resolve("o-1")],
  ["bytes", new Uint8Array([1])]
]

const relaying = (options: KafkaRelay.KafkaRelayOptions) =>
  Outbox.singleNode({ interval: "100 millis", maxAttempts: 2, retryPolicy: () => 20 }).pipe(
    Layer.provide(KafkaRelay.layer(options)),
    Layer.provideMerge(database),
    Layer.provideMerge(MemoryBroker.layer())
  )

const rows = SqlClient.SqlClient.use((sql) =>
  sql.unsafe<{ event_id: string; status: number; last_error: string | null }>(
    "SELECT event_id, status, last_error FROM outbox_event ORDER BY seq"
  )
)

describe("functions of a relay", () => {
  for (const [title, options, expected] of [
    ["key", (answer: unknown) => ({ key: answer }), "a text or null is expected"],
    ["topic", (answer: unknown) => ({ topic: answer }), "a topic name is expected"]
  ] as const) {
    for (const [kind, answer] of [
      ...odd,
      ...(title === "topic" ? [["null", null] as const, ["no text", ""] as const] : [])
    ]) {
      it.effect(`ruling 86: a ${title} that answers ${kind} fails its delivery, and publishes nothing`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          const sql = yield* SqlClient.SqlClient
          yield* sql.withTransaction(
            Outbox.writeAll(
              ["bad", "good"].map((eventId) => ({ eventType: "orders", eventId, aggregateId: eventId, payload: 1 }))
            )
          )
          yield* Effect.repeat(TestClock.adjust("100 millis"), { times: 30 })
          const [bad, good] = yield* rows
          assert.strictEqual(bad?.status, 3)
          assert.include(bad?.last_error ?? "", expected)
          assert.strictEqual(good?.status, 1)
          const log = yield* memory.log("orders", 0)
          assert.deepStrictEqual(
            log.map((record) => KafkaRelay.eventIdOf(record)),
            ["good"]
          )
        }).pipe(
          Effect.provide(
            relaying(
              options(({ eventId }: EventEnvelope.EventEnvelope) =>
                eventId === "bad" ? answer : title === "key" ? null : "orders"
              ) as unknown as KafkaRelay.KafkaRelayOptions
            )
          )
        )
      )
    }
  }
})

describe("headers that a handler has forwarded from its record", () => {
  const forwarded = {
    ...{ ce_id: "old-1", ce_type: "OrderPlaced", ce_source: "/orders", ce_specversion: "0.3" },
    ...{ ce_time: "2020-01-01T00:00:00Z", ce_subject: "o-1", "content-type": "application/avro" },
    ...{ ce_dataschema: "/schemas/1", traceparent: "00-x", "x-eventbus-event-id": "old-1" }
  }
  const event = EventEnvelope.make({ eventType: "InvoiceMade", eventId: "new-1", payload: 1, headers: forwarded })
  const valuesOf = (record: ReturnType<typeof KafkaRelay.toRecord>, name: string) =>
    record.headers!.filter(({ key }) => key === name).map(({ value }) => new TextDecoder().decode(value!))

  it.effect("OUT-K-01 OUT-K-02: never stand in for the relay's own in a CloudEvents record; other ones go along", () =>
    Effect.gen(function* () {
      const record = KafkaRelay.toRecord(yield* event, { format: { _tag: "cloudevents", source: "/billing" } })
      assert.deepStrictEqual(valuesOf(record, "ce_id"), ["new-1"])
      assert.deepStrictEqual(valuesOf(record, "ce_type"), ["InvoiceMade"])
      assert.deepStrictEqual(valuesOf(record, "ce_source"), ["/billing"])
      assert.deepStrictEqual(valuesOf(record, "ce_specversion"), ["1.0"])
      assert.lengthOf(valuesOf(record, "ce_time"), 1)
      assert.deepStrictEqual(valuesOf(record, "ce_subject"), [])
      assert.deepStrictEqual(valuesOf(record, "content-type"), ["application/json"])
      assert.deepStrictEqual(valuesOf(record, "ce_dataschema"), ["/schemas/1"])
      assert.deepStrictEqual(valuesOf(record, "traceparent"), ["00-x"])
      assert.strictEqual(KafkaRelay.eventIdOf({ headers: record.headers! as never }), "new-1")
    })
  )

  it.effect("OUT-K-01 OUT-K-02: never stand in for the relay's own in a plain record", () =>
    Effect.gen(function* () {
      const record = KafkaRelay.toRecord(yield* event)
      assert.deepStrictEqual(valuesOf(record, "x-eventbus-event-id"), ["new-1"])
      assert.deepStrictEqual(valuesOf(record, "content-type"), ["application/json"])
      assert.deepStrictEqual(valuesOf(record, "traceparent"), ["00-x"])
      assert.strictEqual(KafkaRelay.eventIdOf({ headers: record.headers! as never }), "new-1")
    })
  )
})
