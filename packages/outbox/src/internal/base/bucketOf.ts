/** Which bucket an aggregate's events belong to: what order is kept by, and what a node owns. */
import { Partitioner } from "@eventbus/core"
import type { EventEnvelope } from "../../EventEnvelope.ts"

/** Buckets are few enough to lease in one statement and many enough to spread over nodes; the number is part of the stored data. */
export const bucketCount = 64

/** What order is kept by. Events without an aggregate id are in order among themselves, per aggregate type. */
export const aggregateKey = (envelope: EventEnvelope): string =>
  `${envelope.aggregateType}\u0000${envelope.aggregateId ?? ""}`

const encoder = new TextEncoder()

export const bucketOf = (envelope: EventEnvelope): number =>
  Partitioner.partitionFor(encoder.encode(aggregateKey(envelope)), bucketCount)
