/**
 * Commands for a binding of a running process: start, pause, resume, stop. The program ends by itself.
 *
 *   node packages/examples/src/lifecycle.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusConnector, Serde } from "@eventbus/core"
import { Console, Effect, Layer, Stream } from "effect"
import * as Kafka from "./kafka.ts"

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.string,
  autoStartup: false,
  handler: ({ value }) => Console.log(`handled ${value}`)
})

const operate = Effect.gen(function* () {
  const connector = yield* EventBusConnector.EventBusConnector
  const show = connector.getState("orders").pipe(Effect.flatMap((state) => Console.log(`orders is ${state}`)))

  const firstSettled = connector.events.pipe(
    Stream.filter((event) => event._tag === "Settled"),
    Stream.take(1),
    Stream.runDrain
  )

  yield* show
  yield* Effect.all([firstSettled, connector.start("orders")], { concurrency: "unbounded" })
  yield* show
  yield* connector.pause("orders") // stays in the group, fetches nothing
  yield* show
  yield* connector.resume("orders")
  yield* connector
    .resume("orders")
    .pipe(Effect.catchTag("InvalidContainerState", (error) => Console.log(error.message)))
  yield* connector.stop("orders") // waits for running handlers, commits, leaves the group
  yield* show
})

const Connector = Binding.layer(orders).pipe(Layer.provide(Kafka.layer("orders", [["ann", "o-1"]])))

operate.pipe(Effect.provide(Connector), NodeRuntime.runMain)
