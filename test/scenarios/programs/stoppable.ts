/**
 * A program as an application would write it: one binding, the in-memory broker, `runMain`. It reports on standard output what a test wants to know
 * about its end. `slow` as argument gives it a handler that never ends.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"

const stuck = process.argv[2] === "slow"

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.string,
  shutdownTimeout: stuck ? "300 millis" : "10 seconds",
  retry: RetryPolicy.blocking(),
  handler: ({ value }) =>
    Effect.gen(function* () {
      yield* Effect.sync(() => process.stdout.write(`started ${value}\n`))
      yield* stuck ? Effect.never : Effect.sleep("500 millis")
      yield* Effect.sync(() => process.stdout.write(`handled ${value}\n`))
    })
})

/** Built first and so closed last: it sees what the shutdown left behind. */
const filled = Layer.effectDiscard(
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    const value = (text: string) => ({ value: new TextEncoder().encode(text) })
    yield* memory.createTopic("orders")
    yield* memory.append("orders", 0, [value("first"), value("second")])
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        const committed = yield* memory.committed("billing", "orders", 0)
        const { members, consumers, producers } = yield* memory.usage
        process.stdout.write(`committed ${committed} members ${members} clients ${consumers + producers}\n`)
      })
    )
  })
)

const program = Binding.layer(orders).pipe(Layer.provide(filled), Layer.provide(MemoryBroker.layer()))

NodeRuntime.runMain(Layer.launch(program))
