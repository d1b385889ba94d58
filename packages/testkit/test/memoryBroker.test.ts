import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Queue } from "effect"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe("MemoryBroker", () => {
  it.effect("TST-01: publishes, assigns, fetches, commits", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const broker = yield* Broker.Broker
      yield* memory.createTopic("orders", { partitions: 2 })
      const producer = yield* broker.producer()
      const sent = yield* producer.sendAll([
        { topic: "orders", key: null, value: bytes("a"), partition: 0 },
        { topic: "orders", key: null, value: bytes("b"), partition: 0 }
      ])
      assert.deepStrictEqual(
        sent.map((one) => one.offset),
        [0n, 1n]
      )
      const session = yield* broker.consumer({ groupId: "g", topics: ["orders"] })
      const assigned = yield* Queue.take(session.events)
      assert.strictEqual(assigned._tag, "Assigned")
      if (assigned._tag !== "Assigned") return
      assert.deepStrictEqual(
        assigned.partitions.map((one) => one.logEnd),
        [2n, 0n]
      )
      yield* session.seek({ topic: "orders", partition: 0 }, 0n)
      const fetched = yield* Queue.take(session.events)
      assert.strictEqual(fetched._tag === "Fetched" && fetched.chunk.nextOffset, 2n)
      yield* session.commit([{ topic: "orders", partition: 0, generation: assigned.generation, offset: 2n }])
      assert.strictEqual(yield* memory.committed("g", "orders", 0), 2n)
    }).pipe(Effect.provide(MemoryBroker.layer()))
  )
})
