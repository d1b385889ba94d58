/** The body of a Produce request, which is the same in v3 to v7. */

import { type Body, headerRoom } from "../../Transport.ts"
import { headerBytes, writeBatch, writeHeader } from "../batch/recordBatch.ts"
import { plainBatch, type SizedBatch } from "./compressedBatches.ts"
import type { Batch, PartitionLog } from "./partitionLog.ts"

/** A batch that was taken from its log. */
export interface TakenBatch {
  readonly log: PartitionLog
  readonly batch: Batch
}

export interface ProduceSettings {
  readonly acks: -1 | 1
  readonly timeoutMillis: number
  readonly transactionalId: string | undefined
}

const writeSized = (
  target: Buffer,
  { measured, codec, body }: SizedBatch,
  log: PartitionLog,
  isTransactional: boolean
) => {
  const identity = {
    producerId: log.identity?.producerId ?? -1n,
    producerEpoch: log.identity?.producerEpoch ?? -1,
    baseSequence: log.identity === undefined ? -1 : log.sequence,
    transactional: isTransactional
  }
  if (body === undefined) return writeBatch(target, measured, identity)
  body.copy(target, headerBytes)
  writeHeader(target, measured, identity, codec)
}

/**
 * Encodes batches into the bytes that go to the socket; each record is copied once. `compressed`: the same batches, where their records are to be
 * compressed.
 */
export const encodeProduce = (
  settings: ProduceSettings,
  taken: ReadonlyArray<TakenBatch>,
  compressed?: ReadonlyArray<SizedBatch>
): Body => {
  const { acks, timeoutMillis, transactionalId } = settings
  const sized = taken.map(({ log, batch }, index) => ({ log, batch: compressed?.[index] ?? plainBatch(batch) }))
  const topics = [...Map.groupBy(sized, ({ log }) => log.topic)].map(([topic, batches]) => ({
    name: Buffer.from(topic),
    batches
  }))
  const id = transactionalId === undefined ? undefined : Buffer.from(transactionalId)
  let size = 2 + (id?.length ?? 0) + 2 + 4 + 4
  for (const { name, batches } of topics) {
    size += 2 + name.length + 4
    for (const { batch } of batches) size += 4 + 4 + batch.total
  }
  const whole = Buffer.allocUnsafe(headerRoom + size)
  const bytes = whole.subarray(headerRoom)
  let at = bytes.writeInt16BE(id?.length ?? -1, 0)
  if (id !== undefined) at += id.copy(bytes, at)
  at = bytes.writeInt16BE(acks, at)
  at = bytes.writeInt32BE(timeoutMillis, at)
  at = bytes.writeInt32BE(topics.length, at)
  for (const { name, batches } of topics) {
    at = bytes.writeInt16BE(name.length, at)
    at += name.copy(bytes, at)
    at = bytes.writeInt32BE(batches.length, at)
    for (const { log, batch } of batches) {
      at = bytes.writeInt32BE(log.partition, at)
      at = bytes.writeInt32BE(batch.total, at)
      writeSized(bytes.subarray(at, at + batch.total), batch, log, transactionalId !== undefined)
      at += batch.total
    }
  }
  return { bytes, whole }
}
