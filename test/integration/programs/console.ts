/** The process of a console: serves the admin API, through which a test has it apply or resume a plan over the dead letters of a topic. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { AdminServer, Authorizer, EventBusAdmin } from "@eventbus/admin"
import { Binding, EventBusConnector, Serde } from "@eventbus/core"
import { Effect, Layer, Redacted } from "effect"
import * as Transport from "../../transport.ts"

const task: { readonly brokers: ReadonlyArray<string>; readonly topic: string; readonly token: string } = JSON.parse(
  process.env["TASK"] ?? "{}"
)

const binding = Binding.make("runner", {
  ...{ topic: task.topic, groupId: task.topic, value: Serde.string, autoStartup: false },
  handler: () => Effect.void
})

const authorizer = Authorizer.fromTokens([
  { token: Redacted.make(task.token), name: "operator", permissions: ["view", "operate", "replay"] }
])

const Main = EventBusAdmin.layer().pipe(
  Layer.provideMerge(Binding.layer(binding)),
  Layer.provideMerge(EventBusConnector.layer),
  Layer.provide(Transport.layer({ brokers: task.brokers }))
)

NodeRuntime.runMain(Layer.launch(AdminServer.layer(Main, { port: 0, host: "127.0.0.1", authorizer })))
