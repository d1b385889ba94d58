/** A process that applies or resumes a plan over the dead letters of a topic, and then writes how it ended as one line of JSON. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusConnector, type ReplayRun, Serde } from "@eventbus/core"
import { Effect, Layer, Logger, Schedule } from "effect"
import * as Transport from "../../transport.ts"

const task: {
  readonly brokers: ReadonlyArray<string>
  readonly topic: string
  readonly id: string
  readonly verb: "apply" | "resume"
} = JSON.parse(process.env["TASK"] ?? "{}")

const binding = Binding.make("runner", {
  ...{ topic: task.topic, groupId: task.topic, value: Serde.string, autoStartup: false },
  handler: () => Effect.void
})

/** The lease of a process that was killed lasts for 15 seconds at most. */
const resumed = (runs: ReplayRun.Runs, id: string) =>
  Effect.retry(runs.resume(id), { while: ({ _tag }) => _tag === "RunAtWork", schedule: Schedule.spaced("500 millis") })

const program = Effect.gen(function* () {
  const connector = yield* EventBusConnector.EventBusConnector
  const runs = yield* connector.runs("runner")
  const ended = yield* Effect.result<unknown, { readonly _tag: string; readonly message: string }, never>(
    task.verb === "apply" ? runs.apply(task.id) : resumed(runs, task.id)
  )
  const told = ended._tag === "Success" ? ended.success : { _tag: ended.failure._tag, message: ended.failure.message }
  yield* Effect.sync(() => process.stdout.write(`${JSON.stringify(told)}\n`))
})

const Main = Binding.layer(binding).pipe(
  Layer.provideMerge(EventBusConnector.layer),
  Layer.provideMerge(Transport.layer({ brokers: task.brokers })),
  Layer.provideMerge(Logger.layer([]))
)

NodeRuntime.runMain(Effect.provide(program, Main))
