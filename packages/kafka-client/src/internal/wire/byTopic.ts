/** Groups partitions by topic, as Kafka's requests list them. */
import type { ConsumerRecord } from "@eventbus/core"

export const byTopic = <P extends ConsumerRecord.TopicPartition, A>(
  partitions: ReadonlyArray<P>,
  entry: (partition: P) => A
): ReadonlyArray<{ readonly topic: string; readonly partitions: ReadonlyArray<A> }> => {
  const topics = new Map<string, Array<A>>()
  for (const partition of partitions) {
    const entries = topics.get(partition.topic)
    if (entries === undefined) topics.set(partition.topic, [entry(partition)])
    else entries.push(entry(partition))
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }))
}
