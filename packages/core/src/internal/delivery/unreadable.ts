/**
 * A record that cannot be read goes to the dead letter topic without an attempt (connector seed §4.10). An open circuit breaker holds its dead letter like an attempt,
 * and so does a limit on concurrency (ruling 28).
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { isInstance } from "../base/properties.ts"
import * as Failures from "../failure/failure.ts"
import { Undecodable } from "../record/decoding.ts"
import { type DeliveryResult, heldByBreaker } from "../record/deliveryResult.ts"
import type { DeliveryContext } from "../slots/deliveryContext.ts"
import { reportAttemptFailed } from "./consumerContext.ts"
import type { RecordInWork } from "./recordInWork.ts"
import { deadLetter, retryStateOf } from "./routing.ts"

/** Why a call found its record unreadable; undefined when the handler was called. */
export const undecodableOf = (cause: Cause.Cause<unknown>): Undecodable | undefined => {
  const failed = cause.reasons.find(Cause.isFailReason)
  return isInstance(failed?.error, Undecodable) ? failed.error : undefined
}

/** Settles a record that turned out to be unreadable when it had its slot. The record waits for another slot when the breaker has opened meanwhile. */
export const settleInSlot = (work: RecordInWork<unknown>, undecodable: Undecodable): DeliveryResult =>
  missedSlot(work.delivery) ? heldByBreaker(0, undefined) : settle(work, undecodable)

/** Settles a record that is known to be unreadable, as soon as its handler could start. Undefined when the partition stops first. */
export const settleWhenAdmitted = (
  work: RecordInWork<unknown>,
  undecodable: Undecodable
): Effect.Effect<DeliveryResult | undefined> => {
  const { context, delivery, gate } = work
  const waiting: Effect.Effect<boolean> = Effect.suspend(() => {
    delivery.begin(context.clock.currentTimeMillisUnsafe())
    const admitted = Effect.exit(delivery.admit(gate, () => Effect.fail("unreadable")))
    return Effect.flatMap(admitted, (exit) =>
      missedSlot(delivery) ? waiting : Effect.succeed(!Exit.hasInterrupts(exit))
    )
  })
  return Effect.map(Effect.ensuring(waiting, delivery.ensureClosed), (admitted) =>
    admitted ? settle(work, undecodable) : undefined
  )
}

/** Gives slot and permit back. True when the breaker has opened since the record got them: another delivery may have done that, or the end of this trial, which was the last one. */
const missedSlot = (delivery: DeliveryContext): boolean => delivery.close("released")

const settle = ({ context, partition, record }: RecordInWork<unknown>, undecodable: Undecodable): DeliveryResult => {
  const failure = Failures.fromUnknown(undecodable.value ?? undecodable.key)
  const firstFailureMillis = context.clock.currentTimeMillisUnsafe()
  reportAttemptFailed(context, partition, record, 0, failure, undefined)
  const state = retryStateOf(context, partition, record)
  const failed = { attempts: 0, failure, firstFailureMillis, state, undecodable }
  return deadLetter(context, partition, record, failed, "NON_RETRYABLE")
}
