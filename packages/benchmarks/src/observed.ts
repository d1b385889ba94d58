/** The cost of metrics, log fields and traces for a consumer whose handler does nothing. */
import { Binding, Metrics, RetryPolicy, Serde } from "@eventbus/core"
import { OpenTelemetry } from "@eventbus/observability"
import { Effect, Layer, Logger, References, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import {
  make,
  type Participant,
  type Round,
  ratioAtLeast,
  ratioAtMost,
  type Samples,
  type TopicPlan
} from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"

interface Parameters extends Readonly<Record<string, number>> {
  readonly records: number
  readonly bytes: number
  readonly times: number
}

const topic: TopicPlan<Parameters> = {
  lifetime: "run",
  partitions: 6,
  content: ({ records, bytes }) => ({ records, bytes })
}

/** Reads all records once. */
const read = (round: Round<Parameters>, groupId: string): Effect.Effect<Samples, unknown, Scope.Scope> => {
  const arrivals = new Arrivals(round.parameters.records)
  const binding = Binding.make("observed", {
    topic: round.topic,
    groupId,
    value: Serde.bytes,
    ackMode: "MANUAL",
    retry: RetryPolicy.blocking(),
    handler: ({ value }) => Effect.sync(() => arrivals.add(value))
  })
  return Effect.andThen(Effect.scoped(Effect.andThen(runBindings(round, [binding]), arrivals.all())), arrivals.pace)
}

/** The services that a program keeps for all of its bindings. */
type Around = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.Effect<A, E, Scope.Scope>

/** Measures the last of several runs: a process compiles code during its first ten thousand spans, which is not a cost of a record. */
const consumer = (around: Around): Participant<Parameters> => ({
  topic,
  role: (round) =>
    Effect.gen(function* () {
      for (let time = 1; time < round.parameters.times; time++) yield* read(round, `${round.groupId}-${time}`)
      return yield* read(round, round.groupId)
    }).pipe(around, Effect.scoped)
})

/** Log lines are formatted as for a log collector and then dropped, since their transport has a cost of its own. */
const logged: Around = (effect) =>
  effect.pipe(
    Effect.provideService(References.MinimumLogLevel, "Info"),
    Effect.provide(Logger.layer([Logger.map(Logger.formatJson, () => undefined)]))
  )

const traced =
  (sampleRatio: number): Around =>
  (effect) =>
    Effect.flatMap(
      Layer.build(
        OpenTelemetry.layer({ serviceName: "observed", signals: ["traces"], url: "http://127.0.0.1:9", sampleRatio })
      ),
      (tracing) => logged(Effect.provideContext(effect, tracing))
    )

export const observed = make({
  name: "observed",
  header: [
    "400,000 records of 200 bytes in 6 partitions, none with trace headers; the handler checks the record's number off in an array, and nothing else",
    "off: no metrics, no tracer, no log lines; metrics: metrics and log lines from info on, as everybody has them",
    "traces: both, and OpenTelemetry with 1 % of the records sampled, to a collector that is not there; all: with every record sampled",
    "each process reads the topic five times (--times), and measures the last"
  ],
  parameters: { records: 400_000, bytes: 200, times: 5 },
  smoke: { records: 600, times: 1 },
  rounds: 5,
  participants: {
    off: consumer((effect) => Effect.provideService(effect, Metrics.Enabled, false)),
    metrics: consumer(logged),
    traces: consumer(traced(0.01)),
    all: consumer(traced(1))
  },
  measures: [
    { participant: "metrics", against: "off", hasTarget: true },
    { participant: "traces", against: "metrics", hasTarget: true },
    { participant: "all", against: "metrics", hasTarget: false }
  ].flatMap(({ hasTarget, ...pair }) => [
    { ...pair, series: "rate", unit: "records/s", ...(hasTarget ? { target: ratioAtLeast(0.95) } : {}) },
    { ...pair, series: "cpu", label: "CPU", unit: "µs/record", ...(hasTarget ? { target: ratioAtMost(1.05) } : {}) }
  ])
})
