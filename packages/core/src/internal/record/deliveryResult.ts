/**
 * How one delivery of a record ended.
 */
import type { RetryProgress } from "../../ConsumerRecord.ts"
import type { Settlement, Target } from "../../EventBusEvent.ts"
import type { Failure } from "../../Failure.ts"
import type { Copy } from "./copy.ts"

export interface DeliveryResult {
  readonly settlement: Settlement
  /** Handler calls in this delivery. */
  readonly attempts: number
  readonly failure: Failure | undefined
  /** Set where it is known without reading the record's headers for it. */
  readonly progress?: RetryProgress
  /** Where a copy of the record goes. */
  readonly target?: Target
  /** Set when the record waited for an operator before this result: that it stayed in its place is reported already. */
  readonly wasHeld?: true
  /** Set when the result holds only once this copy is published and acknowledged. */
  readonly copy?: Copy
}

/** The record is finished once its copy is acknowledged. */
export type ResultWithCopy = DeliveryResult & Required<Pick<DeliveryResult, "target" | "copy">>

export const awaitsPublish = (result: DeliveryResult): result is ResultWithCopy => result.copy !== undefined

/** Whether the record is to be delivered again in this partition, once records may start. */
export const staysInPlace = ({ settlement }: Pick<DeliveryResult, "settlement">): boolean =>
  settlement === "Halted" || settlement === "HeldByBreaker"

export const handled = (attempts: number): DeliveryResult => ({ settlement: "Handled", attempts, failure: undefined })

/** The handler was not called, or said that nothing was to be done. */
export const skipped: DeliveryResult = { settlement: "Skipped", attempts: 0, failure: undefined }

/** The partition is being given up: its next owner delivers the record again. */
export const abandoned = (attempts: number): DeliveryResult => ({
  settlement: "Abandoned",
  attempts,
  failure: undefined
})

/** The circuit breaker is open: the record stays where it is, and its delivery begins anew when the breaker lets it. */
export const heldByBreaker = (attempts: number, failure: Failure | undefined): DeliveryResult => ({
  settlement: "HeldByBreaker",
  attempts,
  failure
})
