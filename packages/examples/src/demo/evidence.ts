/**
 * The evidence of the database and the cluster at the end: the committed orders, every record of the demo's topics, and the group's
 * committed offsets.
 */
import { Broker, type BrokerError, type ConsumerRecord } from "@eventbus/core"
import { Effect } from "effect"
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
  const records = yield* readToEnd(broker, topics)
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
export const readToEnd = (broker: Broker.Broker["Service"], topics: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const admin = yield* broker.admin
      const { read } = yield* broker.reader()
      const records: Array<Record> = []
      for (const topic of topics) {
        for (const { partition, logStart, logEnd } of yield* admin.topicOffsets(topic)) {
          let offset = logStart
          while (offset < logEnd) {
            const found = yield* read({ topic, partition, offset })
            if (found._tag !== "Fetched")
              return yield* Effect.die(new Error(`${topic}-${partition}@${offset}: ${found._tag}`))
            records.push(...found.chunk.records)
            offset = found.chunk.nextOffset
          }
        }
      }
      return records
    })
  )
