/** The error codes of an answer about partitions. */
import type { Reader } from "./reader.ts"

/** By topic and partition, as OffsetCommit and TxnOffsetCommit answer them. */
export const readPartitionErrors = (reader: Reader) =>
  reader.array(() => ({
    topic: reader.string(),
    partitions: reader.array(() => ({ partition: reader.int32(), errorCode: reader.int16() }))
  }))
