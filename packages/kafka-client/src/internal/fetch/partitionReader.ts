/** The port's reader: reads partitions by position, outside of any group, with one fetch from the partition's leader at a time. */
import { Adapter, type Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { failure, Local } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import { adminContext } from "../admin/adminContext.ts"
import type { BrokerErrors } from "../connection/brokerErrors.ts"
import { type Cluster, connect } from "../connection/cluster.ts"
import type { SecuredOptions } from "../connection/security.ts"
import { fetchTopicIds } from "../connection/topicIds.ts"
import { logBounds } from "../offsets/logOffsets.ts"
import type { FetchedPartition } from "../protocol/apis.ts"
import { check, failureOfCode } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import { FetchedRange, reportOf } from "./fetchedRange.ts"
import { fetchRequest } from "./fetchRequest.ts"

/** Kafka's default of `fetch.max.wait.ms`. Nothing waits for data here, but a node needs some time for those in remote storage. */
const maxWaitMillis = 500

/** The rest of a fetched range that did not fit into one chunk, because it was compressed. */
interface Rest extends ConsumerRecord.RecordPosition {
  readonly topicId: string | undefined
  readonly range: FetchedRange
}

interface Reading {
  readonly cluster: Cluster
  readonly options: Required<Omit<Broker.FetchOptions, "clientId">>
  /** Node ids by partition key. */
  readonly leaders: Map<string, number>
  /** That of the last read, whichever partition it was in: it bounds the memory. */
  rest: Rest | undefined
  isClosed: boolean
}

const keyOf = ({ topic, partition }: ConsumerRecord.TopicPartition) => ConsumerRecord.partitionKey(topic, partition)

/** A failure that new metadata may cure. */
const moved = (detail: string) => failure("NOT_LEADER_OR_FOLLOWER", detail)

/** The node id of the leader; undefined for a partition that does not exist, and -1 while there is none. */
const leaderOf = Effect.fnUntraced(function* ({ cluster, leaders }: Reading, at: ConsumerRecord.TopicPartition) {
  const known = leaders.get(keyOf(at))
  if (known !== undefined) return known
  const found = (yield* cluster.metadata([at.topic])).get(at.topic)
  yield* check(found?.topicErrorCode)
  for (const { partitionId, leader } of found?.partitionMetadata ?? [])
    leaders.set(keyOf({ topic: at.topic, partition: partitionId }), leader)
  return leaders.get(keyOf(at))
})

const topicIdOf = (broker: NodeClient, topic: string) =>
  Effect.map(fetchTopicIds(broker, [topic]), (ids) => ids.get(topic))

/** Keeps the rest of a range for the next read, in place of another one. */
const keep = (reading: Reading, rest: Rest): void => {
  reading.rest?.range.close()
  reading.rest = reading.isClosed ? undefined : rest
  if (reading.isClosed) rest.range.close()
}

const takeRest = (reading: Reading, { topic, partition, offset }: ConsumerRecord.RecordPosition): Rest | undefined => {
  const { rest } = reading
  if (rest?.topic !== topic || rest.partition !== partition || rest.offset !== offset) return undefined
  reading.rest = undefined
  return rest
}

/** The next chunk of a range, which is kept when it is not done. Not interrupted, since a range that is being read cannot be closed. */
const nextOf = (reading: Reading, position: ConsumerRecord.RecordPosition, rest: Omit<Rest, "offset">) =>
  Effect.tryPromise({
    try: async (): Promise<Broker.ReadResult> => {
      const { topic, partition, topicId, range } = rest
      const { records, nextOffset, bytes, unreadable } = await range.next()
      if (unreadable !== undefined && nextOffset === position.offset)
        return { _tag: "Unreadable", topicId, ...reportOf(unreadable, position, nextOffset) }
      if (!range.isDone) keep(reading, { ...rest, offset: nextOffset })
      const chunk = { topic, partition, records, nextOffset, highWatermark: range.visibleEnd, bytes }
      return { _tag: "Fetched", topicId, chunk }
    },
    catch: (thrown) => failure(Local.client, String(thrown))
  }).pipe(Effect.uninterruptible)

/** Handles the answer of a leader. */
const resultOf = Effect.fnUntraced(function* (
  reading: Reading,
  position: ConsumerRecord.RecordPosition,
  broker: NodeClient,
  fetched: FetchedPartition
) {
  const { topic, partition, offset } = position
  const { isolationLevel, maxPartitionFetchBytes: chunkBytes, maxRecordBytes } = reading.options
  const failed = failureOfCode(fetched.errorCode)
  // Metadata tell whether the partition was deleted.
  if (failed?.type === "UNKNOWN_TOPIC_OR_PARTITION") return yield* Effect.fail(moved("it does not know the partition"))
  const isOutOfRange = failed?.type === "OFFSET_OUT_OF_RANGE"
  if (failed !== undefined && !isOutOfRange) return yield* Effect.fail(failed)
  // After the fetch, and from the node that answered it: the records are of the topic with this id.
  const topicId = yield* topicIdOf(broker, topic)
  if (!isOutOfRange) {
    const range = new FetchedRange(fetched, offset, isolationLevel, { chunkBytes, maxRecordBytes })
    return yield* nextOf(reading, position, { topic, partition, topicId, range })
  }
  const { logStart, logEnd } = yield* logBounds(reading.cluster, position, isolationLevel)
  if (offset >= logStart && offset <= logEnd) return yield* Effect.fail(moved("it does not have the position yet"))
  const result: Broker.ReadResult = {
    ...{ _tag: "OutOfRange", topicId, topic, partition },
    ...{ position: offset, logStart, logEnd }
  }
  return result
})

/** Reads one chunk; undefined when the partition does not exist. */
const readAt = Effect.fnUntraced(
  function* (reading: Reading, position: ConsumerRecord.RecordPosition) {
    const rest = takeRest(reading, position)
    if (rest !== undefined) return yield* nextOf(reading, position, rest)
    const { cluster, options } = reading
    const leader = yield* leaderOf(reading, position)
    if (leader === undefined) return undefined
    const broker = yield* cluster.node(leader)
    const { isolationLevel, maxPartitionFetchBytes: maxBytes } = options
    const payload = fetchRequest(isolationLevel, [{ ...position, maxBytes }], maxWaitMillis)
    const answer = yield* call(broker, "Fetch", payload)
    yield* check(answer.errorCode)
    return yield* resultOf(reading, position, broker, answer.partitions[0]!)
  },
  (read, { leaders }, position) => Effect.tapError(read, () => Effect.sync(() => leaders.delete(keyOf(position))))
)

/** Connects. Reads until the scope closes. */
export const makePartitionReader = Effect.fnUntraced(function* (
  secured: SecuredOptions,
  errors: BrokerErrors,
  options: Broker.FetchOptions
) {
  const cluster = yield* errors.map(connect(secured, options.clientId), { operation: "connect" })
  const { port } = adminContext(cluster, errors)
  const reading: Reading = {
    ...{ cluster, options: { ...Adapter.fetchDefaults, ...options } },
    ...{ leaders: new Map(), rest: undefined, isClosed: false }
  }
  const wasClosed = errors.of(failure(Local.connection, "the reader was closed"), { operation: "read" })
  const closed = yield* Effect.acquireRelease(Deferred.make<never, BrokerError.BrokerError>(), (closed) => {
    reading.isClosed = true
    reading.rest?.range.close()
    return Deferred.fail(closed, wasClosed)
  })
  const reader: Broker.Reader = {
    read: (position) =>
      port(readAt(reading, position), { operation: "read", topic: position.topic }).pipe(
        Effect.flatMap((found) => {
          const { topic, partition } = position
          return found === undefined
            ? Effect.fail(new BrokerError.UnknownTopic({ topic, partition }))
            : Effect.succeed(found)
        }),
        Effect.raceFirst(Deferred.await(closed))
      )
  }
  return reader
})
