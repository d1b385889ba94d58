/** Records per second of a consumer whose handler does nothing. */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Kafka } from "@eventbus/kafka"
import { consumer as consumerOf } from "@eventbus/node"
import { Effect, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, type Participant, type Round, ratioAtLeast, ratioAtMost, type TopicPlan } from "./harness/Benchmark.ts"
import { runBindings, runEventBus, runKafkaJs } from "./harness/consumers.ts"

interface Parameters extends Readonly<Record<string, number>> {
  readonly records: number
  readonly bytes: number
}

const partitions = 6
const topic: TopicPlan<Parameters> = {
  lifetime: "run",
  partitions,
  content: ({ records, bytes }) => ({ records, bytes })
}

const consumer = (
  run: (round: Round<Parameters>, arrivals: Arrivals) => Effect.Effect<void, unknown, Scope.Scope>
): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* (round) {
    const arrivals = new Arrivals(round.parameters.records)
    yield* Effect.scoped(Effect.andThen(run(round, arrivals), arrivals.all()))
    return yield* arrivals.pace
  })
})

const record = (layer?: typeof Kafka.layer) =>
  consumer((round, arrivals) =>
    runBindings(
      round,
      [
        Binding.make("record", {
          ...settings(round),
          retry: RetryPolicy.blocking(),
          handler: ({ value }) => Effect.sync(() => arrivals.add(value))
        })
      ],
      layer
    )
  )

const resilient = (layer?: typeof Kafka.layer) =>
  consumer((round, arrivals) =>
    runBindings(
      round,
      [
        Binding.make("resilient", {
          ...settings(round),
          retry: RetryPolicy.tiered({
            nonRetryableExceptions: ["IllegalArgument"],
            skipToTierMapping: { Unavailable: 2 }
          }),
          circuitBreaker: {},
          handler: ({ value }) => Effect.sync(() => arrivals.add(value))
        })
      ],
      layer
    )
  )

/** `MANUAL` merges commits and sends them in the background. */
const settings = ({ topic, groupId }: Round<Parameters>) =>
  ({ topic, groupId, value: Serde.bytes, ackMode: "MANUAL" }) as const

export const consume = make({
  name: "consume",
  header: [
    "400,000 records of 200 bytes in 6 partitions; every handler checks the record's number off in an array, and nothing else",
    "each case in a fresh process in each round, from its first record on, without a warm-up",
    "createEventBus: an async handler of @eventbus/node; kafkajs eachMessage: the same handler",
    "record, promise, createEventBus, chunk: ackMode MANUAL (commits every 200 ms); chunk: maxPollRecords 10,000",
    "record, resilient on Kafka.layer: the same on connections of our own instead of kafkajs's",
    "resilient: as record, with three tiers, classifier lists, circuit breaker and dead letter topic; nothing fails",
    "kafkajs: partitionsConsumedConcurrently 6, its default commits (after each batch); fetches as ours"
  ],
  parameters: { records: 400_000, bytes: 200 },
  smoke: { records: 600 },
  rounds: 5,
  participants: {
    record: record(),
    resilient: resilient(),
    "record on Kafka.layer": record(Kafka.layer),
    "resilient on Kafka.layer": resilient(Kafka.layer),
    promise: consumer((round, arrivals) =>
      runBindings(round, [
        Binding.make("promise", {
          ...settings(round),
          retry: RetryPolicy.blocking(),
          handler: ({ value }) => Effect.promise(async () => arrivals.add(value))
        })
      ])
    ),
    createEventBus: consumer((round, arrivals) =>
      runEventBus(
        round,
        consumerOf({
          ...{ topic: round.topic, groupId: round.groupId, ackMode: "MANUAL", retry: { tiers: [] } },
          handler: async ({ value }) => arrivals.add(value)
        })
      )
    ),
    chunk: consumer((round, arrivals) =>
      runBindings(round, [
        Binding.makeBatch("chunk", {
          ...settings(round),
          maxPollRecords: 10_000,
          retry: RetryPolicy.none,
          handleBatch: ({ deliveries }) =>
            Effect.sync(() => {
              for (const { value } of deliveries) arrivals.add(value)
            })
        })
      ])
    ),
    "kafkajs eachBatch": consumer((round, arrivals) =>
      runKafkaJs(round, {
        partitionsConsumedConcurrently: partitions,
        eachBatch: async ({ batch }) => {
          for (const { value } of batch.messages) arrivals.add(value)
        }
      })
    ),
    "kafkajs eachMessage": consumer((round, arrivals) =>
      runKafkaJs(round, {
        partitionsConsumedConcurrently: partitions,
        eachMessage: async ({ message }) => arrivals.add(message.value)
      })
    )
  },
  measures: [
    ...[
      { participant: "record", against: "kafkajs eachBatch", target: ratioAtLeast(0.88) },
      { participant: "record", against: "kafkajs eachMessage", target: ratioAtLeast(1.4) },
      { participant: "resilient", against: "kafkajs eachBatch", target: ratioAtLeast(0.8) },
      { participant: "resilient", against: "kafkajs eachMessage", target: ratioAtLeast(1.3) },
      { participant: "promise", against: "kafkajs eachMessage", target: ratioAtLeast(1.15) },
      { participant: "createEventBus", against: "kafkajs eachMessage", target: ratioAtLeast(1.3) },
      { participant: "chunk", against: "kafkajs eachBatch", target: ratioAtLeast(0.9) }
    ].map((pair) => ({ ...pair, series: "rate", unit: "records/s" })),
    ...[
      { participant: "record on Kafka.layer", target: ratioAtMost(0.62) },
      { participant: "resilient on Kafka.layer", target: ratioAtMost(0.66) }
    ].map((pair) => ({ ...pair, against: "kafkajs eachBatch", series: "cpu", label: "CPU", unit: "µs/record" })),
    ...["record", "resilient", "promise", "createEventBus", "chunk"].map((participant) => ({
      participant,
      against: "kafkajs eachBatch",
      series: "cpu",
      label: "CPU",
      unit: "µs/record"
    }))
  ]
})
