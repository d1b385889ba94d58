/** The answers of `Outside`: bindings that other processes run, as their clusters show them. */
import type { TopicPartition } from "./ConsumerRecord.ts"
import type { BindingSnapshot, OngoingFailure } from "./Snapshot.ts"

/** A partition, and how far the group is in it. */
export interface CommittedPartition extends TopicPartition {
  /** 0 for the main topic; else the first tier whose records wait in the topic. */
  readonly tier: number
  /** The offset that the group has committed. Undefined before its first commit. */
  readonly committed: bigint | undefined
  /** One past the last offset of the log. */
  readonly logEnd: bigint
  /**
   * Offsets that are not committed, never negative. 0 is exact. Greater values are upper bounds: records that are handled count until they are committed, and compaction and
   * transaction markers leave holes.
   */
  readonly lag: bigint
}

/** A binding as its cluster showed it. */
export interface BindingView {
  /** The partitions of the main topic and of the retry topics that exist. */
  readonly partitions: ReadonlyArray<CommittedPartition>
  /** Members of its group, and of the group of its retry topics where that is another one, in all processes. 0: nobody consumes. */
  readonly members: number
  /** Dead letters of the group that are not dealt with. */
  readonly deadLetters: number
  /** When the cluster answered, epoch milliseconds. */
  readonly asOfMillis: number
}

/** A binding that other processes run. */
export interface OutsideBinding {
  /** Its names and settings. Its state is CREATED, since it was never started here, and it has no partitions and no consumers here. */
  readonly snapshot: BindingSnapshot
  /** The last answer of its cluster. Undefined before the first. */
  readonly view: BindingView | undefined
  /** Set while the cluster does not answer, or refuses. */
  readonly failure: OngoingFailure | undefined
}
