/** A process with a binding and its admin API on a port of its own, which it writes as one line of JSON. Its handler fails for `bad`, and does not end for `slow`. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { AdminWeb, Authorizer, EventBusAdmin } from "@eventbus/admin"
import { Binding, EventBusConnector, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect, Layer, Logger, Redacted } from "effect"
import * as Transport from "../../transport.ts"

const task: { readonly brokers: ReadonlyArray<string>; readonly topic: string; readonly token: string } = JSON.parse(
  process.env["TASK"] ?? "{}"
)

class Bad extends Data.TaggedError("Bad") {}

const binding = Binding.make("orders", {
  ...{ topic: task.topic, groupId: task.topic, value: Serde.string, retry: RetryPolicy.none },
  onError: { Bad: Route.deadLetter("bad") },
  handler: ({ value }): Effect.Effect<void, Bad> =>
    value === "slow" ? Effect.never : value === "bad" ? Effect.fail(new Bad()) : Effect.void
})

const authorizer = Authorizer.fromTokens([
  { token: Redacted.make(task.token), name: "operator", permissions: ["view", "operate", "replay"] }
])

const program = Effect.gen(function* () {
  const web = yield* AdminWeb.make({ authorizer })
  const server = createServer(web.nodeListener).listen(0, "127.0.0.1", () => {
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
  })
  return yield* Effect.never
})

const Main = EventBusAdmin.layer().pipe(
  Layer.provideMerge(Binding.layer(binding)),
  Layer.provideMerge(EventBusConnector.layer),
  Layer.provideMerge(Transport.layer({ brokers: task.brokers })),
  Layer.provideMerge(Logger.layer([]))
)

NodeRuntime.runMain(Effect.provide(program, Main))
