/**
 * The options of an assigned partition.
 */
import type { ConsumerSession } from "../../Broker.ts"
import type { TopicPartition } from "../../ConsumerRecord.ts"
import type { PartitionCounters } from "../observe/runMetrics.ts"
import type { TierTopic } from "../retry/tiers.ts"
import type { OfOrder } from "./commitText.ts"
import type { PauseReasons } from "./pauseReasons.ts"

/** How much a partition may hold that is fetched and not finished. Fetching pauses at this mark for reason `backpressure`, and resumes at half of it. */
export interface WaterMarks {
  readonly records: number
  readonly bytes: number
}

type Assigned = TopicPartition & { readonly generation: number }

export interface PartitionOptions extends Assigned {
  /** Where reading starts. */
  readonly position: bigint
  /** The committed offset of the group, as far as it is usable; -1 when there is none. */
  readonly committed: bigint
  /** Text that each commit of the partition carries. */
  readonly metadata?: string | undefined
  /** The former owner's knowledge about order per key. */
  readonly ofOrder?: OfOrder | undefined
  /** The former owner had finished these records behind the committed offset, as its commit says. */
  readonly finishedAhead?: string | undefined
  /** One past the last offset that is known of the log. */
  readonly logEnd: bigint
  /** Records that may begin from the first unfinished one on. Default: `OffsetTracker.defaultMaxSpan`. */
  readonly maxSpan?: number | undefined
  /** Set for a partition of a retry topic. */
  readonly tier: TierTopic | undefined
  readonly counters: PartitionCounters
  /** Called for every chunk: the share of a partition depends on how many partitions there are. */
  readonly highWater: () => WaterMarks
  readonly session: Pick<ConsumerSession, "pause" | "resume" | "isUnconfirmed">
  readonly onFetchPaused: (at: Assigned, reasons: PauseReasons) => void
  readonly onFetchResumed: (at: Assigned) => void
  /** A run has begun that the processing budget may cut off. */
  readonly onGuarded: () => void
}
