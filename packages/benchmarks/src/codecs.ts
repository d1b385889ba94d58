/** Records per second of a consumer whose handler does nothing, for each codec against uncompressed batches. */
import { Binding, type ConsumerRecord, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, type Participant, ratioAtLeast } from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"

interface Parameters extends Readonly<Record<string, number>> {
  readonly records: number
  readonly bytes: number
}

const codecs = ["gzip", "snappy", "lz4", "zstd"] as const

const consumer = (codec: ConsumerRecord.Compression): Participant<Parameters> => ({
  topic: { lifetime: "run", partitions: 6, content: ({ records, bytes }) => ({ records, bytes, codec }) },
  role: Effect.fnUntraced(function* (round) {
    const { topic, groupId, parameters } = round
    const arrivals = new Arrivals(parameters.records)
    const binding = Binding.make(codec, {
      ...{ topic, groupId, value: Serde.bytes, ackMode: "MANUAL", retry: RetryPolicy.blocking() },
      handler: ({ value }) => Effect.sync(() => arrivals.add(value))
    })
    yield* Effect.scoped(Effect.andThen(runBindings(round, [binding]), arrivals.all()))
    return yield* arrivals.pace
  })
})

export const codecRates = make({
  name: "codecs",
  header: [
    "400,000 records of 200 bytes of text in 6 partitions, in batches of 16 KiB as Kafka's producer makes them; every handler checks the record's number off",
    "all: ackMode MANUAL, no retry topics"
  ],
  parameters: { records: 400_000, bytes: 200 },
  smoke: { records: 600 },
  participants: Object.fromEntries((["none", ...codecs] as const).map((codec) => [codec, consumer(codec)])),
  measures: [
    ...codecs.map((participant) => ({
      ...{ participant, against: "none", series: "rate", unit: "records/s" },
      target: ratioAtLeast(0.45)
    })),
    ...codecs.map((participant) => ({
      ...{ participant, against: "none", series: "cpu", label: "CPU", unit: "µs/record" }
    }))
  ]
})
