/** Reads the newest records of a topic outside of any group, with one fetch from each leader. */
import { Adapter, type Broker, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { failure, Local } from "../../ClientFailure.ts"
import { type AdminContext, existingTopics, partitionsOf } from "../admin/adminContext.ts"
import { byLeader, earliest, latest, listOffsets } from "../offsets/logOffsets.ts"
import type { FetchedPartition } from "../protocol/apis.ts"
import { check } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import { FetchedRange } from "./fetchedRange.ts"
import { fetchRequest } from "./fetchRequest.ts"

/** Bytes of one partition. The broker answers one record batch at least, however large it is. */
const maxPartitionBytes = 256 * 1024

const isolation = "read_committed"

/** The last records of what was fetched, at most `count` of them. A batch that cannot be read ends them. */
const newest = async (fetched: FetchedPartition, from: bigint, count: number) => {
  const { maxRecordBytes } = Adapter.fetchDefaults
  const range = new FetchedRange(fetched, from, isolation, { chunkBytes: maxPartitionBytes, maxRecordBytes })
  let last: ReadonlyArray<ConsumerRecord.ConsumerRecord> = []
  while (!range.isDone) last = [...last, ...(await range.next()).records].slice(-count)
  return last
}

export const topicTail =
  ({ cluster, port }: AdminContext): NonNullable<Broker.Admin["tail"]> =>
  (topic, records) => {
    const read = Effect.gen(function* () {
      const metadata = yield* existingTopics(cluster, [topic])
      const partitions = partitionsOf(metadata, topic)
      const offsetsAt = (at: number) => listOffsets(cluster, metadata, partitions, at, isolation)
      const [starts, ends] = yield* Effect.all([offsetsAt(earliest), offsetsAt(latest)], { concurrency: "unbounded" })
      const from = new Map<number, bigint>()
      for (const { partition } of partitions) {
        const key = ConsumerRecord.partitionKey(topic, partition)
        const [start, end] = [starts.get(key) ?? 0n, ends.get(key) ?? 0n]
        const first = end - BigInt(records)
        if (end > start) from.set(partition, first > start ? first : start)
      }
      const filled = partitions.filter(({ partition }) => from.has(partition))
      const answers = yield* Effect.forEach(
        byLeader(filled, metadata),
        ([node, led]) =>
          Effect.gen(function* () {
            const positions = led.map((at) => ({ ...at, offset: from.get(at.partition)!, maxBytes: maxPartitionBytes }))
            const payload = fetchRequest(isolation, positions, 0)
            const answer = yield* call(yield* cluster.node(node), "Fetch", payload)
            yield* check(answer.errorCode, ...answer.partitions.map(({ errorCode }) => errorCode))
            return answer.partitions
          }),
        { concurrency: "unbounded" }
      )
      return yield* Effect.forEach(answers.flat(), (fetched) =>
        Effect.tryPromise({
          try: () => newest(fetched, from.get(fetched.partition) ?? 0n, records),
          catch: (thrown) => failure(Local.client, String(thrown))
        })
      )
    })
    return Effect.map(port(read, { operation: "read the end of", topic }), (all) => all.flat())
  }
