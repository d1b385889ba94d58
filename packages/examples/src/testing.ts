/**
 * How handlers are tested: a gateway is down for ten minutes, and not an order is lost. The same scenario runs in memory, where eighteen minutes take
 * milliseconds, and on a real Kafka with a shorter minute: see `test/testing.test.ts` and `test/testingOnKafka.test.ts`.
 */
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { DeadLetters, RetryTiers, TestBus } from "@eventbus/testkit"
import { Context, Effect, Layer, Schema } from "effect"

export const Order = Schema.Struct({ id: Schema.String, amount: Schema.Int })
type Order = typeof Order.Type

class GatewayDown extends Schema.TaggedError<GatewayDown>()("GatewayDown", { status: Schema.Int }) {}
class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { code: Schema.String }) {}

/** The service that the handler requires. */
class Gateway extends Context.Service<
  Gateway,
  { readonly charge: (order: Order) => Effect.Effect<void, GatewayDown | CardDeclined> }
>()("examples/testing/Gateway") {}

/** The controls of the fake, for tests. */
export class FakeGateway extends Context.Service<
  FakeGateway,
  {
    readonly down: Effect.Effect<void>
    readonly up: Effect.Effect<void>
    readonly charged: Effect.Effect<ReadonlyArray<string>>
  }
>()("examples/testing/FakeGateway") {
  /** The fake, and the gateway that it implements. */
  static readonly layer: Layer.Layer<Gateway | FakeGateway> = Layer.effectContext(
    Effect.sync(() => {
      const charged: Array<string> = []
      let isDown = false
      const gateway = Gateway.of({
        charge: ({ id, amount }) => {
          if (isDown) return Effect.fail(new GatewayDown({ status: 503 }))
          if (amount > 1_000) return Effect.fail(new CardDeclined({ code: "over the limit" }))
          return Effect.sync(() => charged.push(id))
        }
      })
      const fake = FakeGateway.of({
        down: Effect.sync(() => (isDown = true)),
        up: Effect.sync(() => (isDown = false)),
        charged: Effect.sync(() => [...charged])
      })
      return Context.make(Gateway, gateway).pipe(Context.add(FakeGateway, fake))
    })
  )
}

/** The binding under test. A test on a real Kafka gives it a unique name and a shorter minute. */
export const charging = (name: string, minuteMillis = 60_000) =>
  Binding.make(name, {
    topic: name,
    groupId: `${name}-billing`,
    value: Serde.json(Order),
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [1, 5, 12].map((minutes) => minutes * minuteMillis)
    }),
    onError: { GatewayDown: Route.retry, CardDeclined: Route.deadLetter("card declined") },
    handler: ({ value }) => Gateway.use(({ charge }) => charge(value))
  })

/** The scenario, independent of cluster and clock. Fails when an expectation does not hold; returns the charged amounts. */
export const outage = Effect.fnUntraced(function* (
  topic: string,
  minuteMillis = 60_000
): Effect.fn.Return<ReadonlyArray<string>, unknown, TestBus.TestBus | FakeGateway> {
  const bus = yield* TestBus.TestBus
  const gateway = yield* FakeGateway
  yield* gateway.down
  yield* bus.publish(topic, { key: "o-1", value: { id: "o-1", amount: 20 } })
  yield* bus.advance(10 * minuteMillis)
  yield* gateway.up
  yield* bus.publish(topic, { key: "o-2", value: { id: "o-2", amount: 5_000 } })
  yield* bus.advance(8 * minuteMillis)
  yield* bus.settled
  yield* RetryTiers.expectPath(topic, "o-1", ["main", "tier 1", "tier 1", "tier 1", "tier 2", "tier 2", "handled"])
  yield* DeadLetters.expectExactly(topic, [{ key: "o-2", reason: "NON_RETRYABLE", exception: "CardDeclined" }])
  return yield* gateway.charged
})
