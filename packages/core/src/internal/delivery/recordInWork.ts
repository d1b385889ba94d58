/**
 * A record in work, as a scheduler hands it to the state machine (`recordDelivery.ts`).
 */
import type * as Effect from "effect/Effect"
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
  /** One attempt: the call of the handler, with its slots and its permit, on the delivery's clock. */
  readonly attempt: (isFirst: boolean) => Effect.Effect<unknown, unknown, R>
  /** Applies the result of a delivery. True when the scheduler is done with the record: it is finished, or its copy is on its way. */
  readonly settle: (result: DeliveryResult) => boolean | Effect.Effect<boolean>
}
