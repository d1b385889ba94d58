/**
 * The fetch position of a session in one partition, and whether a fetch would return anything.
 */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import { lookAt } from "./logFetch.ts"
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
export const fetch = (cursor: Cursor, log: PartitionLog, limits: FetchLimits): Broker.ConsumerEvent | undefined => {
  const { topic, generation, position } = cursor
  if (position === undefined || !readable(cursor, log, limits)) return undefined
  const found = lookAt(log, position, { ...limits, maxBytes: limits.maxBytesOf(topic) })
  cursor.position = found._tag === "Fetched" ? found.chunk.nextOffset : undefined
  return found._tag === "Fetched" ? { ...found, chunk: { ...found.chunk, generation } } : { ...found, generation }
}
