import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, headersOf, orders, scenario, start } from "../scenarios/bus.ts"

const empty = new Uint8Array()

/** Headers that a careless decoder or tracer falls over. */
const headers = [
  { key: "a", value: null },
  { key: "traceparent", value: null },
  { key: "x-eventbus-original-topic", value: null },
  { key: "", value: bytes("empty-name") },
  { key: "b", value: empty },
  { key: "a", value: bytes("again") },
  { key: "x-eventbus-mine", value: null },
  { key: "__proto__", value: null },
  { key: "constructor", value: empty },
  { key: "broken", value: new Uint8Array([0xff, 0xfe, 0xc3]) }
]
const carried = headers.filter(({ key }) => key !== "x-eventbus-original-topic")

describe("C08 null header values", () => {
  for (const consumer of ["shared", "separate"] as const) {
    scenario(
      `RTY-15 DLT-03 ${consumer}: null and zero length travel through the tier to the dead letter topic, as they are, in order`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("x"), headers }])
          const shown: Array<ReadonlyMap<string, string | null>> = []
          const app = yield* start(
            Binding.make("orders", {
              ...orders,
              retry: RetryPolicy.tiered({
                blocking: { maxAttempts: 1 },
                tiers: [{ delay: "1 second", maxAttempts: 1 }],
                consumer
              }),
              handler: (delivery) =>
                Effect.suspend(() => {
                  shown.push(headersOf(delivery))
                  return Effect.die("no")
                })
            })
          )
          for (let second = 0; second < 5; second++) yield* advance("1 second")
          assert.strictEqual(shown.length, 2)
          for (const seen of shown) {
            assert.strictEqual(seen.get("x-eventbus-binding-name"), "orders")
            assert.strictEqual(seen.get("x-eventbus-mine"), null)
          }
          for (const topic of ["orders.retry-1", "orders.DLT"]) {
            const copies = yield* memory.log(topic, 0)
            assert.strictEqual(copies.length, 1)
            assert.deepStrictEqual(copies[0]?.headers.slice(0, carried.length), carried)
            assert.strictEqual(headersOf(copies[0]).get("x-eventbus-original-topic"), "orders")
          }
          assert.deepStrictEqual(app.of("PublishFailed"), [])
          assert.deepStrictEqual(app.of("SessionCrashed"), [])
        })
    )
  }
})
