/**
 * The second binding of the demo: orders of subscribers, each customer's in order, also when one of them goes through a retry topic.
 */
import { Binding, type Broker, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Context, Effect, Layer, Schema } from "effect"
import type { SubscriptionNames } from "./cluster.ts"

/** The bank does not answer for this card now. */
class CardFails extends Schema.TaggedError<CardFails>()("CardFails", { order: Schema.String }) {
  override get message(): string {
    return `the card of ${this.order} fails`
  }
}

/** The bank has blocked this card. */
class CardBlocked extends Schema.TaggedError<CardBlocked>()("CardBlocked", { order: Schema.String }) {
  override get message(): string {
    return `the card of ${this.order} is blocked`
  }
}

export class Cards extends Context.Service<
  Cards,
  {
    readonly charge: (customer: string, order: string) => Effect.Effect<void, CardFails | CardBlocked>
    readonly set: (customer: string, state: "works" | "fails" | "blocked") => void
    /** The orders that were charged, the first one first. */
    readonly charged: ReadonlyArray<string>
  }
>()("@eventbus/examples/demo/Cards") {
  static readonly layer: Layer.Layer<Cards> = Layer.sync(Cards, () => {
    const states = new Map<string, "works" | "fails" | "blocked">()
    const charged: Array<string> = []
    return Cards.of({
      charge: Effect.fnUntraced(function* (customer, order) {
        yield* Effect.sleep("20 millis")
        const state = states.get(customer) ?? "works"
        if (state === "fails") return yield* new CardFails({ order })
        if (state === "blocked") return yield* new CardBlocked({ order })
        charged.push(order)
      }),
      set: (customer, state) => states.set(customer, state),
      charged
    })
  })
}

export const name = "subscriptions"

export const binding = ({ topic, group }: SubscriptionNames): Binding.Binding<Cards> =>
  Binding.make(name, {
    topic,
    groupId: group,
    key: Serde.string,
    value: Serde.string,
    orderingMode: "PER_KEY",
    processingOrder: "key",
    perKey: { onDeadLetter: "hold" },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "2 seconds", maxAttempts: 10 }] }),
    onError: { CardFails: Route.retry, CardBlocked: Route.deadLetter("card blocked") },
    heartbeatInterval: "500 millis",
    sessionTimeout: "10 seconds",
    handler: ({ key, value }) => Cards.use((cards) => cards.charge(key, value))
  })

/** An order is called after its customer and its number, such as `ann-1`. */
export const customerOf = (order: string): string => order.split("-")[0] ?? order

/** Sends the orders one after the other, keyed by their customer. */
export const publish = Effect.fnUntraced(function* (
  broker: Broker.Broker["Service"],
  { topic }: SubscriptionNames,
  orders: ReadonlyArray<string>
) {
  const producer = yield* broker.producer()
  for (const order of orders) {
    yield* producer.send({ topic, key: encoder.encode(customerOf(order)), value: encoder.encode(order) })
  }
}, Effect.scoped)

const encoder = new TextEncoder()
