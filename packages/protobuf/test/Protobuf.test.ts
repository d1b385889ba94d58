import { create, toBinary } from "@bufbuild/protobuf"
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire"
import { assert, describe, it } from "@effect/vitest"
import { Binding, type Serde } from "@eventbus/core"
import { Protobuf } from "@eventbus/protobuf"
import { DeadLetters, TestBus } from "@eventbus/testkit"
import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import { framed, layer, TestRegistry } from "../../schema-registry/test/registry.ts"
import { GiftSchema, OrderSchema, orderDescriptor, orderText, RefundSchema } from "./messages.ts"

const prepared = <A>(serde: Serde.Serde<A>, bytes: Uint8Array) =>
  Effect.map(serde.prepare?.(bytes) ?? Effect.void, () => serde.decode(bytes))

const failure = (result: Result.Result<unknown, Serde.DecodeFailure>) =>
  Result.match(result, { onFailure: ({ detail }) => detail, onSuccess: () => "was decoded" })

const hex = (bytes: Uint8Array | null) => Buffer.from(bytes ?? []).toString("hex")
const fromHex = (text: string) => new Uint8Array(Buffer.from(text, "hex"))
const proto = (schema: string) => ({ schemaType: "PROTOBUF", schema })

/** A record of `shop.Order` with the short form of its indexes. */
const order = (cents: number, id = 1) =>
  framed(id, Uint8Array.of(0, ...toBinary(OrderSchema, create(OrderSchema, { id: "o-1", cents: BigInt(cents) }))))

describe("Protobuf.serde", () => {
  // Written by Confluent's own serializer, of the JavaScript client 1.10.1.
  it.effect.each([
    ["the first message", OrderSchema, { id: "o-1", cents: 5n }, "0000000001000a036f2d311005"],
    ["the second message", RefundSchema, { order: "o-1" }, "000000000102020a036f2d31"],
    ["a nested message", GiftSchema, { to: "ann" }, "00000000010400020a03616e6e"]
  ] as const)("RCH-10 %s is what Confluent's serializer writes, byte by byte, both ways", ([, schema, value, golden]) =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, proto(orderText)).set(2, proto(base64Encode(orderDescriptor)))
      server.versions.set("values/1", proto(orderText))
      const serde = yield* Protobuf.serde(schema, { subject: "values", schema: orderText, references: [] })
      const message = create(schema, value as object)
      assert.strictEqual(hex(Result.getOrThrow(serde.encode(message as never))), golden)
      assert.deepStrictEqual(Result.getOrThrow(yield* prepared(serde, fromHex(golden))), message as never)
      const ofDescriptor = Uint8Array.from(fromHex(golden), (byte, index) => (index === 4 ? 2 : byte))
      assert.deepStrictEqual(Result.getOrThrow(yield* prepared(serde, ofDescriptor)), message as never)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 the long form of the first message's indexes is read, too", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, proto(orderText))
      const serde = yield* Protobuf.serde(OrderSchema)
      const value = Result.getOrThrow(yield* prepared(serde, fromHex("000000000102000a036f2d311005")))
      assert.strictEqual(value.id, "o-1")
    }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 fields that the program does not know are kept, and written again", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, proto(orderText))
      server.versions.set("orders-value/1", proto(orderText))
      const serde = yield* Protobuf.serde(OrderSchema, { subject: "orders-value", schema: orderText, references: [] })
      // Field 15, text "new".
      const bytes = fromHex("0000000001000a036f2d3110057a036e6577")
      const value = Result.getOrThrow(yield* prepared(serde, bytes))
      assert.strictEqual(hex(Result.getOrThrow(serde.encode(value))), hex(bytes))
    }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "RCH-10 the file is registered with the files that it imports, by their paths; built-in ones are left out",
    () =>
      Effect.gen(function* () {
        const server = yield* TestRegistry
        const missing = yield* Effect.flip(Protobuf.serde(OrderSchema, { subject: "orders-value" }))
        assert.match(missing.message, /^the schema of subject shop\/address\.proto cannot be used: .*40401/)
        const options = { subject: "orders-value", register: true }
        const serde = yield* Protobuf.serde(OrderSchema, options)
        assert.deepStrictEqual([...server.versions.keys()], ["shop/address.proto/1", "orders-value/1"])
        assert.deepStrictEqual(server.versions.get("orders-value/1")?.references, [
          { name: "shop/address.proto", subject: "shop/address.proto", version: 1 }
        ])
        const registered = String(server.versions.get("orders-value/1")?.schema)
        assert.deepStrictEqual(base64Decode(registered), orderDescriptor)
        const value = create(OrderSchema, { id: "o-1", cents: 5n, notes: { a: "b" } })
        const bytes = Result.getOrThrow(serde.encode(value))!
        assert.deepStrictEqual(Result.getOrThrow(yield* prepared(serde, bytes)), value)
        // The next process finds both, and registers nothing.
        yield* Protobuf.serde(OrderSchema, { subject: "orders-value" })
        assert.strictEqual(server.versions.size, 2)
      }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 another message, bad indexes and cut bytes are failures with a reason", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId
        .set(1, proto(orderText))
        .set(2, { schemaType: "AVRO", schema: '"string"' })
        .set(3, proto("message {"))
        .set(4, proto("AAAA"))
        .set(5, proto('syntax = "proto3";'))
        .set(6, proto("message Order {}"))
      const serde = yield* Protobuf.serde(OrderSchema)
      for (const [bytes, expected] of [
        ["0a036f2d31", /^expected the magic byte 0 .*, found byte 10/],
        ["0000000001", /^the bytes end inside the message indexes$/],
        ["000000000104", /^the bytes end inside the message indexes$/],
        ["00000000010202", /^expected the message shop\.Order, found shop\.Refund$/],
        ["00000000010206", /^message indexes \[3\] lead to no message: the schema has 2$/],
        ["0000000001040006", /^message indexes \[0,3\] lead to no message: shop\.Order has 2$/],
        ["00000000010201", /^message indexes \[-1\] lead to no message/],
        ["000000000101", /^expected 0 to 100 message indexes, found -1$/],
        ["0000000001ffffffffff01", /^expected message indexes, found a number of more than 5 bytes$/],
        ["0000000001000a036f", /premature EOF/],
        ["000000000200", /^schema 2 cannot be used: it is AVRO, not PROTOBUF$/],
        ["000000000300", /^schema 3 cannot be used: it is no \.proto file: a brace is not closed$/],
        ["000000000400", /^schema 4 cannot be used: /],
        ["000000000500", /^schema 5 cannot be used: it is no \.proto file: it has no message$/],
        ["000000000600", /^expected the message shop\.Order, found Order$/],
        ["000000000700", /^schema 7 cannot be used: .*40403/]
      ] as const) {
        assert.match(failure(yield* prepared(serde, fromHex(bytes))), expected, bytes)
      }
      const renamed = yield* Protobuf.serde(OrderSchema, { aliases: ["Order"] })
      assert.isTrue(Result.isSuccess(yield* prepared(renamed, fromHex("000000000600"))))
    }).pipe(Effect.provide(layer()))
  )

  it.effect("RCH-10 a value that is no such message is refused, and not shown", () =>
    Effect.gen(function* () {
      yield* TestRegistry
      const serde = yield* Protobuf.serde(OrderSchema, { subject: "orders-value", register: true })
      const refused = (value: unknown) => Result.getOrThrow(Result.flip(serde.encode(value as never))).detail
      const make = "make it by create(OrderSchema, { ... })"
      assert.strictEqual(
        refused({ id: "geheim", cents: 5n }),
        `expected a message shop.Order, found a value of type object; ${make}`
      )
      assert.strictEqual(
        refused(create(RefundSchema, { order: "geheim" })),
        `expected a message shop.Order, found a shop.Refund; ${make}`
      )
    }).pipe(Effect.provide(layer()))
  )
})

describe("a binding on Protobuf", () => {
  it.effect("RCH-10 waits for a registry that is away, and dead-letters what is another message", () =>
    Effect.gen(function* () {
      const server = yield* TestRegistry
      server.byId.set(1, proto(orderText))
      server.instead = { status: 503, text: "" }
      const handled: Array<bigint> = []
      const orders = Binding.make("orders", {
        topic: "orders",
        groupId: "billing",
        value: yield* Protobuf.serde(OrderSchema),
        handler: ({ value }) => Effect.sync(() => handled.push(value.cents))
      })
      yield* Effect.gen(function* () {
        const bus = yield* TestBus.TestBus
        const refund = fromHex("000000000102020a036f2d31")
        for (const bytes of [order(1), refund, order(3)]) yield* bus.publish("orders", { value: bytes })
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(handled, [])
        yield* DeadLetters.expectNone("orders")
        server.instead = undefined
        yield* TestClock.adjust("10 seconds")
        yield* bus.settled
        assert.deepStrictEqual(handled, [1n, 3n])
        const letters = yield* bus.deadLetters("orders")
        assert.deepStrictEqual(
          letters.map(({ record }) => record.value),
          [refund]
        )
        yield* DeadLetters.expectOne("orders", {
          exception: "DecodeFailure",
          message: "protobuf cannot decode the record: expected the message shop.Order, found shop.Refund"
        })
      }).pipe(Effect.provide(TestBus.layer([orders])))
    }).pipe(Effect.provide(layer()))
  )
})
