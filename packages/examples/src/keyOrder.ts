/**
 * Customers are handled concurrently, each customer's events in order, although all of them are in one partition.
 *
 *   node packages/examples/src/keyOrder.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Console, Effect, Layer } from "effect"
import * as Kafka from "./kafka.ts"

const activity = Binding.make("activity", {
  topic: "activity",
  groupId: "profiles",
  key: Serde.string,
  value: Serde.string,
  processingOrder: "key", // Offsets are still committed in order, so that no record is skipped when the process dies.
  maxInFlight: 8,
  retry: RetryPolicy.blocking(), // no retry topics: a record that waits in one is overtaken by later records of its key
  handler: ({ key, value }) =>
    Console.log(`${key} ${value}`).pipe(Effect.delay(value === "signed up" ? "300 millis" : "20 millis"))
})

const Main = Binding.layer(activity).pipe(
  Layer.provide(
    Kafka.layer("activity", [
      ["ann", "signed up"], // takes a while
      ["ann", "ordered"],
      ["bob", "ordered"],
      ["bob", "paid"],
      ["ann", "paid"]
    ])
  )
)

NodeRuntime.runMain(Layer.launch(Main))
