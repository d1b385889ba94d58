/** The bare client, for tests that publish to a cluster and read it without any code of the connector. */
import { Effect } from "effect"
import { type ConsumerConfig, Kafka, type KafkaMessage, logLevel } from "kafkajs"

export interface Seen {
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly value: string
  /** As text; of a header that repeats, the first value. */
  readonly header: (name: string) => string | undefined
}

const clientOf = (brokers: ReadonlyArray<string>) =>
  new Kafka({ clientId: "bare", brokers: [...brokers], logLevel: logLevel.NOTHING })

/** Sends texts to a topic, in order, each once, acknowledged by all replicas. The key of a record is its value. */
export const publisher = (brokers: ReadonlyArray<string>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const producer = clientOf(brokers).producer({ allowAutoTopicCreation: false, idempotent: true })
        await producer.connect()
        return producer
      }),
      (producer) => Effect.promise(() => producer.disconnect())
    ),
    (producer) => (topic: string, values: ReadonlyArray<string>) =>
      Effect.promise(() => producer.send({ topic, acks: -1, messages: values.map((value) => ({ key: value, value })) }))
  )

const seenOf = (topic: string, partition: number, { offset, value, headers }: KafkaMessage): Seen => ({
  topic,
  partition,
  offset,
  value: value?.toString() ?? "",
  header: (name) => {
    const found = headers?.[name]
    return (Array.isArray(found) ? found[0] : found)?.toString()
  }
})

/** Reads topics that exist from their beginning, in a group of its own, while the Scope is open. The array grows; each record of the log is in it once. */
export const observer = (brokers: ReadonlyArray<string>, groupId: string, topics: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const seen: Array<Seen> = []
    const positions = new Map<string, bigint>()
    yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const consumer = clientOf(brokers).consumer({ groupId, maxWaitTimeInMs: 200 })
        await consumer.connect()
        await consumer.subscribe({ topics: [...topics], fromBeginning: true })
        await consumer.run({
          eachBatch: async ({ batch }) => {
            const place = `${batch.topic}/${batch.partition}`
            for (const message of batch.messages) {
              // The client fetches again from where it was when its connection breaks.
              if (BigInt(message.offset) < (positions.get(place) ?? 0n)) continue
              positions.set(place, BigInt(message.offset) + 1n)
              seen.push(seenOf(batch.topic, batch.partition, message))
            }
          }
        })
        return consumer
      }),
      (consumer) => Effect.promise(() => consumer.disconnect())
    )
    return seen as ReadonlyArray<Seen>
  })

/** Messages that a member handles at most before it commits: what is in flight when the group rebalances. */
export const commitThreshold = 10

/**
 * A member of a group as most programs have it: one message after the other, committed every `commitThreshold` messages and at the end of a batch. It leaves the group with the Scope, or
 * earlier. `settings` are those of kafkajs.
 */
export const join = (
  brokers: ReadonlyArray<string>,
  groupId: string,
  topics: ReadonlyArray<string>,
  onMessage: (seen: Seen) => void,
  settings: Partial<ConsumerConfig> = {}
) =>
  Effect.gen(function* () {
    let owned: ReadonlyArray<string> = []
    let joins = 0
    const consumer = clientOf(brokers).consumer({ groupId, maxWaitTimeInMs: 200, ...settings })
    const leave = yield* Effect.cached(Effect.promise(() => consumer.disconnect()))
    yield* Effect.acquireRelease(
      Effect.promise(async () => {
        await consumer.connect()
        await consumer.subscribe({ topics: [...topics], fromBeginning: true })
        consumer.on("consumer.group_join", ({ payload: { memberAssignment } }) => {
          joins++
          owned = Object.entries(memberAssignment).flatMap(([topic, all]) => all.map((each) => `${topic}/${each}`))
        })
        await consumer.run({
          autoCommitThreshold: commitThreshold,
          eachMessage: async ({ topic, partition, message }) => onMessage(seenOf(topic, partition, message))
        })
      }),
      () => leave
    )
    return { owned: () => owned, joins: () => joins, leave }
  })
