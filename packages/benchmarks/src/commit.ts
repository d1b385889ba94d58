/** Records per second when each record is committed before the next one of its partition starts. */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, type Participant, type Round, ratioAtLeast, type TopicPlan } from "./harness/Benchmark.ts"
import { runBindings, runKafkaJs } from "./harness/consumers.ts"
import { countCommitted } from "./harness/kafka.ts"

type Parameters = Readonly<Record<"records" | "bytes", number>>

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
    const { records } = round.parameters
    const arrivals = new Arrivals(records)
    yield* Effect.scoped(Effect.andThen(run(round, arrivals), arrivals.all()))
    const committed = yield* countCommitted(round.brokers, round.groupId, round.topic)
    if (committed !== records) return yield* Effect.fail(`${committed} of ${records} records are committed`)
    return yield* arrivals.pace
  })
})

export const commit = make({
  name: "commit",
  header: [
    "30,000 records of 200 bytes in 6 partitions, each committed before the next of its partition starts",
    "MANUAL_IMMEDIATE: one commit serves all partitions that wait; kafkajs: eachMessage, 6 partitions concurrently, autoCommit off, commitOffsets per message"
  ],
  parameters: { records: 30_000, bytes: 200 },
  smoke: { records: 60 },
  participants: {
    MANUAL_IMMEDIATE: consumer((round, arrivals) => {
      const { topic, groupId } = round
      const commit = Binding.make("commit", {
        ...{ topic, groupId, value: Serde.bytes, ackMode: "MANUAL_IMMEDIATE" },
        retry: RetryPolicy.blocking(),
        handler: ({ value }) => Effect.sync(() => arrivals.add(value))
      })
      return runBindings(round, [commit])
    }),
    "kafkajs eachMessage": consumer((round, arrivals) =>
      runKafkaJs(round, (consumer) => ({
        partitionsConsumedConcurrently: partitions,
        autoCommit: false,
        eachMessage: async ({ topic, partition, message }) => {
          const offset = String(BigInt(message.offset) + 1n)
          // The commit of the last record is part of the round.
          await consumer.commitOffsets([{ topic, partition, offset }])
          arrivals.add(message.value)
        }
      }))
    )
  },
  measures: [
    {
      ...{ participant: "MANUAL_IMMEDIATE", against: "kafkajs eachMessage", series: "rate", unit: "records/s" },
      target: ratioAtLeast(3)
    },
    {
      ...{ participant: "MANUAL_IMMEDIATE", against: "kafkajs eachMessage", series: "cpu" },
      ...{ label: "CPU", unit: "µs/record" }
    }
  ]
})
