import { assert, describe } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { bytes, headersOf, scenario, settle, start } from "../scenarios/bus.ts"

const good = bytes("1")
const bad = bytes("{")
const empty = new Uint8Array()

const records = [
  { key: bad, value: good },
  { key: good, value: bad },
  { key: bad, value: bad },
  { key: null, value: bad },
  { key: bad, value: null },
  { key: empty, value: empty }
]

describe("C19 both key and value undecodable, or only the key", () => {
  scenario("SER-01 SER-03 the handler is not called; both byte arrays are kept; headers say which half failed", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.append("orders", 0, records)
      const json = Serde.nullable(Serde.json(Schema.Number))
      let calls = 0
      yield* start(
        Binding.make("orders", {
          topic: "orders",
          groupId: "billing",
          key: json,
          value: json,
          handler: () => Effect.sync(() => calls++)
        })
      )
      yield* settle
      assert.strictEqual(calls, 0)
      const letters = yield* memory.log("orders.DLT", 0)
      assert.deepStrictEqual(
        letters.map(({ key, value }) => ({ key, value })),
        records
      )
      assert.deepStrictEqual(
        letters.map((letter) => headersOf(letter).get("x-eventbus-decode-target")),
        ["key", "value", "both", "value", "key", "both"]
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 6n)
    })
  )
})
