/** The cost of connected consumers while nothing happens. */
import { Binding, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { Effect, type Scope } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, medianAtMost, type Participant, type Round, type TopicPlan } from "./harness/Benchmark.ts"
import { runBindings, runKafkaJs } from "./harness/consumers.ts"
import { now, since } from "./harness/stopwatch.ts"

type Parameters = Readonly<Record<"consumers" | "seconds", number>>

const topic: TopicPlan<Parameters> = { lifetime: "run", partitions: 6, content: () => ({ records: 6, bytes: 200 }) }

/** Each consumer has its own group, and counts as connected after it has received the topic's records. */
const participant = (
  run: (round: Round<Parameters>, all: ReadonlyArray<Arrivals>) => Effect.Effect<void, unknown, Scope.Scope>
): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* (round) {
    const { consumers, seconds } = round.parameters
    const all = Array.from({ length: consumers }, () => new Arrivals(6))
    yield* run(round, all)
    yield* Effect.forEach(all, (arrivals) => arrivals.all("1 minute"), { discard: true })
    yield* Effect.sleep("3 seconds")
    const start = now()
    yield* Effect.sleep(seconds * 1_000)
    const { millis, cpuMicros } = since(start)
    return { core: [(cpuMicros / 1_000 / millis / consumers) * 100] }
  }, Effect.scoped)
})

export const idle = make({
  name: "idle",
  header: [
    "10 consumers of 10 groups on one empty stretch of 6 partitions, in one process, over 20 s; CPU time of all threads per consumer",
    "fetches wait 100 ms at the broker on both sides"
  ],
  parameters: { consumers: 10, seconds: 20 },
  smoke: { consumers: 2, seconds: 1 },
  participants: {
    binding: participant((round, all) =>
      runBindings(
        round,
        all.map((arrivals, index) =>
          Binding.make(`idle-${index}`, {
            ...{ topic: round.topic, groupId: `${round.groupId}-${index}`, value: Serde.bytes },
            // All groups read one topic, so each needs its own dead letter topic.
            ...{ naming: TopicName.perGroup, retry: RetryPolicy.blocking() },
            handler: ({ value }) => Effect.sync(() => arrivals.add(value))
          })
        )
      )
    ),
    "kafkajs consumer": participant((round, all) =>
      Effect.forEach(
        all,
        (arrivals, index) =>
          runKafkaJs(
            { ...round, groupId: `${round.groupId}-${index}` },
            { eachMessage: async ({ message }) => arrivals.add(message.value) }
          ),
        { discard: true, concurrency: "unbounded" }
      )
    )
  },
  measures: [
    {
      ...{ participant: "binding", against: "kafkajs consumer", series: "core", unit: "% of a core" },
      target: medianAtMost(1)
    }
  ]
})
