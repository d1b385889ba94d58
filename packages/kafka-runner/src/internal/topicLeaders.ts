/** Asks a cluster which node leads which partition. */
import { Effect } from "effect"
import { Kafka, logLevel } from "kafkajs"

/** Node ids by partition, as a broker knows them on the brokers' own plain-text listener. */
export const topicLeaders = (broker: string, topic: string): Effect.Effect<ReadonlyArray<number>> =>
  Effect.promise(async () => {
    const admin = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] }).finally(() => admin.disconnect())
    const partitions = topics.flatMap((found) => found.partitions)
    return partitions.toSorted((a, b) => a.partitionId - b.partitionId).map(({ leader }) => leader)
  })
