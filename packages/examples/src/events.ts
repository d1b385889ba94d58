/**
 * Every event of the connector as a Stream of plain values; here, the outcome of each record.
 *
 *   node packages/examples/src/events.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusConnector, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Console, Effect, Layer, Schema, Stream } from "effect"
import * as Kafka from "./kafka.ts"

class Unreachable extends Schema.TaggedError<Unreachable>()("Unreachable", {}) {}

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.string,
  autoStartup: false, // A stream shows only events from now on, so the binding starts after it.
  retry: RetryPolicy.blocking({ maxAttempts: 2 }),
  handler: ({ value }) => (value === "o-2" ? Effect.fail(new Unreachable()) : Effect.void),
  onError: { Unreachable: Route.retry }
})

const watch = Effect.gen(function* () {
  const connector = yield* EventBusConnector.EventBusConnector
  const settled = connector.events.pipe(
    Stream.filter((event) => event._tag === "Settled"),
    Stream.take(3),
    Stream.runForEach(({ record, settlement, attempts }) =>
      Console.log(`${record.topic}-${record.partition}@${record.offset}: ${settlement} after ${attempts} attempts`)
    )
  )
  yield* Effect.all([settled, connector.start("orders")], { concurrency: "unbounded" })
})

const Connector = Binding.layer(orders).pipe(
  Layer.provide(
    Kafka.layer("orders", [
      ["ann", "o-1"],
      ["bob", "o-2"],
      ["ann", "o-3"]
    ])
  )
)

watch.pipe(Effect.provide(Connector), NodeRuntime.runMain)
