/**
 * The requests of a reader: a fetch for each read, outside of any group.
 */
import { Adapter, type Broker, BrokerError, type ConsumerRecord } from "@eventbus/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Cluster, connectionDropped } from "./cluster.ts"
import { lookAt } from "./logFetch.ts"
import type { Connection } from "./network.ts"

export const make = Effect.fnUntraced(function* (
  cluster: Cluster,
  connection: Connection,
  options: Broker.FetchOptions
): Effect.fn.Return<Broker.Reader, never, Scope.Scope> {
  const { clientId } = connection
  const { isolationLevel, maxPartitionFetchBytes, maxRecordBytes } = { ...Adapter.fetchDefaults, ...options }
  const limits = {
    ...{ isolation: isolationLevel, maxBytes: maxPartitionFetchBytes, maxRecordBytes },
    maxRecords: cluster.kernel.settings.maxRecordsPerChunk
  }
  const closed = yield* Effect.acquireRelease(Deferred.make<never, BrokerError.BrokerError>(), (closed) =>
    Deferred.fail(closed, connectionDropped)
  )
  const fetch = ({ topic, partition, offset }: ConsumerRecord.RecordPosition) => {
    const found = cluster.kernel.topics.get(topic)
    if (found === undefined) return Effect.fail(new BrokerError.UnknownTopic({ topic }))
    const log = found.partitions[partition]
    if (log === undefined) return Effect.fail(new BrokerError.UnknownTopic({ topic, partition }))
    return Effect.succeed({ topicId: found.id, ...lookAt(log, offset, limits) })
  }
  return {
    read: (position) =>
      cluster.network
        .request(connection, { operation: "fetch", clientId, topic: position.topic }, () => fetch(position))
        .pipe(Effect.raceFirst(Deferred.await(closed)))
  }
})
