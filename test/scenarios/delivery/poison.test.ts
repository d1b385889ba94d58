import { assert, describe } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Result, Schema } from "effect"
import { append, bytes, headersOf, orders, scenario, settle, start, valuesOf } from "../bus.ts"

const Order = Schema.Struct({ id: Schema.Number, state: Schema.Literals(["open", "paid"]) })

describe("records that cannot be read (TST-06: decode failure)", () => {
  scenario(
    "SER-01 SER-02 SER-05 malformed, incomplete and wrong-enum records are dead-lettered without an attempt; the rest is handled in order",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const poison = ["{", '{"id":2}', '{"id":3,"state":"lost"}', ""]
        yield* append("orders", 0, ['{"id":1,"state":"open"}', ...poison, '{"id":9,"state":"paid"}'])
        const handled: Array<number> = []
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            value: Serde.json(Order),
            handler: ({ value }) => Effect.sync(() => handled.push(value.id))
          })
        )
        yield* settle
        assert.deepStrictEqual(handled, [1, 9])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), poison)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 6n)
        const headers = (yield* memory.log("orders.DLT", 0)).map(headersOf)
        assert.deepStrictEqual(
          headers.map((each) => each.get("x-eventbus-total-attempts")),
          ["0", "0", "0", "0"]
        )
        assert.strictEqual(headers[2]?.get("x-eventbus-decode-path"), '["state"]')
        assert.strictEqual(headers[0]?.get("x-eventbus-last-exception-class"), "DecodeFailure")
        assert.isTrue(app.of("Settled").every(({ settlement }) => settlement !== "Abandoned"))
      })
  )

  scenario("SER-03 the copy has the original bytes, invalid UTF-8 included", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const raw = new Uint8Array([0xff, 0x00, 0xfe, 0x80])
      yield* memory.append("orders", 0, [{ key: raw, value: raw }])
      yield* start(Binding.make("orders", { ...orders, handler: () => Effect.void }))
      const [letter] = yield* memory.log("orders.DLT", 0)
      assert.deepStrictEqual(letter?.value, raw)
      assert.deepStrictEqual(letter?.key, raw)
    })
  )

  for (const processingOrder of ["partition", "unordered"] as const) {
    scenario(
      `SER-01 SER-08 order ${processingOrder}: a serde that throws, against its contract, is also a decode failure`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* append("orders", 0, ["a", "b"])
          const hostile: Serde.Serde<string> = {
            name: "hostile",
            decode: (value) => {
              if (value?.[0] === 97) throw new Error("surprise")
              return Result.succeed("fine")
            },
            encode: () => Result.succeed(null)
          }
          const handled: Array<string> = []
          yield* start(
            Binding.make("orders", {
              ...orders,
              value: hostile,
              processingOrder,
              handler: ({ value }) => Effect.sync(() => handled.push(value))
            })
          )
          yield* settle
          assert.deepStrictEqual(handled, ["fine"])
          const [letter] = yield* memory.log("orders.DLT", 0)
          assert.include(headersOf(letter).get("x-eventbus-last-exception-message") ?? "", "surprise")
        })
    )
  }

  scenario("SER-01 a batch handler's serde that throws does not end the partition", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a"])
      yield* start(
        Binding.makeBatch("orders", {
          ...orders,
          value: {
            name: "hostile",
            decode: () => {
              throw new Error("surprise")
            },
            encode: () => Result.succeed(null)
          } satisfies Serde.Serde<string>,
          handleBatch: () => Effect.void
        })
      )
      yield* settle
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["a"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )

  scenario("SER-09 a tombstone is no decode failure for a nullable serde, and null reaches the handler", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.append("orders", 0, [
        { key: bytes("k"), value: null },
        { key: null, value: bytes("v") }
      ])
      const handled: Array<readonly [string | null, string | null]> = []
      const nullable = Serde.nullable(Serde.string)
      yield* start(
        Binding.make("orders", {
          ...orders,
          key: nullable,
          value: nullable,
          handler: ({ key, value }) => Effect.sync(() => handled.push([key, value]))
        })
      )
      assert.deepStrictEqual(handled, [
        ["k", null],
        [null, "v"]
      ])
    })
  )
})
