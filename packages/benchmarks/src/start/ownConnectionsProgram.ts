/** The smallest program on the connector, with connections of its own. `start.ts` builds it and starts it. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, Program, Serde } from "@eventbus/core"
import { Kafka } from "@eventbus/kafka"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const { BROKERS = "", TOPIC = "", GROUP = "" } = process.env

const orders = Binding.make("orders", {
  topic: TOPIC,
  groupId: GROUP,
  value: Serde.string,
  handler: () => Effect.sync(() => void process.stdout.write("handled\n"))
})

const Main = Binding.layer(orders).pipe(Layer.provide(Kafka.layer({ brokers: BROKERS.split(",") })))

NodeRuntime.runMain(Program.launch(Main))
