/**
 * Any cluster as a `TestBus` uses it, through the Broker port alone. An error of the cluster ends the test.
 */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TestCluster } from "./testCluster.ts"

/** Longest time for reading a topic to its end. */
const readBound = "60 seconds"

/** The clients live as long as the scope. */
export const make = Effect.fnUntraced(function* (
  broker: Broker.Broker["Service"]
): Effect.fn.Return<TestCluster, BrokerError.BrokerError, Scope.Scope> {
  const admin = yield* broker.admin
  const producer = yield* broker.producer()
  const reader = yield* broker.reader()

  const ends = (topic: string): Effect.Effect<ReadonlyMap<number, bigint>> =>
    admin.topicOffsets(topic).pipe(
      Effect.map((offsets) => new Map(offsets.map(({ partition, logEnd }) => [partition, logEnd]))),
      Effect.catchTag("UnknownTopic", () => Effect.succeed(new Map<number, bigint>())),
      Effect.orDie
    )

  const records = (topic: string): Effect.Effect<ReadonlyArray<ConsumerRecord.ConsumerRecord>> =>
    admin.topicOffsets(topic).pipe(
      Effect.catchTag("UnknownTopic", () => Effect.succeed([])),
      Effect.flatMap((logs) => Effect.forEach(logs, (log) => readToEnd(reader, { topic, ...log }))),
      Effect.map((logs) => logs.flat()),
      Effect.timeout(readBound),
      Effect.orDie
    )

  return {
    createTopic: (topic, partitions) =>
      admin.createTopics([{ topic, partitions }]).pipe(
        Effect.catchTag("TopicExists", () => Effect.void),
        Effect.orDie
      ),
    publish: producer.send,
    records,
    committed: (groupId, topic) =>
      admin.committedOffsets(groupId, [topic]).pipe(
        Effect.map((offsets) => new Map(offsets.map(({ partition, offset }) => [partition, offset]))),
        Effect.orDie
      ),
    ends
  }
})

/** The records that a partition has now. Waits for transactions that have not ended. */
const readToEnd = Effect.fnUntraced(function* (
  reader: Broker.Reader,
  { topic, partition, logStart, logEnd }: Broker.PartitionOffsets & { readonly topic: string }
): Effect.fn.Return<ReadonlyArray<ConsumerRecord.ConsumerRecord>, BrokerError.BrokerError> {
  const records: Array<ConsumerRecord.ConsumerRecord> = []
  let offset = logStart
  while (offset < logEnd) {
    const found = yield* reader.read({ topic, partition, offset })
    if (found._tag !== "Fetched") return yield* Effect.die(new Error(`${topic}-${partition}@${offset}: ${found._tag}`))
    const { nextOffset } = found.chunk
    records.push(...found.chunk.records)
    if (nextOffset === offset) yield* Effect.sleep("20 millis")
    offset = nextOffset
  }
  return records
})
