import { assert, it } from "@effect/vitest"
import { Binding, EventBusConnector, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { bytes } from "../scenarios/bus.ts"
import { onStores } from "./stores.ts"

onStores("idempotency of batches", ({ layer, time, pass, yielding }) => {
  const test = time === "virtual" ? it.effect : it.live
  test("OFF-19 a batch that is delivered again hands over what was not handled yet", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const calls: Array<string> = []
      const group = `billing-${crypto.randomUUID()}`
      const orders = Binding.layer(
        Binding.makeBatch("orders", {
          topic: "orders",
          groupId: group,
          value: Serde.string,
          idempotency: {},
          handleBatch: ({ deliveries }) => Effect.sync(() => calls.push(deliveries.map(({ value }) => value).join(" ")))
        })
      )
      const append = (values: ReadonlyArray<string>) =>
        memory.append(
          "orders",
          0,
          values.map((value) => ({ key: null, value: bytes(value), headers: [] }))
        )
      /** Runs the binding until the group has committed the offset. */
      const runUntil = (offset: bigint) =>
        Effect.gen(function* () {
          yield* EventBusConnector.EventBusConnector
          for (let round = 0; round < 500 && (yield* memory.committed(group, "orders", 0)) !== offset; round++) {
            yield* pass("20 millis")
            for (let turn = 0; turn < 20; turn++) yield* yielding
          }
          assert.strictEqual(yield* memory.committed(group, "orders", 0), offset)
        }).pipe(Effect.provide(orders))
      yield* append(["a", "b", "c"])
      yield* runUntil(3n)
      yield* memory.setCommitted(group, "orders", 0, 1n)
      yield* append(["d"])
      yield* runUntil(4n)
      assert.deepStrictEqual(calls, ["a b c", "d"])
    }).pipe(Effect.provide(Layer.merge(MemoryBroker.layer(), layer))))
})
