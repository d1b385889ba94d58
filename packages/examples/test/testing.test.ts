import { assert, describe, it } from "@effect/vitest"
import { TestBus } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { charging, FakeGateway, outage } from "../src/testing.ts"

const orders = charging("orders")

const World = TestBus.layer([orders], { partitions: 6 }).pipe(Layer.provideMerge(FakeGateway.layer))

describe("testing a handler (TST-01 TST-05)", () => {
  it.effect("no order is lost when the gateway is down for ten minutes", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      const gateway = yield* FakeGateway
      yield* gateway.down
      yield* bus.publish("orders", { key: "o-1", value: { id: "o-1", amount: 20 } })
      yield* TestClock.adjust("10 minutes")
      yield* gateway.up
      yield* TestClock.adjust("8 minutes")
      yield* bus.settled
      expect(yield* gateway.charged).toEqual(["o-1"])
      expect(yield* bus.trail("orders", "o-1")).toMatchInlineSnapshot(`
        "+0ms  orders-0@0          failed: GatewayDown: {status} > orders.retry-1
        +1m   orders.retry-1-0@0  failed: GatewayDown: {status} > orders.retry-1
        +2m   orders.retry-1-0@1  failed: GatewayDown: {status} > orders.retry-1
        +3m   orders.retry-1-0@2  failed: GatewayDown: {status} > orders.retry-2
        +8m   orders.retry-2-0@0  failed: GatewayDown: {status} > orders.retry-2
        +13m  orders.retry-2-0@1  handled"
      `)
    }).pipe(Effect.provide(World))
  )

  it.effect("the scenario that also runs on a real Kafka", () =>
    Effect.map(outage("orders"), (charged) => assert.deepStrictEqual(charged, ["o-1"])).pipe(Effect.provide(World))
  )
})
