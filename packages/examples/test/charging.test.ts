import { assert, describe, it } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { CardDeclined, charging, Gateway, GatewayDown, type Order } from "../src/charging.ts"

/** A gateway that the test holds in its hand. */
class FakeGateway extends Context.Service<
  FakeGateway,
  { readonly charged: Array<string>; answer: (order: Order) => Effect.Effect<void, GatewayDown | CardDeclined> }
>()("FakeGateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.map(FakeGateway, (fake) => ({
      charge: (order) => Effect.tap(fake.answer(order), () => Effect.sync(() => fake.charged.push(order.id)))
    }))
  ).pipe(Layer.provideMerge(Layer.sync(FakeGateway, () => ({ charged: [], answer: () => Effect.void }))))
}

const World = Binding.layer(charging).pipe(
  Layer.provideMerge(FakeGateway.layer),
  Layer.provideMerge(MemoryBroker.layer())
)

const arrive = Effect.fnUntraced(function* (...values: ReadonlyArray<unknown>) {
  const kafka = yield* MemoryBroker.MemoryBroker
  yield* kafka.createTopic("orders")
  yield* kafka.append(
    "orders",
    0,
    values.map((value) => ({ value: new TextEncoder().encode(JSON.stringify(value)) }))
  )
})

/** Ends when the group has committed `offset`; the clock stands still meanwhile. */
const committed = (offset: bigint) =>
  MemoryBroker.MemoryBroker.use((kafka) => kafka.committed("billing", "orders", 0)).pipe(
    Effect.tap(Effect.yieldNow),
    Effect.repeat({ until: (found) => found === offset })
  )

describe("charging", () => {
  it.effect("TST-01: no order is lost when the gateway is down for two seconds", () =>
    Effect.gen(function* () {
      const gateway = yield* FakeGateway
      gateway.answer = () => Effect.fail(new GatewayDown({ status: 503 }))
      yield* arrive({ id: "o-1", amount: 20 }, { id: "o-2", amount: 30 })
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(gateway.charged, [])

      gateway.answer = () => Effect.void
      yield* TestClock.adjust("2 seconds")
      yield* committed(2n)
      assert.deepStrictEqual(gateway.charged, ["o-1", "o-2"])
    }).pipe(Effect.provide(World))
  )

  it.effect("a declined card goes to the dead letter topic at once, and the next order is not delayed", () =>
    Effect.gen(function* () {
      const kafka = yield* MemoryBroker.MemoryBroker
      const gateway = yield* FakeGateway
      gateway.answer = ({ id }) => (id === "o-1" ? Effect.fail(new CardDeclined({ code: "expired" })) : Effect.void)
      yield* arrive({ id: "o-1", amount: 20 }, { id: "o-2", amount: 30 })
      yield* committed(2n)
      assert.deepStrictEqual(gateway.charged, ["o-2"])
      assert.strictEqual((yield* kafka.log("orders.DLT", 0)).length, 1)
    }).pipe(Effect.provide(World))
  )
})
