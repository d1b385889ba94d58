/** The producer of a transactional handler. */
import type { ConsumerRecord } from "@eventbus/core"
import type { Message, TextOrBytes, Topic } from "./Topic.ts"

/**
 * Publishes within the transaction of the record that is being handled. Its records become visible to `read_committed` readers together with the offset of that record, or
 * never. The transaction waits for every publish, also for one that the handler does not await, and one that fails, fails the handler. A publish after the handler has ended is
 * rejected.
 */
export interface TransactionProducer {
  /** Publishes one message, to a topic of `defineTopic` or to a topic by name, whose keys and values are text or bytes. */
  publish(topic: string, message: Message<TextOrBytes, TextOrBytes>): Promise<ConsumerRecord.RecordMetadata>
  /** Publishes one message to a topic with serdes. */
  publish<K, V>(topic: Topic<K, V>, message: Message<NoInfer<K>, NoInfer<V>>): Promise<ConsumerRecord.RecordMetadata>
}
