import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { bytes, headersOf, scenario, settle, start } from "../scenarios/bus.ts"

const binding = { topic: "orders", groupId: "billing", value: Serde.nullable(Serde.json(Schema.NullOr(Schema.Number))) }

/** A tombstone, zero bytes, the JSON text null, and a tombstone without key. */
const fill = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { config: new Map([["cleanup.policy", "compact"]]) })
  yield* memory.append("orders", 0, [
    { key: bytes("k1"), value: null },
    { key: bytes("k1"), value: new Uint8Array() },
    { key: bytes("k1"), value: bytes("null") },
    { key: null, value: null }
  ])
})

describe("C13 tombstone, empty value and JSON null", () => {
  scenario(
    "SER-09 the handler sees null for tombstones and for JSON null, and can tell them apart; zero bytes are poison",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* fill
        const seen: Array<readonly [unknown, number | undefined]> = []
        yield* start(
          Binding.make("orders", {
            ...binding,
            handler: ({ value, record }) => Effect.sync(() => seen.push([value, record.value?.length]))
          })
        )
        yield* settle
        assert.deepStrictEqual(seen, [
          [null, undefined],
          [null, 4],
          [null, undefined]
        ])
        const letters = yield* memory.log("orders.DLT", 0)
        assert.deepStrictEqual(
          letters.map(({ value }) => value),
          [new Uint8Array()]
        )
        assert.strictEqual(headersOf(letters[0]).get("x-eventbus-dlt-reason"), "NON_RETRYABLE")
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
      })
  )

  scenario("DLT-03 SER-09 dead letters of tombstones keep null as null, for value and key", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill
      yield* start(Binding.make("orders", { ...binding, retry: RetryPolicy.none, handler: () => Effect.die("null") }))
      yield* settle
      assert.deepStrictEqual(
        (yield* memory.log("orders.DLT", 0)).map(({ key, value }) => [key, value]),
        [
          [bytes("k1"), null],
          [bytes("k1"), new Uint8Array()],
          [bytes("k1"), bytes("null")],
          [null, null]
        ]
      )
    })
  )
})
