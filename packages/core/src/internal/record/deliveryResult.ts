/**
 * What the delivery of a record came to.
 */
import type { Settlement, Target } from "../../EventBusEvent.ts"
import type { Failure } from "../../Failure.ts"
import type { Copy } from "./copy.ts"

export interface DeliveryResult {
  readonly settlement: Settlement
  /** Handler calls in this delivery. */
  readonly attempts: number
  readonly failure: Failure | undefined
  /** Where a copy of the record goes. */
  readonly target?: Target
  /** Set when it is settled so only once this copy is published and acknowledged. */
  readonly copy?: Copy
}

/** A record that a copy takes the place of. */
export type ResultWithCopy = DeliveryResult & Required<Pick<DeliveryResult, "target" | "copy">>

export const awaitsPublish = (settled: DeliveryResult): settled is ResultWithCopy => settled.copy !== undefined

/** Whether the record is still to be delivered in this partition, once records may start again. */
export const staysInPlace = ({ settlement }: DeliveryResult): boolean =>
  settlement === "Halted" || settlement === "HeldByBreaker"
