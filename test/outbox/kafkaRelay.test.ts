/** Outbox to Kafka to handler, on the in-memory cluster and every database. */
import { assert, describe, it } from "@effect/vitest"
import { EventEnvelope, Inbox, Outbox, OutboxSchema } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { FaultPlan, MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { onDatabases } from "./databases.ts"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)
const pass = (seconds: number) => Effect.sleep(seconds * 1000)
const text = (bytes: Uint8Array | null | undefined) => (bytes == null ? null : new TextDecoder().decode(bytes))

const write = (...events: ReadonlyArray<EventEnvelope.Input>) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(Outbox.writeAll(events)))

const order = (id: string, n: number, eventType = "orders"): EventEnvelope.Input => ({
  eventType,
  eventId: `${id}/${n}`,
  aggregateType: "order",
  aggregateId: id,
  payload: n
})

const statuses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ event_id: string; status: number; attempts: number }>(
    "SELECT event_id, status, attempts FROM outbox_event ORDER BY seq"
  )
  return Object.fromEntries(
    rows.map((r) => [r.event_id, `${["NEW", "DONE", "RETRY", "DEAD"][r.status]} ${r.attempts}`])
  )
})

/** Event ids in a topic, partition by partition. */
const published = Effect.fnUntraced(function* (topic: string, partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  const logs = yield* Effect.forEach(Array.from({ length: partitions }), (_, p) => memory.log(topic, p))
  return logs.map((log) => log.map((record) => KafkaRelay.eventIdOf(record)))
})

const shapes = {
  unordered: (relay: KafkaRelay.KafkaRelayOptions = {}) =>
    Outbox.singleNode({ ...KafkaRelay.unorderedSettings, retryPolicy: KafkaRelay.retryPolicy, maxAttempts: 3 }).pipe(
      Layer.provide(KafkaRelay.layer(relay))
    ),
  ordered: (relay: KafkaRelay.KafkaRelayOptions = {}) =>
    Outbox.orderedNodes({ ...KafkaRelay.orderedSettings, retryPolicy: KafkaRelay.retryPolicy, maxAttempts: 3 }).pipe(
      Layer.provide(KafkaRelay.layer(relay))
    )
}

describe("KafkaRelay", () => {
  it.effect("OUT-K-01: topic, key, value and headers of a record; CloudEvents on request", () =>
    Effect.gen(function* () {
      const event = yield* EventEnvelope.make({
        ...order("o-1", 7),
        tenantId: "t",
        occurredAt: Date.UTC(2030, 0, 2),
        headers: { traceparent: "00-x" },
        contentType: "application/json"
      })
      const show = (record: ReturnType<typeof KafkaRelay.toRecord>) => ({
        topic: record.topic,
        key: text(record.key),
        value: text(record.value),
        timestamp: record.timestamp,
        headers: Object.fromEntries(record.headers!.map((h) => [h.key, text(h.value)]))
      })
      const common = { key: "o-1", value: "7", timestamp: undefined }
      assert.deepStrictEqual(show(KafkaRelay.toRecord(event)), {
        ...common,
        topic: "orders",
        headers: {
          "x-eventbus-event-id": "o-1/7",
          "x-eventbus-event-type": "orders",
          "x-eventbus-aggregate-type": "order",
          "x-eventbus-aggregate-id": "o-1",
          "x-eventbus-tenant-id": "t",
          "x-eventbus-occurred-at": "2030-01-02T00:00:00.000Z",
          "content-type": "application/json",
          traceparent: "00-x"
        }
      })
      const cloud = show(
        KafkaRelay.toRecord(event, { topic: () => "all", format: { _tag: "cloudevents", source: "/shop" } })
      )
      assert.strictEqual(cloud.topic, "all")
      assert.deepInclude(cloud.headers, {
        ce_specversion: "1.0",
        ce_id: "o-1/7",
        ce_source: "/shop",
        ce_type: "orders",
        ce_subject: "o-1",
        ce_time: "2030-01-02T00:00:00.000Z"
      })
      const global = yield* EventEnvelope.ofJson("x", "{}")
      assert.isNull(KafkaRelay.toRecord(global).key)
      assert.strictEqual(KafkaRelay.toRecord(global, { topic: new Map([["x", "topic-of-x"]]) }).topic, "topic-of-x")
    })
  )

  for (const [name, shape] of Object.entries(shapes)) {
    it.effect(
      `OUT-K-01 OUT-K-02 ${name}: acknowledged before DONE, keyed by aggregate; a poison event is DEAD and blocks no other`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 3, config: new Map([["max.message.bytes", "2000"]]) })
          yield* memory.createTopic("payments")
          const many = Array.from({ length: 200 }, (_, i) => order(`o-${i % 7}`, i))
          yield* Effect.gen(function* () {
            yield* write(
              ...many.slice(0, 100),
              { ...order("o-1", 1000), payload: "x".repeat(5000) },
              ...many.slice(100)
            )
            yield* write(order("p", 1, "payments"), order("bad", 1, "no topic"), order("gone", 1, "missing"))
            yield* pass(15)
          }).pipe(Effect.provide(shape()))
          const logs = yield* published("orders", 3)
          assert.sameMembers(
            logs.flat(),
            many.map((e) => e.eventId)
          )
          const perAggregate = Object.groupBy(logs.flat(), (id) => id!.split("/")[0]!)
          if (name === "ordered") {
            for (let i = 0; i < 7; i++) {
              assert.deepStrictEqual(
                perAggregate[`o-${i}`],
                many.filter((e) => e.aggregateId === `o-${i}`).map((e) => e.eventId)
              )
            }
          }
          assert.deepStrictEqual(yield* published("payments"), [["p/1"]])
          const after = yield* statuses
          assert.deepStrictEqual(
            Object.entries(after).filter(([, s]) => s !== "DONE 0"),
            [
              ["o-1/1000", "DEAD 0"],
              ["bad/1", "DEAD 0"],
              ["gone/1", "NEW 0"]
            ]
          )
        }).pipe(
          Effect.provide(Layer.provideMerge(Layer.provideMerge(MemoryBroker.layer(), database), VirtualClock.layer))
        )
    )

    it.effect(
      `OUT-D-16 ${name}: a long outage of the cluster makes no event DEAD, uses no attempt, and keeps the order`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          const many = Array.from({ length: 50 }, (_, i) => order(`o-${i % 3}`, i))
          yield* Effect.gen(function* () {
            yield* memory.inject({ _tag: "BrokerDown", duration: "10 minutes" })
            yield* write(...many)
            yield* pass(590)
            assert.isTrue(Object.values(yield* statuses).every((s) => s === "NEW 0"))
            yield* pass(60)
          }).pipe(Effect.provide(shape({ producer: { deliveryTimeout: "2 seconds" } })))
          assert.isTrue(Object.values(yield* statuses).every((s) => s === "DONE 0"))
          const [ids] = yield* published("orders")
          const firstTime = [...new Set(ids)]
          for (const id of ["o-0", "o-1", "o-2"]) {
            const own = many.filter((e) => e.aggregateId === id).map((e) => e.eventId)
            if (name === "ordered")
              assert.deepStrictEqual(
                firstTime.filter((e) => e!.startsWith(`${id}/`)),
                own
              )
            else
              assert.sameMembers(
                firstTime.filter((e) => e!.startsWith(`${id}/`)),
                own
              )
          }
        }).pipe(
          Effect.provide(Layer.provideMerge(Layer.provideMerge(MemoryBroker.layer(), database), VirtualClock.layer))
        )
    )
  }

  it.effect("OUT-K-03: a lost acknowledgement causes one more delivery with the same id, never a loss", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.addFault(FaultPlan.nth(1, { operation: "produce" }, { _tag: "LoseResponse" }))
      yield* Effect.gen(function* () {
        yield* write(order("a", 1), order("a", 2))
        yield* pass(60)
      }).pipe(Effect.provide(shapes.ordered({ producer: { idempotent: false, deliveryTimeout: "5 seconds" } })))
      const [ids] = yield* published("orders")
      assert.deepStrictEqual([...new Set(ids)], ["a/1", "a/2"])
      assert.deepStrictEqual(yield* statuses, { "a/1": "DONE 0", "a/2": "DONE 0" })
    }).pipe(Effect.provide(Layer.provideMerge(Layer.provideMerge(MemoryBroker.layer(), database), VirtualClock.layer)))
  )
})

onDatabases("Inbox", (db) => {
  const layers = Layer.provideMerge(
    Layer.orDie(Inbox.layer()),
    Layer.provideMerge(Layer.effectDiscard(Effect.orDie(Inbox.migrate())), db.empty)
  )

  it.effect("OUT-K-02: handles an event once per consumer, forgets it when the handler fails", () => {
    const effects: Array<string> = []
    return Effect.gen(function* () {
      const inbox = yield* Inbox.Inbox
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe("CREATE TABLE handled (id VARCHAR(40))").unprepared
      const handle = (consumer: string, id: string, fail = false) =>
        inbox.once(
          consumer,
          id
        )(
          Effect.gen(function* () {
            yield* sql.unsafe(`INSERT INTO handled VALUES ('${consumer}-${id}')`)
            if (fail) return yield* Effect.fail("no" as const)
            effects.push(`${consumer} ${id}`)
            return 1
          })
        )
      assert.strictEqual(yield* Effect.flip(handle("billing", "e1", true)), "no")
      assert.deepStrictEqual(yield* handle("billing", "e1"), Option.some(1))
      assert.deepStrictEqual(yield* handle("billing", "e1"), Option.none())
      assert.deepStrictEqual(yield* handle("mail", "e1"), Option.some(1))
      const racing = yield* Effect.forEach([1, 2, 3, 4], () => handle("billing", "e2"), { concurrency: 4 })
      assert.strictEqual(racing.filter(Option.isSome).length, 1)
      assert.deepStrictEqual(effects, ["billing e1", "mail e1", "billing e2"])
      const rows = yield* sql.unsafe<{ id: string }>("SELECT id FROM handled ORDER BY id")
      assert.deepStrictEqual(
        rows.map((r) => r.id),
        ["billing-e1", "billing-e2", "mail-e1"]
      )
      assert.strictEqual(yield* inbox.purge("1 hour", 10), 0)
      // The clock of SQLite is the test's, that of a server is its own.
      yield* TestClock.adjust("1 second")
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
      assert.strictEqual(yield* inbox.purge("1 millis", 2), 2)
      assert.strictEqual(yield* inbox.purge("1 millis", 10), 1)
    }).pipe(Effect.provide(layers))
  })

  it.effect(
    "OUT-K-02: ids and consumers that are not empty, of any length and with any characters, stay distinct",
    () =>
      Effect.gen(function* () {
        const inbox = yield* Inbox.Inbox
        const long = "x".repeat(128)
        const texts = [
          "a",
          "A",
          "a ",
          "a  ",
          "é",
          "🎉",
          "n\0",
          "\ud800",
          "\ud801",
          long,
          `${long}1`,
          `${long}2`,
          "🎉".repeat(500)
        ]
        const once = (consumer: string, id: string) => Effect.map(inbox.once(consumer, id)(Effect.void), Option.isSome)
        for (const isFirst of [true, false]) {
          for (const text of texts) {
            assert.strictEqual(yield* once("billing", text), isFirst, JSON.stringify(text))
            assert.strictEqual(yield* once(text, "e1"), isFirst, JSON.stringify(text))
          }
        }
      }).pipe(Effect.provide(layers))
  )
})
