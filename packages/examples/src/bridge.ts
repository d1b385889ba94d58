/**
 * A bridge between two clusters: consumes orders on one, publishes them on the other, whose own binding gets them there. At least once: an order is
 * committed on the first cluster when the second has acknowledged it.
 *
 *   node packages/examples/src/bridge.ts
 *   KAFKA_BROKERS=east:9092 KAFKA_BROKERS_WEST=west:9092 node packages/examples/src/bridge.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, type Broker, Clusters, Route, Serde } from "@eventbus/core"
import { Console, Context, Effect, Layer } from "effect"
import * as Kafka from "./kafka.ts"

const EachCluster = Clusters.layer({
  default: Kafka.layer("orders", [
    ["ann", "o-1"],
    ["bob", "o-2"]
  ]),
  west: Kafka.layer("orders", [], "KAFKA_BROKERS_WEST")
})

class West extends Context.Service<West, Broker.Producer>()("West") {
  static readonly layer = Layer.effect(
    West,
    Effect.flatMap(Clusters.get("west"), (west) => west.producer())
  )
}

const bridge = Binding.make("orders", {
  topic: "orders",
  groupId: "bridge",
  value: Serde.bytes,
  handler: ({ record }) =>
    West.use((west) => west.send({ topic: "orders", key: record.key, value: record.value, headers: record.headers })),
  onError: () => Route.retry // While the west is down, orders wait in the retry topics of the east, then go to its dead letter topic.
})

const western = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  cluster: "west",
  value: Serde.string,
  handler: ({ value }) => Console.log(`${value} arrived in the west`)
})

const Main = Layer.mergeAll(Binding.layer(bridge), Binding.layer(western)).pipe(
  Layer.provide(West.layer),
  Layer.provide(EachCluster)
)

NodeRuntime.runMain(Layer.launch(Main))
