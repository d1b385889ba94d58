/** What metrics, log fields and traces cost a consumer whose handler costs nothing. */
import { Binding, Metrics, Serde } from "@eventbus/core"
import { OpenTelemetry } from "@eventbus/observability"
import { Effect, Layer, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, type Participant, type Round, ratioAtLeast, type TopicPlan } from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"

interface Parameters extends Readonly<Record<string, number>> {
  readonly records: number
  readonly bytes: number
}

const topic: TopicPlan<Parameters> = {
  lifetime: "run",
  partitions: 6,
  content: ({ records, bytes }) => ({ records, bytes })
}

type Run = Effect.Effect<void, unknown, Scope.Scope>

/** One binding that counts what arrives, run as `observe` says. */
const consumer = (observe: (run: Run) => Run): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* (round: Round<Parameters>) {
    const arrivals = new Arrivals(round.parameters.records)
    const binding = Binding.make("observed", {
      topic: round.topic,
      groupId: round.groupId,
      value: Serde.bytes,
      ackMode: "MANUAL",
      handler: ({ value }) => Effect.sync(() => arrivals.add(value))
    })
    yield* Effect.scoped(Effect.andThen(observe(runBindings(round, [binding])), arrivals.all()))
    return yield* arrivals.pace
  })
})

/** The tracer lives as long as the binding: both end with the scope. */
const traced = (run: Run, sampleRatio: number): Run =>
  Effect.flatMap(
    Layer.build(
      OpenTelemetry.layer({ serviceName: "observed", signals: ["traces"], url: "http://127.0.0.1:9", sampleRatio })
    ),
    (tracing) => Effect.provideContext(run, tracing)
  )

export const observed = make({
  name: "observed",
  header: [
    "400,000 records of 200 bytes in 6 partitions, none with trace headers; the handler checks the record's number off in an array, and nothing else",
    "off: no metrics, no tracer; metrics: as everybody has them",
    "traces: metrics, and OpenTelemetry with 1 % of the records sampled, to a collector that is not there; all: with every record sampled"
  ],
  parameters: { records: 400_000, bytes: 200 },
  rounds: 5,
  participants: {
    off: consumer((run) => Effect.provideService(run, Metrics.Enabled, false)),
    metrics: consumer((run) => run),
    traces: consumer((run) => traced(run, 0.01)),
    all: consumer((run) => traced(run, 1))
  },
  measures: [
    { participant: "metrics", against: "off", target: ratioAtLeast(0.95) },
    { participant: "traces", against: "metrics", target: ratioAtLeast(0.95) },
    { participant: "all", against: "metrics" }
  ].flatMap(({ target, ...pair }) => [
    { ...pair, series: "rate", unit: "records/s", ...(target === undefined ? {} : { target }) },
    { ...pair, series: "cpu", label: "CPU", unit: "µs/record" }
  ])
})
