/**
 * Parts of a chunk: a scheduler gets the records of a retry topic when they are due, and any record when it can be decoded. And chunks without records.
 */
import type { RecordChunk } from "../../Broker.ts"
import type { TopicPartition } from "../../ConsumerRecord.ts"

/** A gap in the log as a chunk without records: the position passes the gap once everything that was fetched before it is finished. */
export const gap = (
  { topic, partition, generation }: TopicPartition & { readonly generation: number },
  nextOffset: bigint,
  highWatermark: bigint
): RecordChunk => ({ ...{ topic, partition, generation, nextOffset, highWatermark }, records: [], bytes: 0 })

/** The records from index `from` up to `to` (exclusive, above `from`) as a chunk of their own. */
export const partOf = (chunk: RecordChunk, from: number, to: number): RecordChunk => {
  const { length } = chunk.records
  if (from === 0 && to === length) return chunk
  const records = chunk.records.slice(from, to)
  return {
    ...chunk,
    records,
    bytes: (chunk.bytes / length) * records.length,
    nextOffset: to === length ? chunk.nextOffset : records.at(-1)!.offset + 1n
  }
}
