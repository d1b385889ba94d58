import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Avro } from "@eventbus/avro"
import { Handler, ResilientConsumer } from "@eventbus/config"
import { Binding, Serde } from "@eventbus/core"
import { DeadLetters, MemoryBroker, TestBus } from "@eventbus/testkit"
import avro from "avsc"
import { Effect, Fiber, Layer, Result, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { framed, layer, TestRegistry } from "../../schema-registry/test/registry.ts"

const Order = Schema.Struct({
  id: Schema.String,
  cents: Schema.Int,
  note: Schema.optionalKey(Schema.NullOr(Schema.String))
})

const record = (...fields: ReadonlyArray<object>) => ({ type: "record", name: "Order", namespace: "shop", fields })
const id = { name: "id", type: "string" }
const cents = { name: "cents", type: "long" }
const note = { name: "note", type: ["null", "string"], default: null }
const first = record(id, cents)
const second = record(id, cents, note)

const encoded = (schema: object, value: unknown) =>
  avro.Type.forSchema(JSON.parse(JSON.stringify(schema))).toBuffer(value)
const order = (number: number, registered = 1) =>
  framed(registered, encoded(first, { id: `o-${number}`, cents: number }))

const prepared = <A>(serde: Serde.Serde<A>, bytes: Uint8Array) =>
  Effect.map(serde.prepare?.(bytes) ?? Effect.void, () => serde.decode(bytes))

const failure = (result: Result.Result<unknown, Serde.DecodeFailure>) =>
  Result.match(result, { onFailure: ({ detail }) => detail, onSuccess: () => "was decoded" })

describe("Avro.serde", () => {
  it.effect("SER-06 a value is read by its writer's schema, which is fetched once", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, { schema: first }).set(70_000, { schema: second })
      const serde = yield* Avro.serde(Order)
      assert.deepStrictEqual(yield* prepared(serde, order(5)), Result.succeed({ id: "o-5", cents: 5 }))
      assert.isUndefined(serde.prepare?.(order(6)))
      assert.deepStrictEqual(serde.decode(order(6)), Result.succeed({ id: "o-6", cents: 6 }))
      const later = framed(70_000, encoded(second, { id: "o-7", cents: 7, note: "soon" }))
      assert.deepStrictEqual(yield* prepared(serde, later), Result.succeed({ id: "o-7", cents: 7, note: "soon" }))
      assert.strictEqual(server.requests.length, 2)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 the program's own schema reads older and newer versions, whatever their namespace", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, { schema: first }).set(2, { schema: { ...first, namespace: "old.shop" } })
      server.byId.set(3, { schema: record(id, cents, note, { name: "colour", type: "string" }) })
      server.byId.set(4, { schema: record(id) })
      const serde = yield* Avro.serde(Order, { schema: second })
      for (const registered of [1, 2]) {
        assert.deepStrictEqual(
          yield* prepared(serde, order(5, registered)),
          Result.succeed({ id: "o-5", cents: 5, note: null })
        )
      }
      const newer = { id: "o-6", cents: 6, note: null, colour: "red" }
      const body = encoded(record(id, cents, note, { name: "colour", type: "string" }), newer)
      assert.deepStrictEqual(
        yield* prepared(serde, framed(3, body)),
        Result.succeed({ id: "o-6", cents: 6, note: null })
      )
      const bytes = framed(4, encoded(record(id), { id: "o-7" }))
      assert.match(failure(yield* prepared(serde, bytes)), /^schema 4 cannot be used: .*cents/)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 schemas that refer to others are read", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      const address = { type: "record", name: "shop.Address", fields: [{ name: "city", type: "string" }] }
      server.byId.set(1, {
        schema: record(id, { name: "to", type: "shop.Address" }),
        references: [{ name: "shop.Address", subject: "address", version: 1 }]
      })
      server.versions.set("address/1", { schema: address })
      const Sent = Schema.Struct({ id: Schema.String, to: Schema.Struct({ city: Schema.String }) })
      const value = { id: "o-1", to: { city: "Ulm" } }
      const bytes = framed(1, encoded(record(id, { name: "to", type: address }), value))
      assert.deepStrictEqual(yield* prepared(yield* Avro.serde(Sent), bytes), Result.succeed(value))
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 bytes outside the wire format are a clear failure, without a request", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      const serde = yield* Avro.serde(Order)
      const expected = "expected the magic byte 0 of a schema registry's wire format, found"
      assert.strictEqual(
        failure(yield* prepared(serde, new TextEncoder().encode("{}"))),
        `${expected} byte 123 at the beginning`
      )
      assert.strictEqual(failure(yield* prepared(serde, new Uint8Array())), `${expected} zero bytes`)
      assert.strictEqual(failure(yield* prepared(serde, new Uint8Array(3))), "expected a schema id of 4 bytes, found 2")
      assert.strictEqual(
        failure(yield* prepared(serde, framed(-5, new Uint8Array()))),
        "expected a schema id of 0 or more, found -5"
      )
      assert.include(failure(serde.decode(null)), "Serde.nullable")
      assert.deepStrictEqual(server.requests, [])
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 bytes, values and schemas that do not fit are failures with a reason", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId
        .set(1, { schema: first })
        .set(2, { schema: { type: "nothing" } })
        .set(3, { schema: "{" })
      const serde = yield* Avro.serde(Order)
      assert.strictEqual(failure(yield* prepared(serde, order(5).subarray(0, 7))), "truncated buffer")
      assert.strictEqual(failure(serde.decode(Uint8Array.of(...order(5), 0))), "trailing data")
      assert.match(failure(yield* prepared(serde, order(5, 2))), /^schema 2 cannot be used: .*nothing/)
      assert.match(failure(yield* prepared(serde, order(5, 3))), /^schema 3 cannot be used: .*JSON/)
      assert.match(failure(yield* prepared(serde, order(5, 4))), /^schema 4 cannot be used: .*40403/)
      assert.strictEqual(failure(serde.decode(order(5, 5))), "schema 5 was not fetched (Serde.prepare)")
      const strict = yield* Avro.serde(Schema.Struct({ id: Schema.Int }))
      assert.deepInclude(Result.getOrThrow(Result.flip(yield* prepared(strict, order(5)))), {
        serde: "avro",
        path: '["id"]'
      })
    }).pipe(Effect.provide(layer()))
  )

  it.effect("SER-06 64-bit integers are exact: a number beyond 2^53 is a failure, or all are bigint", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, { schema: '"long"' }).set(2, { schema: '"int"' })
      const big = framed(1, Uint8Array.of(0xfe, ...Array(8).fill(0xff), 0x01))
      assert.include(failure(yield* prepared(yield* Avro.serde(Schema.Int), big)), "precision loss")
      const exact = yield* Avro.serde(Schema.BigInt, {
        longs: "bigint",
        schema: '"long"',
        subject: "n",
        register: true
      })
      assert.deepStrictEqual(yield* prepared(exact, big), Result.succeed(2n ** 63n - 1n))
      assert.deepStrictEqual(yield* prepared(exact, framed(2, Uint8Array.of(13))), Result.succeed(-7n))
      for (const value of [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
        assert.deepStrictEqual(Result.flatMap(exact.encode(value), exact.decode), Result.succeed(value))
      }
      assert.isTrue(Result.isFailure(exact.encode(2n ** 63n)))
    }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "SER-06 a value is written with the program's schema, in the wire format, under the id of its subject",
    () =>
      Effect.gen(function* () {
        const server = yield* TestRegistry
        const schema = record(id, { name: "seal", type: "bytes" })
        const Sealed = Schema.Struct({ id: Schema.String, seal: Schema.Uint8Array })
        const options = { schema, subject: "orders/value" }
        const missing = yield* Effect.flip(Avro.serde(Sealed, options))
        assert.include(missing.message, "the schema of subject orders/value cannot be used")
        const serde = yield* Avro.serde(Sealed, { ...options, register: true })
        assert.deepStrictEqual(
          server.requests.map((request) => request.split(" ").slice(0, 2).join(" ")),
          [
            "POST http://registry:8081/subjects/orders%2Fvalue",
            "POST http://registry:8081/subjects/orders%2Fvalue/versions"
          ]
        )
        const bytes = Result.getOrThrow(serde.encode({ id: "o-1", seal: Uint8Array.of(1, 2) }))!
        assert.deepStrictEqual([...bytes.subarray(0, 5)], [0, 0, 0, 0, 1])
        const read = Result.getOrThrow(yield* prepared(yield* Avro.serde(Sealed), bytes))
        assert.deepStrictEqual([read.id, ...read.seal], ["o-1", 1, 2])
        assert.isTrue(Result.isSuccess((yield* Avro.serde(Sealed, options)).encode(read)))
        const reader = yield* Avro.serde(Sealed, { schema })
        assert.isTrue(Result.isFailure(reader.encode(read)))
        const broken = yield* Effect.flip(Avro.serde(Sealed, { schema: '{"type":"nothing"}' }))
        assert.include(broken.message, "the schema of the program cannot be used")
      }).pipe(Effect.provide(layer()))
  )

  it.effect("RES-11 SER-06 JSON without a URL, Avro with one", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, { schema: first })
      const json = yield* Avro.orJson(undefined, Order)
      assert.deepStrictEqual(
        json.decode(new TextEncoder().encode('{"id":"o-5","cents":5}')),
        Result.succeed({ id: "o-5", cents: 5 })
      )
      const fromAvro = yield* Avro.orJson("http://ann:secret@registry:8081", Order)
      assert.deepStrictEqual(yield* prepared(fromAvro, order(5)), Result.succeed({ id: "o-5", cents: 5 }))
      assert.deepStrictEqual(server.requests, [`GET http://registry:8081/schemas/ids/1 Basic ${btoa("ann:secret")}`])
    }).pipe(Effect.provide(layer()))
  )
})

describe("a binding on Avro", () => {
  it.effect(
    "SER-06 SER-03 an outage of the registry only delays records; unreadable ones are dead-lettered with their bytes, and the rest goes on",
    () =>
      Effect.gen(function* () {
        const server = yield* TestRegistry
        server.byId.set(1, { schema: first })
        const handled: Array<string> = []
        const orders = Binding.make("orders", {
          topic: "orders",
          groupId: "billing",
          key: Serde.string,
          value: yield* Avro.serde(Order),
          handler: ({ value }) => Effect.sync(() => handled.push(value.id))
        })
        yield* Effect.gen(function* () {
          const bus = yield* TestBus.TestBus
          yield* bus.publish("orders", { key: "k", value: order(1) })
          server.byId.set(2, { schema: first })
          server.instead = { status: 503, text: "" }
          for (const bytes of [
            order(2),
            order(3, 2),
            order(4),
            order(5, 9),
            Uint8Array.of(...order(6), 0),
            Uint8Array.of(1)
          ]) {
            yield* bus.publish("orders", { key: "k", value: bytes })
          }
          yield* TestClock.adjust("1 hour")
          assert.deepStrictEqual(handled, ["o-1", "o-2"])
          yield* DeadLetters.expectNone("orders")
          server.instead = undefined
          yield* TestClock.adjust("10 seconds")
          yield* bus.settled
          assert.deepStrictEqual(handled, ["o-1", "o-2", "o-3", "o-4"])
          const letters = yield* bus.deadLetters("orders")
          assert.deepStrictEqual(
            letters.map(({ record: { key, value } }) => [new TextDecoder().decode(key!), value]),
            [order(5, 9), Uint8Array.of(...order(6), 0), Uint8Array.of(1)].map((bytes) => ["k", bytes])
          )
          yield* DeadLetters.expectOne("orders", {
            exception: "DecodeFailure",
            message:
              "avro cannot decode the record: schema 9 cannot be used: the schema registry answers with status 404, code 40403: no"
          })
        }).pipe(Effect.provide(TestBus.layer([orders])))
      }).pipe(Effect.provide(layer()))
  )
})

describe("a result-based consumer", () => {
  const settings = { TopicName: "orders", GroupId: "billing", BootstrapServers: "kafka:9092" }
  const values = (bytes: Uint8Array, consumer: ResilientConsumer.Values) =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.append("orders", 0, [{ value: bytes }, { value: new TextEncoder().encode("neither") }])
      const handled: Array<typeof Order.Type> = []
      yield* Layer.build(
        ResilientConsumer.layerValues(consumer, (url) =>
          Effect.map(Avro.orJson(url, Order), (value) =>
            Handler.make({ value, handler: (delivery) => Effect.sync(() => handled.push(delivery.value)) })
          )
        )
      )
      yield* Effect.repeat(Effect.yieldNow, { times: 500 })
      assert.strictEqual((yield* memory.log("orders.error", 0)).length, 1)
      return handled
    }).pipe(Effect.provide(MemoryBroker.layer()))

  it.effect("RES-11 SER-06 its values are JSON without SchemaRegistryUrl, and Avro with it", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, { schema: first })
      const json = new TextEncoder().encode('{"id":"o-5","cents":5}')
      assert.deepStrictEqual(yield* values(json, settings), [{ id: "o-5", cents: 5 }])
      assert.deepStrictEqual(server.requests, [])
      assert.deepStrictEqual(yield* values(order(6), { ...settings, SchemaRegistryUrl: "http://registry:8081" }), [
        { id: "o-6", cents: 6 }
      ])
    }).pipe(Effect.provide(layer()))
  )
})

describe("a registry behind HTTP", () => {
  it.live("SER-06 is asked with the platform's HTTP client, and waited for until it is reachable", () =>
    Effect.gen(function* () {
      const server = createServer((request, response) => {
        const isKnown = request.url === "/schemas/ids/1"
        response.writeHead(isKnown ? 200 : 404, { "content-type": "application/vnd.schemaregistry.v1+json" })
        response.end(JSON.stringify(isKnown ? { schema: JSON.stringify(first) } : { error_code: 40403, message: "no" }))
      })
      const listening = (port: number) =>
        Effect.callback<number>((resume) => {
          server.listen(port, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
        })
      const closed = Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
      const port = yield* listening(0)
      yield* closed
      const serde = yield* Avro.orJson(`http://127.0.0.1:${port}`, Order)
      const waiting = yield* Effect.forkChild(prepared(serde, order(5)), { startImmediately: true })
      yield* listening(port)
      yield* Effect.addFinalizer(() => closed)
      assert.deepStrictEqual(yield* Fiber.join(waiting), Result.succeed({ id: "o-5", cents: 5 }))
      assert.include(failure(yield* prepared(serde, order(5, 2))), "40403")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
