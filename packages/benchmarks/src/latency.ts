/** The time from the publisher to the handler, under a load with spare capacity. */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import {
  type Measure,
  make,
  type Participant,
  type Role,
  type Round,
  ratioAtMost,
  type TopicPlan
} from "./harness/Benchmark.ts"
import { runBindings, runKafkaJs } from "./harness/consumers.ts"
import { client, numbered, numberOf } from "./harness/kafka.ts"
import { now, since, wallMillis } from "./harness/stopwatch.ts"

type Parameters = Readonly<Record<"rate" | "seconds" | "warmup" | "bytes", number>>

const partitions = 6
const topic: TopicPlan<Parameters> = { lifetime: "round", partitions }

/** Bare kafkajs in a separate process, one record per send. The value carries the time at which `send` got it. */
const publisher: Role<Parameters> = ({ brokers, topic, parameters }) =>
  Effect.promise(async () => {
    const { rate, seconds, warmup, bytes } = parameters
    const producer = client(brokers).producer()
    await producer.connect()
    const total = rate * (seconds + warmup)
    const sent: Array<Promise<unknown>> = []
    const start = performance.now()
    while (sent.length < total) {
      const due = Math.min(total, ((performance.now() - start) / 1_000) * rate)
      while (sent.length < due) {
        const value = numbered(sent.length, bytes)
        value.writeDoubleBE(wallMillis(), 4)
        sent.push(producer.send({ topic, messages: [{ value, partition: sent.length % partitions }] }))
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await Promise.all(sent)
    await producer.disconnect()
    return {}
  })

const consumer = (
  run: (
    round: Round<Parameters>,
    handle: (value: Uint8Array | null) => void
  ) => Effect.Effect<void, unknown, Scope.Scope>
): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* (round) {
    const { rate, seconds, warmup } = round.parameters
    const arrivals = new Arrivals(rate * (seconds + warmup))
    const millis: Array<number> = []
    let start = now()
    const handle = (value: Uint8Array | null) => {
      const bytes = Buffer.from(value!.buffer, value!.byteOffset, value!.byteLength)
      if (numberOf(bytes) >= rate * warmup) millis.push(wallMillis() - bytes.readDoubleBE(4))
      else start = now()
      arrivals.add(value)
    }
    yield* run(round, handle)
    const { samples } = yield* round.start("publisher")
    yield* samples
    yield* arrivals.all("30 seconds")
    return { millis, cpu: [since(start).cpuMicros / millis.length] }
  }, Effect.scoped)
})

const binding = (ackMode: "MANUAL" | "MANUAL_IMMEDIATE") =>
  consumer((round, handle) => {
    const { topic, groupId } = round
    const latency = Binding.make("latency", {
      ...{ topic, groupId, ackMode, value: Serde.bytes },
      retry: RetryPolicy.blocking(),
      handler: ({ value }) => Effect.sync(() => handle(value))
    })
    return runBindings(round, [latency])
  })

const bounds = [
  { quantile: 0.5, atMost: 1.25 },
  { quantile: 0.99, atMost: 1.3 }
]

export const latency = make({
  name: "latency",
  rounds: 5,
  header: [
    "500 records of 200 bytes per second into 6 partitions for 10 s, after 3 s of warm-up; from send to the handler's start",
    "the publisher is a bare kafkajs producer in its own process, on all sides; consumers fetch alike (see consume)"
  ],
  parameters: { rate: 500, seconds: 10, warmup: 3, bytes: 200 },
  smoke: { rate: 50, seconds: 1, warmup: 1 },
  helpers: { publisher },
  participants: {
    MANUAL: binding("MANUAL"),
    MANUAL_IMMEDIATE: binding("MANUAL_IMMEDIATE"),
    "kafkajs eachMessage": consumer((round, handle) =>
      runKafkaJs(round, {
        partitionsConsumedConcurrently: partitions,
        eachMessage: async ({ message }) => handle(message.value)
      })
    )
  },
  measures: ["MANUAL", "MANUAL_IMMEDIATE"].flatMap((participant): ReadonlyArray<Measure> => {
    const against = "kafkajs eachMessage"
    return [
      ...bounds.map(({ quantile, atMost }) => ({
        ...{ participant, against, quantile, label: `p${quantile * 100}`, series: "millis", unit: "ms" },
        target: ratioAtMost(atMost)
      })),
      { participant, against, series: "cpu", label: "CPU", unit: "µs/record" }
    ]
  })
})
