/** Memory of parked keys: a record that waits keeps nothing but itself. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, bytes, inTime, scenario, start } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

/** The text as a view of a fetched batch, as a client of Kafka hands it out. */
const viewOf = (text: string): Uint8Array => {
  const batch = new Uint8Array(1_000_000)
  batch.set(bytes(text), 1_000)
  return batch.subarray(1_000, 1_000 + text.length)
}

/** Followers that wait share blocks of so many bytes. */
const blockBytes = 16 * 1024

/** Bytes that stay in memory with an array. */
const kept = (array: Uint8Array | null | undefined): number => array?.buffer.byteLength ?? -1

describe("memory of parked keys", () => {
  scenario("PKO-06 a parked key and the records behind it do not keep the batches that they were fetched with", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      let isDown = true
      const handled: Array<readonly [text: string, value: number, key: number, header: number]> = []
      const app = yield* start(
        Binding.make("orders", {
          ...{ topic: "orders", groupId: "billing", key: Serde.bytes, value: Serde.bytes },
          ...{ orderingMode: "PER_KEY", processingOrder: "key", perKey: { onDeadLetter: "hold" } },
          retry: RetryPolicy.tiered({
            tiers: [{ delay: "10 seconds", maxAttempts: 1 }],
            blocking: { maxAttempts: 1 }
          }),
          onError: { Down: Route.nextTier },
          handler: ({ key, value, record }) => {
            const text = new TextDecoder().decode(value ?? new Uint8Array())
            if (text === "a1" && isDown) return Effect.fail(new Down())
            return Effect.sync(
              () =>
                void handled.push([
                  text,
                  kept(value),
                  kept(key),
                  kept(record.headers.find(({ key }) => key === "h")?.value)
                ])
            )
          }
        })
      )
      const record = (value: string) => ({
        ...{ key: viewOf("a"), value: viewOf(value) },
        headers: [{ key: "h", value: viewOf("h") }]
      })
      yield* memory.append("orders", 0, [record("a1"), record("a2")])
      yield* advance("1 second")
      const parked = yield* app.connector.parked("orders")
      assert.deepStrictEqual(
        (yield* inTime(parked.list)).map(({ key, state }) => [state, kept(key)]),
        [["waiting", 1]]
      )
      yield* advance("15 seconds")
      isDown = false
      yield* parked.retry({ partition: 0, offset: 0n }, "it is up again")
      yield* advance("1 second")
      assert.deepStrictEqual(
        handled.map(([text]) => text),
        ["a1", "a2"]
      )
      for (const [text, value, key, header] of handled)
        assert.isBelow(Math.max(value, key, header), blockBytes, `${text} keeps ${value}, ${key} and ${header} bytes`)
    })
  )
})
