import { assert, describe } from "@effect/vitest"
import { Binding, Broker, type ConsumerRecord, CurrentTransaction, Route, Serde } from "@eventbus/core"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger } from "effect"
import { advance, bytes, headersOf, inTime, orders, publish, scenario, start, text, until } from "../scenarios/bus.ts"

type Headers = ReadonlyArray<ConsumerRecord.Header>

/** Reads a topic in a group of its own and remembers the values. */
const reader = (groupId: string, topic: string) => {
  const seen: Array<string> = []
  const binding = Binding.make(groupId, {
    ...orders,
    ...{ topic, groupId },
    handler: ({ value }) => Effect.sync(() => void seen.push(value))
  })
  return { seen, binding }
}

/** Publishes on a cluster as a program of the user does. */
const send = (broker: Broker.Broker["Service"], record: ConsumerRecord.ProducerRecord) =>
  Effect.scoped(Effect.flatMap(broker.producer(), (producer) => producer.send(record)))

/** Group shipping dead-letters the first record of topic orders, and an operator replays it. `publishInvoice` is what its handler does. */
const shipping = (publishInvoice: (value: string, headers: Headers) => Effect.Effect<unknown>) => {
  let mended = false
  const binding = Binding.make("shipping", {
    ...{ topic: "orders", groupId: "shipping", value: Serde.string },
    onError: { Declined: Route.deadLetter("declined") },
    handler: ({ value, record }) =>
      mended || value !== "o-1"
        ? publishInvoice(value, record.headers)
        : Effect.fail({ _tag: "Declined" as const, message: "no" })
  })
  return { binding, mend: () => (mended = true) }
}

const replayFirst = Effect.fnUntraced(function* (
  publishInvoice: (value: string, headers: Headers) => Effect.Effect<unknown>
) {
  const { binding, mend } = shipping(publishInvoice)
  const app = yield* start(binding)
  yield* publish("orders", ["o-1"])
  yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "1 second")
  mend()
  const deadLetters = yield* app.connector.deadLetters("shipping")
  assert.strictEqual((yield* inTime(deadLetters.replay(1))).replayed, 1)
  yield* advance("1 second")
  return app
})

describe("C33 a handler forwards the headers of a replayed record", () => {
  scenario(
    "C33 ruling 70 the other group handles every invoice, and only the replay itself is skipped by other groups",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("invoices")
        const invoices = reader("billing", "invoices")
        const audit = reader("audit", "orders")
        const auditApp = yield* start(invoices.binding, audit.binding)
        yield* replayFirst((value, headers) =>
          Effect.orDie(
            send(memory.broker, { topic: "invoices", key: null, value: bytes(`invoice of ${value}`), headers })
          )
        )
        yield* publish("orders", ["o-2"])
        yield* advance("1 minute")
        assert.deepStrictEqual(invoices.seen, ["invoice of o-1", "invoice of o-2"])
        // The replay stands between the two orders.
        assert.lengthOf(yield* memory.log("orders", 0), 3)
        assert.deepStrictEqual(audit.seen, ["o-1", "o-2"])
        assert.deepStrictEqual(
          auditApp
            .of("ForeignRecordsPassedOver")
            .map(({ topic, owner, kind, records }) => ({ topic, owner, kind, records })),
          [{ topic: "orders", owner: "shipping", kind: "replay", records: 1 }]
        )
      })
  )

  scenario("C33 ruling 70 a bridge to another cluster makes new records, topic name, partition and time equal", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const other = yield* MemoryBroker.make()
      yield* memory.createTopic("orders")
      yield* other.createTopic("orders")
      yield* replayFirst(() => Effect.void)
      yield* other.append("orders", 0, yield* memory.log("orders", 0))
      const there = reader("billing", "orders")
      yield* Effect.provideService(start(there.binding), Broker.Broker, other.broker)
      assert.deepStrictEqual(there.seen, ["o-1", "o-1"])
    })
  )

  scenario(
    "C33 ruling 70 a replay that is published again to its own topic with a new timestamp is a new record for everybody",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const app = yield* replayFirst(() => Effect.void)
        const billing = reader("billing", "orders")
        yield* start(billing.binding)
        assert.deepStrictEqual(billing.seen, ["o-1"])
        const replayed = (yield* memory.log("orders", 0))[1]!
        yield* advance("1 second")
        yield* send(memory.broker, {
          topic: "orders",
          key: replayed.key,
          value: bytes("again"),
          headers: replayed.headers
        })
        yield* advance("1 second")
        assert.deepStrictEqual(billing.seen, ["o-1", "again"])
        assert.strictEqual(app.of("Settled").filter(({ settlement }) => settlement === "Handled").length, 2)
      })
  )

  scenario("C33 ruling 70 where the topic stamps its own time, the bond holds for five minutes", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { config: new Map([["message.timestamp.type", "LogAppendTime"]]) })
      yield* replayFirst(() => Effect.void)
      const [, replayed] = yield* memory.log("orders", 0)
      assert.strictEqual(replayed?.timestampType, "LogAppendTime")
      yield* advance("6 minutes")
      yield* send(memory.broker, { topic: "orders", key: null, value: bytes("late"), headers: replayed!.headers })
      const billing = reader("billing", "orders")
      yield* start(billing.binding)
      assert.deepStrictEqual(billing.seen, ["o-1", "late"])
    })
  )

  scenario("C33 ruling 70 a foreign record that claims three replays can be replayed as any other", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const claims = [
        { key: "x-eventbus-replay-count", value: bytes("3") },
        { key: "x-eventbus-replay-group", value: bytes("somebody") }
      ]
      const handled: Array<string> = []
      const { binding, mend } = shipping((value) => Effect.sync(() => handled.push(value)))
      const app = yield* start(binding)
      yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("o-1"), headers: claims }])
      yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "1 second")
      // The same as another system dead-letters it: with all headers of its record.
      yield* memory.append("orders.DLT", 0, [{ key: bytes("k"), value: bytes("o-3"), headers: claims }])
      mend()
      const deadLetters = yield* app.connector.deadLetters("shipping")
      assert.deepInclude(yield* inTime(deadLetters.replay(9)), { replayed: 2, passedOver: 0 })
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["o-1", "o-3"])
    })
  )

  scenario("C33 ruling 70 what a transaction or the outbox relay publishes carries no header of the connector", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("invoices")
      yield* start(
        Binding.makeTransactional("shipping", {
          ...{ topic: "orders", groupId: "billing", value: Serde.string },
          handler: ({ headers, record }) =>
            Effect.gen(function* () {
              const out = { topic: "invoices", key: null, value: record.value, headers }
              yield* CurrentTransaction.send(out)
              yield* CurrentTransaction.sendAll([out])
            }).pipe(Effect.orDie)
        })
      )
      const incoming = [
        { key: "x-eventbus-event-id", value: bytes("1") },
        { key: "x-eventbus-replay-group", value: bytes("billing") },
        { key: "traceparent", value: bytes("00-t") }
      ]
      yield* memory.append("orders", 0, [{ key: null, value: bytes("x"), headers: incoming }])
      yield* advance("1 second")
      const published = yield* memory.log("invoices", 0)
      assert.deepStrictEqual(
        published.map(({ headers }) => headers.map(({ key }) => key)),
        [["traceparent"], ["traceparent"]]
      )
      const relayed = KafkaRelay.toRecord({
        ...{ eventId: "2", eventType: "Invoiced", aggregateType: "Order", aggregateId: "o-1", tenantId: undefined },
        ...{ payload: bytes("{}"), contentType: "application/json", occurredAtMillis: 0 },
        headers: new Map(incoming.map(({ key, value }) => [key, text(value)!]))
      } as never)
      const headers = headersOf({ headers: relayed.headers ?? [] })
      assert.strictEqual(headers.get("x-eventbus-event-id"), "2")
      assert.isFalse(headers.has("x-eventbus-replay-group"))
      assert.strictEqual(headers.get("traceparent"), "00-t")
    })
  )

  scenario("C33 ruling 70 the skipped records are logged once a minute, with their number", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const { clusterId } = yield* memory.broker.admin
      const lines: Array<string> = []
      const capture = Logger.make(({ message }) => void lines.push(String(message)))
      yield* Effect.gen(function* () {
        yield* start(reader("billing", "orders").binding)
        for (let minute = 0; minute < 3; minute++) {
          const timestamp = minute * 60_000 + 1_000
          const bond = bytes(`${clusterId}/orders/0/${timestamp}`)
          const headers = [
            { key: "x-eventbus-replay-count", value: bytes("1") },
            { key: "x-eventbus-replay-group", value: bytes("shipping") },
            { key: "x-eventbus-replay-bond", value: bond }
          ]
          const many = Array.from({ length: 50 }, () => ({ key: null, value: bytes("x"), headers, timestamp }))
          yield* memory.append("orders", 0, many)
          yield* advance("1 minute")
        }
      }).pipe(Effect.provide(Logger.layer([capture])))
      assert.deepStrictEqual(
        lines.filter((line) => line.includes("Passed over")),
        Array.from(
          { length: 3 },
          () => "Passed over 50 records of topic 'orders' that group 'shipping' replayed for itself"
        )
      )
    })
  )
})
