/** A process that replays all dead letters of a topic, and then writes how it ended as one line of JSON. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusConnector, Serde } from "@eventbus/core"
import { Effect, Layer, Logger } from "effect"
import * as Transport from "../../transport.ts"

const task: { readonly brokers: ReadonlyArray<string>; readonly topic: string } = JSON.parse(
  process.env["TASK"] ?? "{}"
)

const binding = Binding.make("replayer", {
  ...{ topic: task.topic, groupId: task.topic, value: Serde.string, autoStartup: false },
  handler: () => Effect.void
})

const program = Effect.gen(function* () {
  const connector = yield* EventBusConnector.EventBusConnector
  const letters = yield* connector.deadLetters("replayer")
  const ended = yield* Effect.result(letters.replay(Number.POSITIVE_INFINITY))
  const told =
    ended._tag === "Success"
      ? { replayed: ended.success.replayed }
      : { ...ended.failure, message: ended.failure.message }
  yield* Effect.sync(() => process.stdout.write(`${JSON.stringify(told)}\n`))
})

const Main = Binding.layer(binding).pipe(
  Layer.provideMerge(EventBusConnector.layer),
  Layer.provideMerge(Transport.layer({ brokers: task.brokers })),
  Layer.provideMerge(Logger.layer([]))
)

NodeRuntime.runMain(Effect.provide(program, Main))
