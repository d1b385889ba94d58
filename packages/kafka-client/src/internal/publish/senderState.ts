/** The options and the state of one sender. */
import type { ConsumerRecord } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { CodecName } from "../codec/codecNames.ts"
import type { BrokerErrors } from "../connection/brokerErrors.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { Identity } from "./partitionLog.ts"
import type { PendingRecords } from "./pendingRecords.ts"
import type { TopicTable } from "./topicTable.ts"

export interface SenderOptions {
  readonly kind: "plain" | "idempotent" | "transactional"
  readonly acks: -1 | 1
  readonly transactionalId: string | undefined
  /** The codec of records that name none. */
  readonly codec: CodecName
  readonly lingerMillis: number
  readonly maxBatchRecords: number
  readonly maxBatchBytes: number
  readonly deliveryTimeoutMillis: number
  readonly requestTimeoutMillis: number
  /** How often to look for new partitions. */
  readonly metadataMaxAgeMillis: number
  /** The request that writes. */
  readonly produceApi: "Produce" | "ProduceAdding"
  /** Requests a producer id; gives that of the current transaction, where there is one. */
  readonly newIdentity: Effect.Effect<Identity, ClientFailure>
  /** Runs before batches of these partitions are sent. */
  readonly beforeSend: (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) => Effect.Effect<void, ClientFailure>
  /** Runs when a batch was written, before its records are settled. */
  readonly onWritten: () => void
}

export interface SenderState {
  readonly cluster: Cluster
  readonly options: SenderOptions
  readonly errors: BrokerErrors
  readonly scope: Scope.Scope
  readonly table: TopicTable
  readonly pending: PendingRecords
  /** Writes a warning to the log. */
  readonly warn: (text: string) => void
  /** One for each node that has send loops, open while the node may have batches. */
  readonly latches: Map<number, Latch.Latch>
  /** Runs one effect at a time: a transaction coordinator refuses requests while it handles another one. */
  readonly oneAtATime: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Batches taken so far, over all partitions. */
  batches: number
  /** The producer id of partitions that have none yet. */
  identity: Identity | undefined
}
