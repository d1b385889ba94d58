/**
 * The entry point of the example, on the Kafka of `appsettings.json`; with `embedded`, on one inside this process, where three orders wait.
 *
 *   node packages/examples/src/resilient/program.ts embedded
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Layer } from "effect"
import * as Kafka from "../kafka.ts"
import * as Orders from "./consumer.ts"
import { PaymentGateway } from "./paymentGateway.ts"

const embedded = Kafka.layer("orders", [
  ["ann", { orderId: "o-1", bank: "north", amount: 2000 }],
  ["bob", { orderId: "o-2", bank: "south", amount: 500 }], // Retried, since its bank is down.
  ["eve", { orderId: "o-3", bank: "north", amount: 0 }] // Goes to orders.error, since it is not an order.
])

const Main = Orders.Consumer.pipe(Layer.provide(PaymentGateway.layer))

NodeRuntime.runMain(
  Layer.launch(
    process.argv.includes("embedded") ? Main.pipe(Layer.provide(embedded)) : Main.pipe(Layer.provide(Orders.Kafka))
  )
)
