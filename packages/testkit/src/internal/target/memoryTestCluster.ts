/**
 * The in-memory cluster as a `TestBus` uses it: by direct access, so that faults and outages never affect the test itself.
 */
import { BrokerError, Partitioner } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type * as MemoryBroker from "../../MemoryBroker.ts"
import type { TestCluster } from "./testCluster.ts"

export const make = (memory: MemoryBroker.Service): TestCluster => {
  /** Records without a key go to the partitions in turn. */
  let turn = 0

  const perPartition = Effect.fnUntraced(function* <A>(
    topic: string,
    look: (partition: number) => Effect.Effect<A>
  ): Effect.fn.Return<ReadonlyArray<A>> {
    return yield* Effect.forEach(Array.from({ length: yield* memory.partitionCount(topic) }).keys(), look)
  })

  return {
    createTopic: Effect.fnUntraced(function* (topic, partitions) {
      if ((yield* memory.partitionCount(topic)) === 0) yield* memory.createTopic(topic, { partitions })
    }),
    publish: Effect.fnUntraced(function* (record) {
      const { topic, key, value, headers, timestamp } = record
      const partitions = yield* memory.partitionCount(topic)
      const partition =
        record.partition ?? (key === null ? turn++ % partitions : Partitioner.partitionFor(key, partitions))
      if (!(partition < partitions)) return yield* new BrokerError.UnknownTopic({ topic })
      const appended = { key, value, headers: headers ?? [], ...(timestamp === undefined ? {} : { timestamp }) }
      const offset = yield* memory.append(topic, partition, [appended])
      return { topic, partition, offset }
    }),
    records: (topic) =>
      Effect.map(
        perPartition(topic, (partition) => memory.log(topic, partition)),
        (logs) => logs.flat()
      ),
    committed: Effect.fnUntraced(function* (groupId, topic) {
      const offsets = yield* perPartition(topic, (partition) => memory.committed(groupId, topic, partition))
      return new Map(
        offsets.flatMap((offset, partition) => (offset === undefined ? [] : [[partition, offset] as const]))
      )
    }),
    ends: (topic) =>
      Effect.map(
        perPartition(topic, (partition) => memory.offsets(topic, partition)),
        (offsets) => new Map(offsets.map(({ partition, logEnd }) => [partition, logEnd]))
      )
  }
}
