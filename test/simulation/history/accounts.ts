/**
 * The entries of a ledger: records and their outcomes, assignments, running calls.
 */
import type { EventBusEvent } from "@eventbus/core"
import type { TierAttempt } from "../scenario/retries.ts"
import type { RecordPlan } from "../scenario/Scenario.ts"
import type { PartitionName } from "./History.ts"

export type RecordState = "open" | "done" | "routed" | "dead-lettered" | "skipped"

export interface LedgerRecord {
  readonly plan: RecordPlan
  readonly binding: string
  readonly partition: PartitionName
  readonly offset: bigint
  /** Tier and attempt of the delivery. The headers of a record in the main topic are not believed. */
  readonly tierAttempt: TierAttempt
  /** How often the record had been replayed when this copy was made. */
  readonly replays: number
  readonly totalAttempts: number
  readonly firstFailureMillis: number | undefined
  /** Time at which it was stored; 0 for a record of the main topic. */
  readonly storedMillis: number
  /** Earliest time for its handler. */
  readonly dueMillis: number
  state: RecordState
  /** Removed from the log by retention or compaction. */
  removed: "no" | "retention" | "compaction"
  /** A connector reported that the record is gone, or could not know of it: it was deleted before the group committed anything. */
  reportedGone: boolean
}

/** A delivery that failed for good. */
export interface FailedDelivery {
  readonly attempts: number
  readonly failure: Failure
  readonly atMillis: number
  readonly fiber: number | undefined
  /** The processing budget left no time for another attempt. */
  readonly budgetReached: boolean
  /** Why the circuit breaker holds the record. */
  breaker: "came while the breaker was open" | "opened the breaker" | "was the one of a trial call" | undefined
}

type Failure = Extract<EventBusEvent.EventBusEvent, { readonly _tag: "AttemptFailed" }>["failure"]

export interface Call {
  readonly call: number
  readonly process: string
  readonly binding: string
  readonly partition: PartitionName
  readonly offsets: ReadonlyArray<bigint>
  readonly assignment: Assignment | undefined
}

/** A partition that is assigned to one consumer, as its connector sees it. */
export interface Assignment {
  /** Counts all assignments of a run. */
  readonly number: number
  readonly process: string
  readonly consumer: number
  readonly binding: string
  readonly partition: PartitionName
  readonly generation: number
  readonly position: bigint
  state: "active" | "revoked" | "released" | "lost" | "closed"
  /** Time at which it began to end: its partition was revoked, or its process was stopped. */
  endingSinceMillis: number | undefined
  drainTimedOut: boolean
  /** A copy of one of its records was refused. */
  publishFailed: boolean
  /** Highest offset that a handler was called with; below `position` before the first call. */
  highest: bigint
  readonly finished: Set<bigint>
  /** Offsets that were tried and are not finished. */
  readonly failed: Set<bigint>
  /** Offsets that were passed to a handler and are not finished. */
  readonly begun: Set<bigint>
  /** Failed deliveries whose records go to another topic. Records behind them may begin, but are not committed. */
  readonly failedDeliveries: Map<bigint, FailedDelivery>
  /** Records whose copy was on its way before the assignment began to end, and was given up all the same. */
  readonly abandonedCopies: Set<bigint>
  /** Time at which the latest record was left for the next owner; undefined before the first one. */
  abandonedMillis: number | undefined
  /** Copies whose publish has begun and was not refused, with the number of the publish. */
  readonly sent: Map<bigint, number>
  /** Offsets that are done in a transaction that is not committed yet. */
  readonly pending: Set<bigint>
  /** Number of calls of the current delivery that were not interrupted. */
  readonly attempts: Map<bigint, number>
  budgetReached: boolean
}
