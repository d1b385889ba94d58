import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { TestBus } from "@eventbus/testkit"
import { Context, Effect, Layer, Ref, Schema } from "effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"

const Order = Schema.Struct({ id: Schema.String, amount: Schema.Int })

class GatewayDown extends Schema.TaggedError<GatewayDown>()("GatewayDown", { status: Schema.Int }) {}
class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { code: Schema.String }) {}

/** The dependency of the handler under test. */
class Gateway extends Context.Service<
  Gateway,
  {
    readonly charge: (id: string) => Effect.Effect<void, GatewayDown | CardDeclined>
    readonly charged: Effect.Effect<ReadonlyArray<string>>
    readonly setDown: (isDown: boolean) => Effect.Effect<void>
  }
>()("test/Gateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const down = yield* Ref.make(false)
      const charged = yield* Ref.make<ReadonlyArray<string>>([])
      return Gateway.of({
        charge: Effect.fnUntraced(function* (id) {
          if (id.startsWith("declined")) return yield* new CardDeclined({ code: "insufficient funds" })
          if (yield* Ref.get(down)) return yield* new GatewayDown({ status: 503 })
          yield* Ref.update(charged, (ids) => [...ids, id])
        }),
        charged: Ref.get(charged),
        setDown: (isDown) => Ref.set(down, isDown)
      })
    })
  )
}

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.json(Order),
  retry: RetryPolicy.tiered({ blocking: { jitter: 0 }, tiers: ["1 minute", "5 minutes", "12 minutes"] }),
  onError: { GatewayDown: Route.retry, CardDeclined: Route.deadLetter("card declined") },
  handler: ({ value }) => Gateway.use(({ charge }) => charge(value.id))
})

describe("TestBus", () => {
  it.effect("TST-01 a gateway that is down for ten minutes costs nobody an order", () =>
    Effect.gen(function* () {
      const bus = yield* TestBus.TestBus
      const gateway = yield* Gateway
      yield* gateway.setDown(true)
      yield* bus.publish("orders", { key: "o-1", value: { id: "o-1", amount: 20 } })
      yield* TestClock.adjust("10 minutes")
      yield* gateway.setDown(false)
      yield* TestClock.adjust("8 minutes")
      yield* bus.settled
      assert.deepStrictEqual(yield* gateway.charged, ["o-1"])
      expect(yield* bus.trail("orders", "o-1")).toMatchInlineSnapshot(`
        "+0ms           orders-0@0          failed 3 times: GatewayDown: {"_tag":"GatewayDown","status":503} > orders.retry-1
        +1m 300ms      orders.retry-1-0@0  failed 3 times: GatewayDown: {"_tag":"GatewayDown","status":503} > orders.retry-1
        +2m 600ms      orders.retry-1-0@1  failed 3 times: GatewayDown: {"_tag":"GatewayDown","status":503} > orders.retry-1
        +3m 900ms      orders.retry-1-0@2  failed 3 times: GatewayDown: {"_tag":"GatewayDown","status":503} > orders.retry-2
        +8m 1s 200ms   orders.retry-2-0@0  failed 3 times: GatewayDown: {"_tag":"GatewayDown","status":503} > orders.retry-2
        +13m 1s 500ms  orders.retry-2-0@1  handled"
      `)
    }).pipe(Effect.provide(TestBus.layer([orders], { partitions: 6 })), Effect.provide(Gateway.layer))
  )
})
