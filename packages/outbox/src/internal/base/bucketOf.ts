/** Maps an aggregate to its bucket. Order is kept within a bucket, and a node leases buckets. */
import { Partitioner } from "@eventbus/core"
import type { EventEnvelope } from "./envelope.ts"

/**
 * The number of buckets: few enough to lease in one statement, many enough to spread over nodes. Rows store their bucket, so the
 * number cannot change while rows are pending.
 */
export const bucketCount = 64

/** The key that order is kept by. Events without an aggregate id share one key per aggregate type. */
export const aggregateKey = (envelope: EventEnvelope): string =>
  `${envelope.aggregateType}\u0000${envelope.aggregateId ?? ""}`

const encoder = new TextEncoder()

/** The bucket of an event's aggregate, from 0 to 63. */
export const bucketOf = (envelope: EventEnvelope): number =>
  Partitioner.partitionFor(encoder.encode(aggregateKey(envelope)), bucketCount)
