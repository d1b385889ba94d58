/** The cluster of a run and its topics. It uses the bare client, so that the measured code does not prepare its own measurement. */
import type { ConsumerRecord } from "@eventbus/core"
import { RealKafka, type RealKafkaError } from "@eventbus/kafka-runner"
import { Effect, Schedule, type Scope } from "effect"
import { Kafka, logLevel } from "kafkajs"
import type { Content } from "./Benchmark.ts"
import * as Transport from "./transport.ts"

/** The cluster in `KAFKA_BROKERS`; without it, a new broker that ends with the scope. */
export const brokers: Effect.Effect<ReadonlyArray<string>, RealKafkaError.RealKafkaError, Scope.Scope> = Effect.suspend(
  () => {
    const given = process.env.KAFKA_BROKERS
    return given === undefined
      ? Effect.map(RealKafka.start(), (cluster) => cluster.bootstrap)
      : Effect.succeed(given.split(",").map((broker) => broker.trim()))
  }
)

export const client = (brokers: ReadonlyArray<string>): Kafka =>
  new Kafka({ clientId: "benchmark", brokers: [...brokers], logLevel: logLevel.NOTHING })

export const createTopic = (brokers: ReadonlyArray<string>, topic: string, numPartitions: number) =>
  withAdmin(brokers, (admin) => admin.createTopics({ topics: [{ topic, numPartitions }], waitForLeaders: true }))

export const deleteTopic = (brokers: ReadonlyArray<string>, topic: string) =>
  withAdmin(brokers, (admin) => admin.deleteTopics({ topics: [topic] }))

/** Number of records in the topic, over all partitions. */
export const countRecords = (brokers: ReadonlyArray<string>, topic: string) =>
  withAdmin(brokers, async (admin) =>
    (await admin.fetchTopicOffsets(topic)).reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0)
  )

/** The same, repeatedly over one connection, so that the count costs the measured process little; 0 for a missing topic. */
export const countingRecords = (brokers: ReadonlyArray<string>, topic: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const admin = client(brokers).admin()
        await admin.connect()
        return admin
      }),
      (admin) => Effect.promise(() => admin.disconnect())
    ),
    (admin) =>
      Effect.orElseSucceed(
        Effect.map(
          Effect.tryPromise(() => admin.fetchTopicOffsets(topic)),
          (offsets) => offsets.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0)
        ),
        () => 0
      )
  )

/** Number of records of the topic that the group has committed, over all partitions. */
export const countCommitted = (brokers: ReadonlyArray<string>, groupId: string, topic: string) =>
  withAdmin(brokers, async (admin) =>
    (await admin.fetchOffsets({ groupId, topics: [topic] }))
      .flatMap(({ partitions }) => partitions)
      .reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0)
  )

/** kafkajs does not wait for a new topic on a busy machine, so the request is repeated. */
const topicRetry = Schedule.max([Schedule.spaced("500 millis"), Schedule.recurs(10)])

const withAdmin = <A>(brokers: ReadonlyArray<string>, use: (admin: ReturnType<Kafka["admin"]>) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.promise(async () => {
      const admin = client(brokers).admin()
      await admin.connect()
      return admin
    }),
    (admin) =>
      Effect.orDie(
        Effect.retry(
          Effect.tryPromise(() => use(admin)),
          topicRetry
        )
      ),
    (admin) => Effect.promise(() => admin.disconnect())
  )

/** A value of the given size that starts with its number. */
export const numbered = (number: number, bytes: number): Buffer => {
  const value = Buffer.alloc(bytes, "x")
  value.writeUInt32BE(number)
  return value
}

export const numberOf = (value: Uint8Array): number =>
  ((value[0]! << 24) | (value[1]! << 16) | (value[2]! << 8) | value[3]!) >>> 0

/** Idempotent: a broker may refuse some partitions of a new topic, and kafkajs then repeats the whole request. */
const filler = (brokers: ReadonlyArray<string>) =>
  client(brokers).producer({ idempotent: true, maxInFlightRequests: 1 })

const maxBatchBytes = 750_000
const maxSendBytes = 4_000_000

/** Writes the content of a topic in large batches, with partitions in rotation unless the content has keys. */
export const fill = (brokers: ReadonlyArray<string>, topic: string, partitions: number, content: Content) =>
  Effect.promise(async () => {
    const producer = filler(brokers)
    await producer.connect()
    // One send has a batch for each partition, and a batch must fit into max.message.bytes.
    const batch = Math.ceil(
      Math.min(1_000 * partitions, (maxBatchBytes / content.bytes) * partitions, maxSendBytes / content.bytes)
    )
    for (let from = 0; from < content.records; from += batch) {
      const messages = Array.from({ length: Math.min(batch, content.records - from) }, (_, index) => {
        const number = from + index
        const value = numbered(number, content.bytes)
        return content.keys === undefined
          ? { value, partition: number % partitions }
          : { value, key: `key-${number % content.keys}` }
      })
      await producer.send({ topic, messages })
    }
    await producer.disconnect()
  })

/** The size of batches that Kafka's own producer makes by default. */
const defaultBatchBytes = 16 * 1024

/** A value of the given size that starts with its number, and goes on with text that repeats itself as events do. */
const textOf = (number: number, bytes: number): Buffer => {
  const value = numbered(number, bytes)
  const text = `{"orderId":"${(number * 7_919) % 1_000_003}","customer":"c-${(number * 31) % 10_007}","total":${(number * 17) % 997}.5,"city":"Lisbon","note":"${(number * 2_654_435_761).toString(36)}"}`
  value.write(text.repeat(Math.ceil(bytes / text.length)), 4)
  return value
}

/** Writes the content of a topic in a codec. The bare client has only gzip, so the connector's producer writes it, in this process, which measures nothing. */
export const fillInCodec = (
  brokers: ReadonlyArray<string>,
  topic: string,
  partitions: number,
  { records, bytes }: Content,
  codec: ConsumerRecord.Compression
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { sendAll } = yield* Transport.make({ brokers }).producer({
        compression: codec,
        maxBatchBytes: defaultBatchBytes
      })
      const step = 12_000
      for (let from = 0; from < records; from += step) {
        const numbers = Array.from({ length: Math.min(step, records - from) }, (_, index) => from + index)
        yield* sendAll(
          numbers.map((number) => ({ topic, key: null, value: textOf(number, bytes), partition: number % partitions }))
        )
      }
    })
  ).pipe(Effect.orDie)

/** Writes records into a retry topic, all of them published at this moment. */
export const fillTier = (brokers: ReadonlyArray<string>, topic: string, partitions: number, content: Content) => {
  const published = Date.now()
  return fillRetryTopic(brokers, topic, partitions, content, () => ({ published, attempt: 1 }))
}

/** Writes records into a retry topic, in batches of 2,000. `told`: what each says about its delivery, asked when its batch is sent. */
export const fillRetryTopic = (
  brokers: ReadonlyArray<string>,
  topic: string,
  partitions: number,
  content: Content,
  told: (number: number) => { readonly published: number; readonly attempt: number }
) =>
  Effect.promise(async () => {
    const producer = filler(brokers)
    await producer.connect()
    const headersOf = (number: number) => {
      const { published, attempt } = told(number)
      return {
        "x-eventbus-retry-timestamp": String(published),
        "x-eventbus-retry-tier": "1",
        "x-eventbus-retry-attempt": String(attempt)
      }
    }
    const batch = 2_000
    for (let from = 0; from < content.records; from += batch) {
      const messages = Array.from({ length: Math.min(batch, content.records - from) }, (_, index) => ({
        value: numbered(from + index, content.bytes),
        partition: (from + index) % partitions,
        headers: headersOf(from + index)
      }))
      await producer.send({ topic, acks: -1, messages })
    }
    await producer.disconnect()
  })
