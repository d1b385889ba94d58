/**
 * Bindings that come and go while the program runs: one for each tenant, registered when the tenant signs up and destroyed when it leaves. Ends by itself.
 *
 *   node packages/examples/src/tenants.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusConnector, Health, Serde, TopicName } from "@eventbus/core"
import { Console, Effect, Layer, Stream } from "effect"
import * as Kafka from "./kafka.ts"

const bindingOf = (tenant: string) =>
  Binding.make(tenant, {
    topic: "orders",
    groupId: `billing.${tenant}`,
    value: Serde.string,
    naming: TopicName.perGroup, // each tenant has retry and dead letter topics of its own
    handler: ({ value }) => Console.log(`${tenant} got ${value}`)
  })

const signUp = Effect.fnUntraced(function* (tenant: string) {
  const connector = yield* EventBusConnector.EventBusConnector
  const handled = connector.events.pipe(
    Stream.filter((event) => event._tag === "Settled" && event.binding === tenant),
    Stream.take(1),
    Stream.runDrain
  )
  yield* Effect.all([handled, connector.register(bindingOf(tenant))], { concurrency: "unbounded" })
})

const program = Effect.gen(function* () {
  const connector = yield* EventBusConnector.EventBusConnector
  yield* signUp("ann")
  yield* signUp("bob")
  yield* connector
    .register(bindingOf("ann"))
    .pipe(Effect.catchTag("BindingAlreadyExists", (error) => Console.log(error.message)))
  yield* connector.pause("bob")
  const { status, reasons } = yield* connector.health
  yield* Console.log(`${status}: ${reasons.map(Health.describe)}`)
  yield* connector.destroy("bob")
  yield* Console.log((yield* connector.listBindings).map(({ name, state }) => `${name} is ${state}`).join())
})

program.pipe(
  Effect.provide(EventBusConnector.layer.pipe(Layer.provideMerge(Kafka.layer("orders", [["ann", "o-1"]])))),
  NodeRuntime.runMain
)
