/**
 * A binding whose handler can fail in several ways, with a rule for each. `errorRoutes.ts` runs it, `test/charging.test.ts` tests it.
 */
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Context, type Effect, Schema } from "effect"

export const Order = Schema.Struct({ id: Schema.String, amount: Schema.Int })
export type Order = typeof Order.Type

export class GatewayDown extends Schema.TaggedError<GatewayDown>()("GatewayDown", { status: Schema.Int }) {}
export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { code: Schema.String }) {}
export class AlreadyCharged extends Schema.TaggedError<AlreadyCharged>()("AlreadyCharged", { id: Schema.String }) {}
export class KeyRevoked extends Schema.TaggedError<KeyRevoked>()("KeyRevoked", {}) {}

export class Gateway extends Context.Service<
  Gateway,
  {
    readonly charge: (order: Order) => Effect.Effect<void, GatewayDown | CardDeclined | AlreadyCharged | KeyRevoked>
  }
>()("Gateway") {}

export const charging = Binding.make("charging", {
  topic: "orders",
  groupId: "billing",
  value: Serde.json(Order),
  handler: ({ value }) => Gateway.use((gateway) => gateway.charge(value)),
  retry: RetryPolicy.blocking({ maxAttempts: 5, initialBackoff: "200 millis", maxBackoff: "2 seconds", jitter: 0 }),
  // A tag that is missing here does not compile. Defects are retried.
  onError: {
    GatewayDown: ({ status }) => (status === 501 ? Route.deadLetter("not implemented") : Route.retry),
    CardDeclined: ({ code }) => Route.deadLetter(`card declined: ${code}`),
    AlreadyCharged: Route.skip,
    KeyRevoked: Route.pause // No charge can succeed before somebody intervenes.
  }
})
