/**
 * The entries of a ledger: records and their outcomes, assignments, running calls.
 */
import type { EventBusEvent } from "@eventbus/core"
import type { PartitionName } from "./History.ts"
import type { TierAttempt } from "./retries.ts"
import type { RecordPlan } from "./Scenario.ts"

export type RecordState = "open" | "done" | "routed" | "dead-lettered" | "skipped"

export interface LedgerRecord {
  readonly plan: RecordPlan
  readonly binding: string
  readonly partition: PartitionName
  readonly offset: bigint
  /** Where it is on its way through the tiers, and what it brings along. Nothing of a record of the main topic is believed. */
  readonly tierAttempt: TierAttempt
  readonly totalAttempts: number
  readonly firstFailureMillis: number | undefined
  /** When it was in its topic; 0 for a record of the main topic. */
  readonly storedMillis: number
  /** When it may be handled. */
  readonly dueMillis: number
  state: RecordState
  /** Removed from the log, by retention or compaction. */
  removed: "no" | "retention" | "compaction"
  /** A connector has said that it is gone, or could not know that it ever was: deleted before the group committed anything. */
  reportedGone: boolean
}

/** How a delivery gave a record up. */
export interface FailedDelivery {
  readonly attempts: number
  readonly failure: Failure
  readonly atMillis: number
  readonly fiber: number | undefined
  /** The processing budget did not leave time for another attempt. */
  readonly budgetReached: boolean
  /** Why the circuit breaker holds it. */
  breaker: "came while the breaker was open" | "opened the breaker" | undefined
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

/** A partition in the hands of one consumer, as its connector sees it. */
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
  /** When it began to be given up: revoked, or its process was stopped. */
  endingSinceMillis: number | undefined
  drainTimedOut: boolean
  /** A copy of one of its records was refused. */
  publishFailed: boolean
  /** Highest offset that a handler was called with; below `position` when none was. */
  highest: bigint
  readonly finished: Set<bigint>
  /** Tried and not finished. */
  readonly failed: Set<bigint>
  /** Called and not finished. */
  readonly begun: Set<bigint>
  /** Given up by their delivery, and on their way to another topic: what is behind them may begin, and is not committed. */
  readonly failedDeliveries: Map<bigint, FailedDelivery>
  /** Copies that were begun to be published and not refused, by the number of the sending. */
  readonly sent: Map<bigint, number>
  /** Done in a transaction that is not committed yet. */
  readonly pending: Set<bigint>
  /** Calls of the current delivery that came to something. */
  readonly attempts: Map<bigint, number>
  budgetReached: boolean
  /** Finished by a copy in another topic, or behind one that was on its way there: nobody waits for their commit. */
  readonly notAwaited: Set<bigint>
}
