/** Shared by all administrative functions: retries, metadata, offsets. */
import { type BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { BrokerErrors, Subject } from "../connection/brokerErrors.ts"
import type { Cluster } from "../connection/cluster.ts"
import * as RetryBackoff from "../connection/retryBackoff.ts"
import { type IsolationLevel, listOffsets } from "../offsets/logOffsets.ts"
import type { TopicMetadata } from "../protocol/apis.ts"
import { check, isCoordinatorFailure } from "../wire/failures.ts"

/** Longest time that the controller may take, in milliseconds. */
export const controllerTimeout = 15_000

const transient = new Set(["NOT_CONTROLLER", "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"])

/** Repeats, for about six seconds, failures that end when a controller, leader or coordinator has moved. */
const retryTransient = <A, R>(effect: Effect.Effect<A, ClientFailure, R>): Effect.Effect<A, ClientFailure, R> =>
  Effect.retry(effect, {
    schedule: RetryBackoff.schedule,
    while: ({ type }) => transient.has(type) || isCoordinatorFailure(type)
  })

export interface AdminContext {
  readonly cluster: Cluster
  readonly errors: BrokerErrors
  /** Runs an operation of the port: repeats transient failures, and fails with the port's errors. */
  readonly port: <A>(
    effect: Effect.Effect<A, ClientFailure>,
    subject: Subject
  ) => Effect.Effect<A, BrokerError.BrokerError>
}

export const adminContext = (cluster: Cluster, errors: BrokerErrors): AdminContext => ({
  cluster,
  errors,
  port: (effect, subject) => errors.map(retryTransient(effect), subject)
})

const leaderNotAvailable = 5

/** Metadata of the topics. Fails when a topic does not exist, or when a partition has no leader. */
export const existingTopics = (
  cluster: Cluster,
  topics: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, TopicMetadata>, ClientFailure> =>
  Effect.gen(function* () {
    const metadata = yield* cluster.metadata(topics)
    for (const topic of topics) {
      const found = metadata.get(topic)
      yield* check(
        found?.topicErrorCode,
        ...(found?.partitionMetadata ?? []).map(({ leader, partitionErrorCode }) =>
          leader < 0 ? partitionErrorCode || leaderNotAvailable : 0
        )
      )
    }
    return metadata
  })

/** The partitions of a topic, in order. */
export const partitionsOf = (metadata: ReadonlyMap<string, TopicMetadata>, topic: string) =>
  (metadata.get(topic)?.partitionMetadata ?? [])
    .map(({ partitionId }) => ({ topic, partition: partitionId }))
    .sort((a, b) => a.partition - b.partition)

/** Offsets of every partition of a topic, one for each timestamp. */
export const offsetsOf = Effect.fnUntraced(function* (
  cluster: Cluster,
  topic: string,
  timestamps: ReadonlyArray<number>,
  isolation: IsolationLevel = "read_uncommitted"
) {
  const metadata = yield* existingTopics(cluster, [topic])
  const partitions = partitionsOf(metadata, topic)
  const found = yield* Effect.all(
    timestamps.map((at) => listOffsets(cluster, metadata, partitions, at, isolation)),
    { concurrency: "unbounded" }
  )
  return partitions.map(({ partition }) => ({
    partition,
    offsets: found.map((offsets) => offsets.get(ConsumerRecord.partitionKey(topic, partition)) ?? -1n)
  }))
})
