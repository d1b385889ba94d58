/**
 * The evidence of the database and the cluster at the end: the committed orders, every record of the demo's topics, and the group's
 * committed offsets.
 */
import { Broker, type BrokerError, ConsumerRecord } from "@eventbus/core"
import { Effect, Queue } from "effect"
import type { SqlError } from "effect/sql"
import { Checkout } from "./checkout.ts"
import { Cluster, withAdmin } from "./cluster.ts"

type Record = ConsumerRecord.ConsumerRecord

export interface Evidence {
  /** Ids of the orders in the database. */
  readonly placed: ReadonlySet<string>
  readonly orders: ReadonlyArray<Record>
  readonly payments: ReadonlyArray<Record>
  readonly deadLetters: ReadonlyArray<Record>
  /** Copies in the retry topics that the group has not finished. */
  readonly retrying: ReadonlyArray<Record>
  /** Committed offset by partition; a partition without one is missing. */
  readonly committed: ReadonlyMap<number, bigint>
}

export const gather: Effect.Effect<
  Evidence,
  BrokerError.BrokerError | SqlError.SqlError,
  Broker.Broker | Cluster | Checkout
> = Effect.gen(function* () {
  const checkout = yield* Checkout
  yield* checkout.published
  const broker = yield* Broker.Broker
  const { names } = yield* Cluster
  const { topics, committed } = yield* withAdmin(broker, (admin) =>
    Effect.gen(function* () {
      const existing = new Set(yield* admin.listTopics)
      return {
        // The dead letter topic does not exist before the first dead letter.
        topics: [names.orders, names.payments, names.deadLetters, ...names.retries].filter((topic) =>
          existing.has(topic)
        ),
        committed: yield* admin.committedOffsets(names.group, [names.orders, ...names.retries])
      }
    })
  )
  const records = yield* readToEnd(broker, names.audit, topics)
  const of = (topic: string) => records.filter((record) => record.topic === topic)
  const offsets = new Map(committed.map(({ topic, partition, offset }) => [`${topic}-${partition}`, offset]))
  const isOpen = ({ topic, partition, offset }: Record) => offset >= (offsets.get(`${topic}-${partition}`) ?? 0n)
  return {
    placed: yield* checkout.committed,
    orders: of(names.orders),
    payments: of(names.payments),
    deadLetters: of(names.deadLetters),
    retrying: names.retries.flatMap(of).filter(isOpen),
    committed: new Map(
      committed.flatMap(({ topic, partition, offset }) =>
        topic === names.orders ? [[partition, offset] as const] : []
      )
    )
  }
})

/** Every record that the topics hold now. */
const readToEnd = (broker: Broker.Broker["Service"], groupId: string, topics: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const unread = yield* logEnds(broker, topics)
      const session = yield* broker.consumer({ groupId, topics })
      const records: Array<Record> = []
      while (unread.size > 0) {
        const event = yield* Queue.take(session.events)
        if (event._tag === "Assigned") {
          for (const partition of event.partitions) yield* session.seek(partition, partition.logStart)
        }
        if (event._tag === "Fetched") {
          const { topic, partition, nextOffset } = event.chunk
          records.push(...event.chunk.records)
          const key = ConsumerRecord.partitionKey(topic, partition)
          if (nextOffset >= (unread.get(key) ?? 0n)) unread.delete(key)
        }
      }
      return records
    })
  )

/** Log end of each partition that is not empty. */
const logEnds = Effect.fnUntraced(function* (broker: Broker.Broker["Service"], topics: ReadonlyArray<string>) {
  const ends = new Map<string, bigint>()
  for (const topic of topics) {
    for (const { partition, logStart, logEnd } of yield* withAdmin(broker, (admin) => admin.topicOffsets(topic))) {
      if (logEnd > logStart) ends.set(ConsumerRecord.partitionKey(topic, partition), logEnd)
    }
  }
  return ends
})
