/** Reads a whole fetched range at once. */
import type { ConsumerRecord } from "@eventbus/core"
import { FetchedRange } from "../src/internal/fetch/fetchedRange.ts"
import type { FetchedPartition } from "../src/internal/protocol/apis.ts"

export const visibleRecords = async (
  fetched: FetchedPartition,
  position: bigint,
  isolation: "read_committed" | "read_uncommitted"
) => {
  const bounds = { chunkBytes: Number.MAX_SAFE_INTEGER, maxRecordBytes: 16 * 1024 * 1024 }
  const range = new FetchedRange(fetched, position, isolation, bounds)
  const records: Array<ConsumerRecord.ConsumerRecord> = []
  let last = await range.next()
  records.push(...last.records)
  while (!range.isDone) {
    last = await range.next()
    records.push(...last.records)
  }
  return { ...last, records }
}
