/**
 * Any cluster as a `TestBus` uses it, through the Broker port alone. An error of the cluster ends the test.
 */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import { Effect, Queue, type Scope } from "effect"
import type { TestCluster } from "./testCluster.ts"

/** Longest time for reading a topic to its end. */
const readBound = "60 seconds"

/** The clients live as long as the scope. */
export const make = Effect.fnUntraced(function* (
  broker: Broker.Broker["Service"]
): Effect.fn.Return<TestCluster, BrokerError.BrokerError, Scope.Scope> {
  const admin = yield* broker.admin
  const producer = yield* broker.producer()
  let reads = 0

  const ends = (topic: string): Effect.Effect<ReadonlyMap<number, bigint>> =>
    admin.topicOffsets(topic).pipe(
      Effect.map((offsets) => new Map(offsets.map(({ partition, logEnd }) => [partition, logEnd]))),
      Effect.catchTag("UnknownTopic", () => Effect.succeed(new Map<number, bigint>())),
      Effect.orDie
    )

  /** Each read uses a new group, which is deleted afterwards. */
  const records = Effect.fnUntraced(function* (topic: string) {
    const logEnds = yield* ends(topic)
    if (logEnds.size === 0) return []
    const groupId = `eventbus-testkit-${crypto.randomUUID()}-${++reads}`
    const found = yield* Effect.scoped(readToEnd(broker, topic, groupId, logEnds)).pipe(
      Effect.timeout(readBound),
      Effect.orDie
    )
    yield* Effect.ignore(admin.deleteGroups([groupId]))
    return found
  })

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

const readToEnd = Effect.fnUntraced(function* (
  broker: Broker.Broker["Service"],
  topic: string,
  groupId: string,
  ends: ReadonlyMap<number, bigint>
): Effect.fn.Return<ReadonlyArray<ConsumerRecord.ConsumerRecord>, BrokerError.BrokerError, Scope.Scope> {
  const session = yield* broker.consumer({ groupId, topics: [topic] })
  const records: Array<ConsumerRecord.ConsumerRecord> = []
  const positions = new Map<number, bigint>()
  while (Array.from(ends).some(([partition, end]) => (positions.get(partition) ?? 0n) < end)) {
    const event = yield* Queue.take(session.events)
    if (event._tag === "Assigned") {
      for (const { topic, partition, logStart } of event.partitions) {
        positions.set(partition, logStart)
        yield* session.seek({ topic, partition }, logStart)
      }
    }
    if (event._tag === "Fetched") {
      records.push(...event.chunk.records)
      positions.set(event.chunk.partition, event.chunk.nextOffset)
    }
  }
  return records.sort((a, b) => a.partition - b.partition || (a.offset < b.offset ? -1 : 1))
})
