/** The cost of many bindings with retry tiers in one process: starting them, keeping them, and idling. */
import { Binding, EventBusConnector, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { Context, Effect, Layer, type Scope } from "effect"
import { make, medianAtMost, type Participant, type Round } from "./harness/Benchmark.ts"
import { now, since } from "./harness/stopwatch.ts"
import * as Transport from "./harness/transport.ts"

type Parameters = Readonly<Record<"bindings" | "tiers" | "seconds", number>>

const partitions = 3

/** Each binding reads the topic in its own group and has its own retry topics. */
const bindingsOf = ({ topic, groupId, parameters }: Round<Parameters>) =>
  Array.from({ length: parameters.bindings }, (_, index) =>
    Binding.make(`binding-${index}`, {
      ...{ topic, groupId: `${groupId}-${index}`, value: Serde.bytes, naming: TopicName.perGroup },
      retry: RetryPolicy.tiered({
        tiers: Array.from({ length: parameters.tiers }, (_, tier) => `${10 * (tier + 1)} seconds` as const)
      }),
      circuitBreaker: {},
      handler: () => Effect.void
    })
  )

/** Starts the bindings concurrently. Returns the time until every partition of every topic and tier was assigned. */
const startAll = Effect.fnUntraced(function* (
  round: Round<Parameters>
): Effect.fn.Return<number, unknown, Scope.Scope> {
  const start = now()
  const context = yield* Layer.build(
    EventBusConnector.layer.pipe(Layer.provideMerge(Transport.layer({ brokers: round.brokers })))
  )
  const connector = Context.get(context, EventBusConnector.EventBusConnector)
  const all = bindingsOf(round)
  yield* Effect.provideContext(
    Effect.forEach(all, connector.register, { concurrency: "unbounded", discard: true }),
    context
  )
  const wanted = partitions * (1 + round.parameters.tiers)
  const isReady = Effect.map(connector.listBindings, (bindings) =>
    bindings.every((each) => each.state === "RUNNING" && each.partitions.length === wanted)
  )
  while (!(yield* isReady)) yield* Effect.sleep("50 millis")
  return since(start).millis / 1_000
})

const participant: Participant<Parameters> = {
  topic: { lifetime: "round", partitions },
  role: Effect.fnUntraced(function* (round) {
    const first = yield* Effect.scoped(startAll(round))
    const again = yield* startAll(round)
    yield* Effect.sleep("5 seconds")
    const start = now()
    yield* Effect.sleep(round.parameters.seconds * 1_000)
    const { millis, cpuMicros } = since(start)
    return {
      first: [first],
      again: [again],
      resident: [process.memoryUsage().rss / 1024 / 1024],
      core: [(cpuMicros / 1_000 / millis / round.parameters.bindings) * 100]
    }
  }, Effect.scoped)
}

const of = { participant: "bindings" }

export const connector = make({
  name: "connector",
  header: [
    `50 bindings with 3 tiers each and a breaker in one process (--bindings, --tiers), ${partitions} partitions: 600 partitions of 151 topics`,
    "first: until all are assigned, their retry topics made meanwhile; again: the same when these exist; idle: over 20 s (--seconds), CPU time of all threads per binding"
  ],
  parameters: { bindings: 50, tiers: 3, seconds: 20 },
  smoke: { bindings: 2, tiers: 1, seconds: 1 },
  rounds: 1,
  participants: { bindings: participant },
  measures: [
    { ...of, series: "first", label: "first", unit: "s", target: medianAtMost(10) },
    { ...of, series: "again", label: "again", unit: "s", target: medianAtMost(10) },
    { ...of, series: "resident", label: "resident", unit: "MiB", target: medianAtMost(400) },
    { ...of, series: "core", label: "idle", unit: "% of a core", target: medianAtMost(0.5) }
  ]
})
