/**
 * A handler and five lines of configuration. SIGTERM and Ctrl-C finish the current order, commit, and leave the group.
 *
 *   node packages/examples/src/handler.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, Serde } from "@eventbus/core"
import { Console, Context, Effect, Layer, Schema } from "effect"
import * as Kafka from "./kafka.ts"

const Order = Schema.Struct({ id: Schema.String, amount: Schema.Int })

class Billing extends Context.Service<
  Billing,
  {
    readonly charge: (order: typeof Order.Type) => Effect.Effect<void>
  }
>()("Billing") {
  static readonly layer = Layer.succeed(Billing, {
    charge: Effect.fnUntraced(function* ({ id, amount }) {
      yield* Console.log(`charging ${id}`)
      yield* Effect.sleep(amount > 1000 ? "2 seconds" : "20 millis") // The bank takes a while for a large amount.
      yield* Console.log(`charged ${id}`)
    })
  })
}

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.json(Order),
  handler: ({ value }) => Billing.use((billing) => billing.charge(value))
})

const Main = Binding.layer(orders).pipe(
  Layer.provide(Billing.layer),
  Layer.provide(
    Kafka.layer("orders", [
      ["ann", { id: "o-1", amount: 20 }],
      ["bob", { id: "o-2", amount: "twelve" }], // An undecodable record goes to orders.DLT, and the handler never sees it.
      ["ann", { id: "o-3", amount: 5000 }]
    ])
  )
)

NodeRuntime.runMain(Layer.launch(Main))
