/**
 * The answer of a log to a fetch, be it of a consumer or of a reader.
 */
import type { Broker } from "@eventbus/core"
import type { PartitionLog, ReadLimits } from "./partitionLog.ts"

type Found =
  | { readonly _tag: "Fetched"; readonly chunk: Broker.FetchedRecords }
  | ({ readonly _tag: "Unreadable" } & Broker.UnreadableBatch)
  | ({ readonly _tag: "OutOfRange" } & Broker.MissingPosition)

export const lookAt = (log: PartitionLog, position: bigint, limits: ReadLimits): Found => {
  const { topic, partition, logStart } = log
  const highWatermark = log.readableEnd(limits.isolation)
  const read = log.read(position, limits)
  if (read === undefined) return { _tag: "OutOfRange", topic, partition, position, logStart, logEnd: highWatermark }
  const { unreadable, ...chunk } = read
  if (unreadable === undefined || read.nextOffset > position)
    return { _tag: "Fetched", chunk: { topic, partition, highWatermark, ...chunk } }
  return {
    ...{ _tag: "Unreadable", topic, partition, offset: unreadable.offset, lastOffset: unreadable.offset, records: 1 },
    ...{ codec: unreadable.compression, problem: "tooLarge" },
    detail: `a record is larger than the ${limits.maxRecordBytes} bytes allowed`
  }
}
