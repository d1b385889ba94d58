/** The overlap of keys in one partition: a handler that waits 10 ms, one record at a time and by key. */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, type Participant, ratioAtLeast, type TopicPlan } from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"
import { numberOf } from "./harness/kafka.ts"

type Parameters = Readonly<Record<"records" | "warmup" | "sequential" | "keys" | "handlerMillis" | "bytes", number>>

const topic: TopicPlan<Parameters> = {
  lifetime: "run",
  partitions: 1,
  content: ({ warmup, records, bytes, keys }) => ({ records: warmup + records, bytes, keys })
}

const consumer = (
  order: { readonly processingOrder: "partition" } | { readonly processingOrder: "key"; readonly maxInFlight: number }
): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* (round) {
    const { topic, groupId, parameters } = round
    const { warmup, handlerMillis } = parameters
    const records = order.processingOrder === "key" ? parameters.records : parameters.sequential
    const arrivals = new Arrivals(records, warmup)
    const keys = Binding.make("keys", {
      ...{ topic, groupId, value: Serde.bytes, ackMode: "MANUAL", ...order },
      retry: RetryPolicy.blocking(),
      handler: ({ value }) =>
        Effect.andThen(
          Effect.sleep(numberOf(value!) < warmup ? 1 : handlerMillis),
          Effect.sync(() => arrivals.add(value))
        )
    })
    yield* Effect.scoped(Effect.andThen(runBindings(round, [keys]), arrivals.all()))
    return yield* arrivals.pace
  })
})

export const keys = make({
  name: "keys",
  header: [
    "2,000 records with 1,000 keys in one partition, behind 2,000 for warm-up; the handler is Effect.sleep of 10 ms",
    "sequential: processingOrder partition, the first 200 records; 16 and 64: processingOrder key with that maxInFlight; the ratio's ideal is 16 and 64"
  ],
  parameters: { records: 2_000, warmup: 2_000, sequential: 200, keys: 1_000, handlerMillis: 10, bytes: 200 },
  smoke: { records: 20, warmup: 20, sequential: 5, keys: 10 },
  participants: {
    "16": consumer({ processingOrder: "key", maxInFlight: 16 }),
    "64": consumer({ processingOrder: "key", maxInFlight: 64 }),
    sequential: consumer({ processingOrder: "partition" })
  },
  measures: [
    { participant: "16", target: ratioAtLeast(0.95 * 16) },
    { participant: "64", target: ratioAtLeast(0.88 * 64) }
  ].map((measure) => ({ ...measure, against: "sequential", series: "rate", unit: "records/s" }))
})
