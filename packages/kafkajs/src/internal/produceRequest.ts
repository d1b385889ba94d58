/** Produce v3 to v7: the same body for all of them. */
import type { Batch, PartitionLog } from "./partitionLog.ts"
import { encodeBatch } from "./recordBatch.ts"

export interface Sending {
  readonly log: PartitionLog
  readonly batch: Batch
}

const int16 = (value: number) => {
  const bytes = Buffer.allocUnsafe(2)
  bytes.writeInt16BE(value)
  return bytes
}

const int32 = (value: number) => {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32BE(value)
  return bytes
}

const text = (value: string | undefined): ReadonlyArray<Buffer> => {
  if (value === undefined) return [int16(-1)]
  const bytes = Buffer.from(value)
  return [int16(bytes.length), bytes]
}

export interface ProduceSettings {
  readonly acks: -1 | 1
  readonly timeoutMillis: number
  readonly transactionalId: string | undefined
}

export const encodeProduce = (settings: ProduceSettings, sendings: ReadonlyArray<Sending>): Buffer => {
  const topics = Map.groupBy(sendings, ({ log }) => log.topic)
  const parts: Array<Buffer> = [
    ...text(settings.transactionalId),
    int16(settings.acks),
    int32(settings.timeoutMillis),
    int32(topics.size)
  ]
  for (const [topic, of] of topics) {
    parts.push(...text(topic), int32(of.length))
    for (const { log, batch } of of) {
      const bytes = encodeBatch(
        batch.records.map(({ record }) => record),
        {
          producerId: log.identity?.producerId ?? -1n,
          producerEpoch: log.identity?.producerEpoch ?? -1,
          baseSequence: log.identity === undefined ? -1 : log.sequence,
          transactional: settings.transactionalId !== undefined
        }
      )
      parts.push(int32(log.partition), int32(bytes.length), bytes)
    }
  }
  return Buffer.concat(parts)
}
