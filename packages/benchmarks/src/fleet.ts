/** The cost of belonging to a fleet while nothing happens and nobody looks: the same process without a fleet, then with one. */
import { Binding, Fleet, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { Context, Effect, Layer, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, medianAtMost, type Participant, type Round } from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"
import { now, since } from "./harness/stopwatch.ts"
import * as Transport from "./harness/transport.ts"

type Parameters = Readonly<Record<"bindings" | "seconds", number>>

/** One binding that runs; the others are registered and stopped, since 200 idle consumers would compute more than the difference. */
const bindingsOf = ({ topic, groupId, parameters }: Round<Parameters>, which: string, arrivals: Arrivals) =>
  Array.from({ length: parameters.bindings }, (_, index) =>
    Binding.make(`fleet-${index}`, {
      ...{ topic, groupId: `${groupId}-${which}-${index}`, value: Serde.bytes, autoStartup: index === 0 },
      naming: TopicName.perGroup,
      retry: RetryPolicy.blocking(),
      handler: ({ value }) => Effect.sync(() => arrivals.add(value))
    })
  )

/** Runs the bindings in a fleet with a hold, which is on another binding. */
const runInFleet = Effect.fnUntraced(function* (
  { brokers, groupId }: Round<Parameters>,
  bindings: ReadonlyArray<Binding.Binding<never>>
): Effect.fn.Return<void, unknown, Scope.Scope> {
  const kafka = Transport.layer({ brokers })
  const topics = { controlTopic: `${groupId}.control`, fleetTopic: `${groupId}.fleet` }
  yield* Effect.scoped(
    Effect.gen(function* () {
      const operator = yield* Layer.build(Fleet.layer(topics).pipe(Layer.provide(kafka)))
      const { createTopics, hold } = Context.get(operator, Fleet.Fleet)
      yield* createTopics
      yield* hold({ binding: "another", groupId, reason: "benchmark" })
    })
  )
  yield* Layer.build(
    bindings
      .map(Binding.layer)
      .reduce((all, one) => Layer.merge(all, one))
      .pipe(Layer.provide(Fleet.layer(topics)), Layer.provide(kafka))
  )
})

/** CPU seconds a minute of a process in which these run, and nothing happens. */
const idleCost = <E>(
  { parameters: { seconds } }: Round<Parameters>,
  arrivals: Arrivals,
  run: Effect.Effect<void, E, Scope.Scope>
) =>
  Effect.gen(function* () {
    yield* run
    yield* arrivals.all("1 minute")
    yield* Effect.sleep((seconds * 1_000) / 6)
    const start = now()
    yield* Effect.sleep(seconds * 1_000)
    const { millis, cpuMicros } = since(start)
    return (cpuMicros / 1_000 / millis) * 60
  }).pipe(Effect.scoped)

const process: Participant<Parameters> = {
  topic: { lifetime: "run", partitions: 6, content: () => ({ records: 6, bytes: 200 }) },
  role: Effect.fnUntraced(function* (round) {
    const [first, second] = [new Arrivals(6), new Arrivals(6)]
    const without = yield* idleCost(round, first, runBindings(round, bindingsOf(round, "alone", first)))
    const within = yield* idleCost(round, second, runInFleet(round, bindingsOf(round, "fleet", second)))
    return { without: [without], within: [within], added: [within - without] }
  })
}

const unit = "CPU s/min"

export const fleet = make({
  name: "fleet",
  header: [
    "one process with a running binding on an empty stretch of 6 partitions (--bindings adds stopped ones), without a fleet and then in one",
    "CPU time of all threads: heartbeats every 5 s, the control topic read to its end, one hold on another binding, no operator"
  ],
  parameters: { bindings: 1, seconds: 60 },
  smoke: { bindings: 2, seconds: 1 },
  participants: { process },
  measures: [
    { participant: "process", series: "without", label: "without a fleet", unit },
    { participant: "process", series: "within", label: "in a fleet", unit },
    { participant: "process", series: "added", label: "added by the fleet", unit, target: medianAtMost(0.6) }
  ]
})
