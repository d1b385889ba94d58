/** The request of one fetch from one node. */
import type { OwnedPartition, Ownership } from "../group/ownership.ts"
import { type IsolationLevel, isolationCode } from "../offsets/logOffsets.ts"
import type { Apis } from "../protocol/apis.ts"
import { byTopic } from "../wire/byTopic.ts"
import type { FetchedFrom, SessionRequest } from "./fetchSession.ts"

export interface FetcherOptions {
  readonly topics: ReadonlyArray<string>
  /** Longest time that the broker may hold a fetch while a partition may be resumed. */
  readonly maxWaitMillis: number
  /** Most bytes of one partition of the topic in one fetch. */
  readonly maxBytesOf: (topic: string) => number
  /** The largest record of a compressed batch that is decompressed. */
  readonly maxRecordBytes: number
  readonly isolation: IsolationLevel
}

/** A partition as it was when it was requested. It tells whether an answer is void by now. */
export interface RequestedPartition {
  readonly owned: OwnedPartition
  readonly position: bigint
  readonly seeks: number
  /** Most bytes of its next chunk, fetched or decompressed. */
  readonly maxBytes: number
}

/** True when the partition is still owned and was not moved since it was requested, also not by a later answer of another leader. */
export const isCurrent = (ownership: Ownership, { owned, position, seeks }: RequestedPartition): boolean =>
  ownership.holds(owned) && owned.phase === "fetching" && owned.seeks === seeks && owned.position === position

/** Bytes that one answer decodes at once. Kafka: `fetch.max.bytes`, whose default is larger. */
const maxBytesPerFetch = 10 * 1024 * 1024
/** Smallest share of a partition. With very many partitions a smaller share would cost more requests than it saves memory. */
const minBytesPerPartition = 64 * 1024

/** The partitions to request, in turn: a node fills its answer from the front, so each fetch begins with another partition. */
export const requestedPartitions = (
  options: FetcherOptions,
  ownership: Ownership,
  partitions: ReadonlyArray<OwnedPartition>,
  turn: number
): ReadonlyArray<RequestedPartition> => {
  const first = partitions.length === 0 ? 0 : turn % partitions.length
  // One more chunk may arrive for every partition after it was paused. Together these chunks stay within one answer.
  const share = Math.max(minBytesPerPartition, Math.floor(maxBytesPerFetch / Math.max(1, ownership.activeCount())))
  return [...partitions.slice(first), ...partitions.slice(0, first)].map((owned) => ({
    owned,
    position: owned.position,
    seeks: owned.seeks,
    maxBytes: Math.min(options.maxBytesOf(owned.topic), share)
  }))
}

const positions = (partitions: ReadonlyArray<FetchedFrom>) =>
  byTopic(partitions, ({ partition, offset, maxBytes }) => ({ partition, fetchOffset: offset, maxBytes }))

/** The fields that are in every fetch. `maxWaitTime`: how long the node may hold it while there are no data, in milliseconds. */
const limits = (isolation: IsolationLevel, maxWaitTime: number) => ({
  ...{ maxWaitTime, minBytes: 1, maxBytes: maxBytesPerFetch },
  isolationLevel: isolationCode(isolation)
})

/** The payload of a fetch. `maxWaitTime`: how long the node may hold it while there are no data, in milliseconds. */
export const fetchRequest = (
  isolation: IsolationLevel,
  partitions: ReadonlyArray<FetchedFrom>,
  maxWaitTime: number
): Apis["Fetch"]["payload"] => ({ ...limits(isolation, maxWaitTime), topics: positions(partitions) })

/** The same by the ids of the topics, in a session. */
export const fetchByIdRequest = (
  isolation: IsolationLevel,
  { session, partitions, forgotten }: SessionRequest,
  maxWaitTime: number
): Apis["FetchById"]["payload"] => ({
  ...limits(isolation, maxWaitTime),
  session,
  topics: positions(partitions),
  forgotten: byTopic(forgotten, ({ partition }) => partition)
})
