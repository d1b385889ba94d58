/** The body of a Produce request, which is the same in v3 to v7. */
import { measureBatch, writeBatch } from "../batch/recordBatch.ts"
import { type Encoded, requestHeaderRoom } from "../wire/kafkajsInternals.ts"
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

/** Encodes batches into the bytes that go to the socket; each record is copied once. */
export const encodeProduce = (settings: ProduceSettings, taken: ReadonlyArray<TakenBatch>): Encoded => {
  const { acks, timeoutMillis, transactionalId } = settings
  const topics = [...Map.groupBy(taken, ({ log }) => log.topic)].map(([topic, ofTopic]) => ({
    name: Buffer.from(topic),
    batches: ofTopic.map(({ log, batch }) => ({
      log,
      measured: measureBatch(batch.records.map(({ record }) => record))
    }))
  }))
  const id = transactionalId === undefined ? undefined : Buffer.from(transactionalId)
  let size = 2 + (id?.length ?? 0) + 2 + 4 + 4
  for (const { name, batches } of topics) {
    size += 2 + name.length + 4
    for (const { measured } of batches) size += 4 + 4 + measured.total
  }
  const whole = Buffer.allocUnsafe(requestHeaderRoom + size)
  const bytes = whole.subarray(requestHeaderRoom)
  let at = bytes.writeInt16BE(id?.length ?? -1, 0)
  if (id !== undefined) at += id.copy(bytes, at)
  at = bytes.writeInt16BE(acks, at)
  at = bytes.writeInt32BE(timeoutMillis, at)
  at = bytes.writeInt32BE(topics.length, at)
  for (const { name, batches } of topics) {
    at = bytes.writeInt16BE(name.length, at)
    at += name.copy(bytes, at)
    at = bytes.writeInt32BE(batches.length, at)
    for (const { log, measured } of batches) {
      at = bytes.writeInt32BE(log.partition, at)
      at = bytes.writeInt32BE(measured.total, at)
      writeBatch(bytes.subarray(at, at + measured.total), measured, {
        producerId: log.identity?.producerId ?? -1n,
        producerEpoch: log.identity?.producerEpoch ?? -1,
        baseSequence: log.identity === undefined ? -1 : log.sequence,
        transactional: transactionalId !== undefined
      })
      at += measured.total
    }
  }
  return { buf: bytes, buffer: bytes, whole }
}
