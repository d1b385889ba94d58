import { assert, describe, it } from "@effect/vitest"
import { Binding, type Serde } from "@eventbus/core"
import { JsonSchema } from "@eventbus/json-schema"
import { DeadLetters, TestBus } from "@eventbus/testkit"
import { Effect, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import { framed, layer, TestRegistry } from "../../schema-registry/test/registry.ts"

class Order extends Schema.Class<Order>("Order")({
  id: Schema.String,
  cents: Schema.Int,
  at: Schema.optionalKey(Schema.Date)
}) {}

const orderSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties: { id: { type: "string" }, cents: { type: "integer", minimum: 0 } },
  required: ["id"]
}

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const order = (cents: unknown, id = 1) => framed(id, bytesOf({ id: "o-1", cents }))

const prepared = <A>(serde: Serde.Serde<A>, bytes: Uint8Array) =>
  Effect.map(serde.prepare?.(bytes) ?? Effect.void, () => serde.decode(bytes))

const failure = (result: Result.Result<unknown, Serde.DecodeFailure>) =>
  Result.match(result, { onFailure: ({ detail }) => detail, onSuccess: () => "was decoded" })

describe("JsonSchema.serde", () => {
  it.effect("RCH-10 reads the bytes that Confluent's JSON Schema serializer writes, and writes the same ones", () =>
    Effect.gen(function* () {
      const golden = Buffer.from("00000000047b226964223a226f2d31222c2263656e7473223a357d", "hex")
      const server = yield* TestRegistry
      server.byId.set(3, { schemaType: "JSON", schema: "true" })
      const serde = yield* JsonSchema.serde(Order, { schema: orderSchema, subject: "orders-value", register: true })
      assert.deepStrictEqual(
        Result.getOrThrow(yield* prepared(serde, golden)),
        new Order({ id: "o-1", cents: 5 }, { disableChecks: true })
      )
      assert.deepStrictEqual(
        Buffer.from(Result.getOrThrow(serde.encode(new Order({ id: "o-1", cents: 5 })))!).toString("hex"),
        golden.toString("hex")
      )
      assert.deepStrictEqual(server.requests, [
        `POST http://registry:8081/subjects/orders-value/versions  ${JSON.stringify({
          schema: JSON.stringify(orderSchema),
          schemaType: "JSON"
        })}`,
        "GET http://registry:8081/schemas/ids/4"
      ])
    }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 registers the JSON Schema of the Effect schema, and a Date survives", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      const serde = yield* JsonSchema.serde(Order, { subject: "orders-value", register: true })
      const value = new Order({ id: "o-1", cents: 5, at: new Date(0) })
      const bytes = Result.getOrThrow(serde.encode(value))!
      assert.deepStrictEqual(JSON.parse(new TextDecoder().decode(bytes.subarray(5))), {
        ...{ id: "o-1", cents: 5 },
        at: "1970-01-01T00:00:00.000Z"
      })
      assert.deepStrictEqual(Result.getOrThrow(yield* prepared(serde, bytes)), value)
      const registered = JSON.parse(String(server.byId.get(1)?.schema))
      assert.strictEqual(registered.$schema, "http://json-schema.org/draft-07/schema#")
      assert.deepStrictEqual(JsonSchema.schemaOf(Order), registered)
      const properties = JSON.stringify(registered)
      for (const name of ["cents", "id", "at"]) assert.include(properties, `"${name}"`)
    }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "RCH-10 a value that the schema of its record refuses is a failure with its path, and without the value",
    () =>
      Effect.gen(function* () {
        const server = yield* TestRegistry
        const withLines = {
          type: "object",
          properties: { cents: { type: "integer", minimum: 0 }, lines: { type: "array", items: { enum: ["a", "b"] } } },
          additionalProperties: false
        }
        server.byId.set(1, { schemaType: "JSON", schema: orderSchema })
        server.byId.set(2, { schemaType: "JSON", schema: withLines })
        const serde = yield* JsonSchema.serde(Schema.Unknown)
        const says = "the value does not fit its JSON Schema:"
        assert.strictEqual(failure(yield* prepared(serde, order("geheim"))), `${says} must be integer at ["cents"]`)
        assert.strictEqual(failure(serde.decode(order(-1))), `${says} must be >= 0 at ["cents"]`)
        assert.strictEqual(
          failure(yield* prepared(serde, framed(2, bytesOf({ lines: ["a", "geheim"] })))),
          `${says} must be equal to one of the allowed values (["a","b"]) at ["lines"][1]`
        )
        const lax = yield* JsonSchema.serde(Schema.Unknown, { validate: false })
        assert.isTrue(Result.isSuccess(yield* prepared(lax, order("geheim"))))
        // The schema of the program decides, too.
        const strict = yield* JsonSchema.serde(Order, { validate: false })
        assert.include(failure(yield* prepared(strict, order(1.5))), `at ["cents"]`)
      }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 bytes and schemas that cannot be read are failures with a reason", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      const json = (schema: object | string) => ({ schemaType: "JSON", schema })
      server.byId
        .set(1, json(orderSchema))
        .set(2, json({ type: "nothing" }))
        .set(3, json("{"))
        .set(4, { schemaType: "PROTOBUF", schema: "message Order {}" })
        .set(5, json({ $schema: "http://json-schema.org/draft-04/schema#", type: "object" }))
        .set(6, json({ $ref: "address.json" }))
      const serde = yield* JsonSchema.serde(Order)
      for (const [bytes, expected] of [
        [bytesOf({}), /^expected the magic byte 0 of a schema registry's wire format, found byte 123/],
        [framed(1, new Uint8Array()), /^zero bytes are not JSON$/],
        [framed(1, Uint8Array.of(0xff)), /encoded data was not valid/],
        [framed(1, bytesOf({ id: "o-1" }).subarray(0, 5)), /JSON/],
        [order(5, 2), /^schema 2 cannot be used: .*nothing/],
        [order(5, 3), /^schema 3 cannot be used: .*JSON/],
        [order(5, 4), /^schema 4 cannot be used: it is PROTOBUF, not JSON$/],
        [order(5, 5), /^schema 5 cannot be used: its \$schema is .*draft-04.*known are draft-06, draft-07/],
        [order(5, 6), /^schema 6 cannot be used: .*address\.json/],
        [order(5, 7), /^schema 7 cannot be used: .*40403/]
      ] as const) {
        assert.match(failure(yield* prepared(serde, bytes)), expected)
      }
      const broken = yield* Effect.flip(JsonSchema.serde(Order, { schema: { type: "nothing" } }))
      assert.match(broken.message, /^the schema of the program cannot be used: .*nothing/)
      const unwritable = (yield* JsonSchema.serde(Order)).encode(new Order({ id: "o-1", cents: 5 }))
      assert.include(Result.getOrThrow(Result.flip(unwritable)).detail, "a schema and its subject are needed")
    }).pipe(Effect.provide(layer()))
  )

  it.effect.each([
    "http://json-schema.org/draft-06/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema"
  ])("RCH-10 knows %s, references by name and beside $id, and keywords of other tools", ($schema) =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      const reference = (name: string, subject: string) => ({ name, subject, version: 1 })
      server.versions.set("address/1", {
        schema: { type: "object", properties: { city: { $ref: "city" } } },
        references: [reference("city", "city")]
      })
      server.versions.set("city/1", { schema: { type: "string" } })
      const properties = { to: { $ref: "address.json" } }
      const schema = { $schema, javaType: "shop.Order", type: "object", properties }
      const references = [reference("address.json", "address")]
      server.byId.set(1, { schemaType: "JSON", schema, references })
      server.byId.set(2, { schemaType: "JSON", schema: { ...schema, $id: "http://shop/order.json" }, references })
      const serde = yield* JsonSchema.serde(Schema.Unknown)
      for (const id of [1, 2]) {
        const value = { to: { city: "Ulm" } }
        assert.deepStrictEqual(yield* prepared(serde, framed(id, bytesOf(value))), Result.succeed(value))
        assert.include(failure(serde.decode(framed(id, bytesOf({ to: { city: 5 } })))), `at ["to"]["city"]`)
      }
    }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "RCH-10 the registry is asked for compatibility before a schema is registered, and its reasons are shown",
    () =>
      Effect.gen(function* () {
        const server = yield* TestRegistry
        const options = { subject: "orders-value", register: true, checkCompatibility: true }
        yield* JsonSchema.serde(Order, options)
        server.incompatible = ["TYPE_CHANGED at #/properties/cents"]
        const failed = yield* Effect.flip(JsonSchema.serde(Schema.String, options))
        assert.strictEqual(
          failed.message,
          "the schema of subject orders-value cannot be used: it is not compatible with the latest version of the subject: TYPE_CHANGED at #/properties/cents"
        )
        assert.strictEqual(server.versions.size, 1)
        const refused = yield* Effect.flip(JsonSchema.serde(Schema.String, { ...options, checkCompatibility: false }))
        assert.include(refused.message, "status 409, code 409: incompatible")
      }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 JSON without a URL, the wire format with one", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, { schemaType: "JSON", schema: orderSchema })
      const plain = yield* JsonSchema.orJson(undefined, Order)
      assert.isTrue(Result.isSuccess(plain.decode(bytesOf({ id: "o-1", cents: 5 }))))
      const framedOnes = yield* JsonSchema.orJson("http://registry:8081", Order)
      assert.isTrue(Result.isSuccess(yield* prepared(framedOnes, order(5))))
    }).pipe(Effect.provide(layer()))
  )
})

describe("a binding on JSON Schema", () => {
  it.effect("RCH-10 waits for a registry that is away, and dead-letters what its schema refuses", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, { schemaType: "JSON", schema: orderSchema })
      server.instead = { status: 200, text: "<html>who are you?</html>" }
      const handled: Array<number> = []
      const orders = Binding.make("orders", {
        topic: "orders",
        groupId: "billing",
        value: yield* JsonSchema.serde(Order),
        handler: ({ value }) => Effect.sync(() => handled.push(value.cents))
      })
      yield* Effect.gen(function* () {
        const bus = yield* TestBus.TestBus
        for (const cents of [1, "geheim", 3]) yield* bus.publish("orders", { value: order(cents) })
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(handled, [])
        yield* DeadLetters.expectNone("orders")
        server.instead = undefined
        yield* TestClock.adjust("10 seconds")
        yield* bus.settled
        assert.deepStrictEqual(handled, [1, 3])
        yield* DeadLetters.expectOne("orders", {
          exception: "DecodeFailure",
          message:
            'json-schema cannot decode the record: the value does not fit its JSON Schema: must be integer at ["cents"]'
        })
      }).pipe(Effect.provide(TestBus.layer([orders])))
    }).pipe(Effect.provide(layer()))
  )
})
