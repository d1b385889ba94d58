/** The port's report of a record batch that cannot be read (ruling 79). */
import type { Compression, TopicPartition } from "../../ConsumerRecord.ts"

/** A record batch that cannot be read. */
export interface UnreadableBatch extends TopicPartition {
  /** The first offset that cannot be read. */
  readonly offset: bigint
  /** The last offset of the batch. Where its header cannot be trusted, this is `offset`. */
  readonly lastOffset: bigint
  /** The number of records of the whole batch; undefined where its header cannot be trusted. */
  readonly records: number | undefined
  /** The codec of the batch; undefined where it is not known. */
  readonly codec: Compression | undefined
  /**
   * - `codec`: this program cannot read the codec.
   * - `broken`: the bytes do not hold what they say.
   * - `tooLarge`: one record is larger than `maxRecordBytes`, or decompressing takes more memory than that.
   * - `format`: a record format older than Kafka 0.11, or one that is not known.
   */
  readonly problem: "codec" | "broken" | "tooLarge" | "format"
  /** The reason in a few words. */
  readonly detail: string
}
