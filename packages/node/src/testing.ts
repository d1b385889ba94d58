/**
 * A Kafka cluster in memory, for tests of a bus. It needs the package `@eventbus/testkit`.
 *
 * ```ts
 * import { consumer, createEventBus, Serde } from "@eventbus/node"
 * import { memoryKafka } from "@eventbus/node/testing"
 *
 * const kafka = memoryKafka({ topics: { orders: 1 } })
 * const handled: Array<string> = []
 * const bus = createEventBus({
 *   kafka,
 *   signals: [],
 *   log: "off",
 *   consumers: {
 *     orders: consumer({ topic: "orders", groupId: "billing", value: Serde.string, handler: ({ value }) => void handled.push(value) })
 *   }
 * })
 * await bus.start()
 * await bus.publish("orders", { value: "o-1" })
 * await bus.stop()
 * await kafka.close()
 * ```
 */
import type { ConsumerRecord } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { KafkaConnection } from "./KafkaOptions.ts"

/** Options of a cluster in memory. */
export interface MemoryKafkaOptions extends MemoryBroker.Options {
  /** Topics to create, with their numbers of partitions. Default: none. */
  readonly topics?: { readonly [topic: string]: number }
}

/** A cluster in memory. Buses that are given it share it, one after the other or at once. */
export interface MemoryKafka extends KafkaConnection {
  /** Creates a topic. Default: one partition. */
  readonly createTopic: (topic: string, partitions?: number) => Promise<void>
  /** The records of a topic that a `read_committed` reader gets, partition by partition. None for a topic that does not exist. */
  readonly records: (topic: string) => Promise<ReadonlyArray<ConsumerRecord.ConsumerRecord>>
  /** The committed offset of a group. Undefined without one. */
  readonly committed: (groupId: string, topic: string, partition: number) => Promise<bigint | undefined>
  /** Ends the cluster. Stop its buses first. */
  readonly close: () => Promise<void>
}

/** Makes a cluster in memory. It takes time as it passes. */
export const memoryKafka = ({ topics = {}, ...options }: MemoryKafkaOptions = {}): MemoryKafka => {
  const scope = Scope.makeUnsafe()
  const memory = Effect.runSync(Scope.provide(MemoryBroker.make(options), scope))
  for (const [topic, partitions] of Object.entries(topics)) Effect.runSync(memory.createTopic(topic, { partitions }))
  const records = Effect.fnUntraced(function* (topic: string) {
    const partitions = Array.from({ length: yield* memory.partitionCount(topic) }, (_, partition) => partition)
    return (yield* Effect.forEach(partitions, (partition) => memory.log(topic, partition))).flat()
  })
  return {
    broker: memory.broker,
    createTopic: (topic, partitions = 1) => Effect.runPromise(memory.createTopic(topic, { partitions })),
    records: (topic) => Effect.runPromise(records(topic)),
    committed: (groupId, topic, partition) => Effect.runPromise(memory.committed(groupId, topic, partition)),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
