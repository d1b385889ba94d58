/** A small service, whose compilation is timed: a binding on Kafka, with a handler of its own errors, and a layer. */
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Layer, Schema } from "effect"

class Order extends Schema.Class<Order>("Order")({ id: Schema.String, cents: Schema.Int }) {}

class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { order: Schema.String }) {}

const charge = (order: Order) => (order.cents > 0 ? Effect.void : new CardDeclined({ order: order.id }))

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.json(Order),
  retry: RetryPolicy.tiered(),
  onError: { CardDeclined: Route.deadLetter("card declined") },
  handler: ({ value }) => charge(value)
})

export const Main = Binding.layer(orders).pipe(Layer.provide(KafkaJs.layer({ brokers: ["localhost:9092"] })))
