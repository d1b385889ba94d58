/** What the functions of administration share. */

import type { BrokerError } from "@eventbus/core"
import { ConsumerRecord } from "@eventbus/core"
import { Effect } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import type { PortErrors } from "../connection/portErrors.ts"
import * as Patience from "../connection/retryBackoff.ts"
import { type Isolation, listOffsets } from "../offsets/logBounds.ts"
import type { TopicMetadata } from "../wire/apis.ts"
import { type ClientFailure, check, isCoordinatorFailure, type Subject } from "../wire/errors.ts"

/** How long the controller may take. */
export const timeout = 15_000

const transient = new Set(["NOT_CONTROLLER", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT"])

/** Repeats for some seconds what a moving controller, leader or coordinator cures. */
const settled = <A, R>(effect: Effect.Effect<A, ClientFailure, R>): Effect.Effect<A, ClientFailure, R> =>
  Effect.retry(effect, {
    schedule: Patience.schedule,
    while: ({ type }) => transient.has(type) || isCoordinatorFailure(type)
  })

export interface AdminContext {
  readonly cluster: Cluster
  readonly errors: PortErrors
  /** Runs at the port: repeated while that helps, with its failure as the port's. */
  readonly port: <A>(
    effect: Effect.Effect<A, ClientFailure>,
    subject: Subject
  ) => Effect.Effect<A, BrokerError.BrokerError>
}

export const adminContext = (cluster: Cluster, errors: PortErrors): AdminContext => ({
  cluster,
  errors,
  port: (effect, subject) => errors.map(settled(effect), subject)
})

/** The topics' metadata, with a leader for each partition. */
export const existing = (
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
          leader < 0 ? partitionErrorCode || 5 : 0
        )
      )
    }
    return metadata
  })

/** In partition order. */
export const partitionsOf = (metadata: ReadonlyMap<string, TopicMetadata>, topic: string) =>
  (metadata.get(topic)?.partitionMetadata ?? [])
    .map(({ partitionId }) => ({ topic, partition: partitionId }))
    .sort((a, b) => a.partition - b.partition)

/** Offsets of every partition for some timestamps. */
export const bounds = Effect.fnUntraced(function* (
  cluster: Cluster,
  topic: string,
  timestamps: ReadonlyArray<number>,
  isolation: Isolation = "read_uncommitted"
) {
  const metadata = yield* existing(cluster, [topic])
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
