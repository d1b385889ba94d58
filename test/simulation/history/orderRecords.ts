/**
 * Records, keys and calls as order per key sees them.
 */
import type { RecordPlan } from "../scenario/Scenario.ts"
import type { PartitionName } from "./History.ts"

export interface OrderRecord {
  readonly plan: RecordPlan
  readonly partition: PartitionName
  readonly offset: bigint
  /** Undefined for a record without a key. */
  readonly of: OrderKey | undefined
  /** Its place among the records of its key. */
  readonly index: number
  readonly publishedMillis: number
  isDone: boolean
  /** It has failed in a process that does not keep the order of each key through retry topics. */
  isRelaxed: boolean
  /** It waited behind a lock that is gone, and somebody has said so. */
  isPassedOver: boolean
}

/** A key of one main partition. */
export interface OrderKey {
  readonly name: string
  readonly records: Array<OrderRecord>
  /** The record that was done last by an owner; -1 for none. */
  last: number
  /** The highest record that somebody has done since who had lost the partition; -1 for none. */
  zombie: number
}

/** A call of the handler that has not returned. */
export interface Running {
  readonly process: string
  /** The partition that the record was delivered from. */
  readonly partition: PartitionName
  /** Whether its partition was lost, or given up, while it ran. */
  isLate: boolean
  readonly records: ReadonlyArray<OrderRecord>
}

/** A call of a process that was killed. */
export const lateCall: Running = { process: "", partition: "", isLate: false, records: [] }
