/**
 * A record in work: what a scheduler hands to the state machine of its delivery.
 */
import type { Effect } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import type { DeliveryResult } from "../record/deliveryResult.ts"
import type { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import type { ConsumerContext } from "./consumerContext.ts"

export interface RecordInWork<R> {
  readonly context: ConsumerContext<R>
  readonly partition: Partition
  readonly record: ConsumerRecord
  readonly delivery: DeliveryContext
  /** Whether the record may start. */
  readonly gate: StartGate
  /** One attempt: calls the handler, in its slots, on the delivery's clock. */
  readonly attempt: (isFirst: boolean) => Effect.Effect<unknown, unknown, R>
  /** Books how a delivery ended. True when the scheduler is done with the record: it is finished, or its copy is on its way. */
  readonly settle: (result: DeliveryResult) => boolean | Effect.Effect<boolean>
}
