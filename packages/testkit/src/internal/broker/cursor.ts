/**
 * The fetch position of a session in one partition, and whether a fetch would return anything.
 */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import type { PartitionLog, ReadLimits } from "./partitionLog.ts"

/** Limits of one fetch from one partition. */
export interface FetchLimits extends Omit<ReadLimits, "maxBytes"> {
  readonly maxBytesOf: (topic: string) => number
}

export interface Cursor extends ConsumerRecord.TopicPartition {
  readonly generation: number
  /** Undefined until `seek`: nothing is fetched before. */
  position: bigint | undefined
  paused: boolean
  phase: "owned" | "revoking" | "released"
}

/** True when a fetch would return records, move the position, or report that the position does not exist. */
export const readable = (cursor: Cursor, log: PartitionLog, { isolation }: FetchLimits): boolean => {
  if (cursor.phase !== "owned" || cursor.paused || cursor.position === undefined) return false
  const outside = cursor.position < log.logStart || cursor.position > log.logEnd
  return outside || cursor.position < log.readableEnd(isolation)
}

/** Fetches one chunk and moves the position behind it. A position that does not exist, or whose record cannot be read, is cleared. */
export const fetch = (cursor: Cursor, log: PartitionLog, limits: FetchLimits): ReadonlyArray<Broker.ConsumerEvent> => {
  const { topic, partition, generation, position } = cursor
  if (position === undefined || !readable(cursor, log, limits)) return []
  const at = { topic, partition, generation }
  const highWatermark = log.readableEnd(limits.isolation)
  const read = log.read(position, { ...limits, maxBytes: limits.maxBytesOf(topic) })
  if (read === undefined) {
    cursor.position = undefined
    return [{ _tag: "OutOfRange", ...at, position, logStart: log.logStart, logEnd: highWatermark }]
  }
  const { unreadable, ...chunk } = read
  cursor.position = unreadable === undefined ? read.nextOffset : undefined
  const fetched: Broker.ConsumerEvent = { _tag: "Fetched", chunk: { ...at, highWatermark, ...chunk } }
  if (unreadable === undefined) return [fetched]
  const refused: Broker.ConsumerEvent = {
    ...{ _tag: "Unreadable", ...at, offset: unreadable.offset, lastOffset: unreadable.offset, records: 1 },
    ...{ codec: unreadable.compression, problem: "tooLarge" },
    detail: `a record is larger than the ${limits.maxRecordBytes} bytes allowed`
  }
  return read.nextOffset > position ? [fetched, refused] : [refused]
}
