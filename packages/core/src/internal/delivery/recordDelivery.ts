/**
 * The state machine of one record. Four schedulers use it. They decide which record comes next and when to wait, and nothing else about a record.
 *
 *             the gate is open           slots and permit
 *   Waiting --------------------> Admitting ------------> Running ---- succeeded ---> Handled
 *      ^                              ^                      |
 *      |                              |                      | failed
 *      |                    wait over |                      v
 *      |                              +----- Backoff <--- Failed ---- no retry in place ----+
 *      |                                        |         retry                            |
 *      |                    the breaker opened  |                                          v
 *      |                                        v          the breaker is open          GivingUp
 *      +- the breaker lets it - HeldByBreaker <-+------------------------------------------+
 *      |                                                                                   |
 *      +- somebody resumes ---------- Halted <---------------------- pause, halt ----------+
 *                                                                                          |
 *                                    Skipped <---------------------- skip -----------------+
 *                                                                                          |
 *         Routed, DeadLettered <-- acknowledged -- Publishing <----- tier, dead letter ----+
 *
 * When the partition is given up, each state leads to Abandoned; Running does so when its handler has failed. No copy counts for an abandoned record.
 *
 * | state | where | the delivery holds |
 * |---|---|---|
 * | Waiting | `untilSettled` | nothing |
 * | Admitting | `DeliveryContext.admit` | the slots that it has got so far; its clock is paused |
 * | Running | `Partition.guard` | slots and permit; its clock runs |
 * | Failed | `afterFailure`, `retryInPlace` | the permit; its clock runs |
 * | Backoff | `inPlaceRetries.ts` | the permit, but not while the partition is paused; its clock runs |
 * | GivingUp | `giveUp`, `routing.ts` | nothing |
 * | Publishing, and the results | `RecordInWork.settle`, `pendingCopies.ts` | nothing |
 *
 * A record that cannot be read goes from Admitting to Publishing (`unreadable.ts`).
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { ProcessingBudgetExceeded } from "../../EventBusError.ts"
import type { Failure } from "../../Failure.ts"
import type { Decision } from "../failure/classification.ts"
import * as Failures from "../failure/failure.ts"
import type { Undecodable } from "../record/decoding.ts"
import {
  abandoned,
  type DeliveryResult,
  handled,
  heldByBreaker,
  skipped,
  staysInPlace
} from "../record/deliveryResult.ts"
import type { RetryState } from "../record/retryState.ts"
import { budgetMillis } from "../settings/bindingDefinition.ts"
import { isAlreadyHandled } from "../settings/idempotent.ts"
import { reportAttemptFailed, reportCall } from "./consumerContext.ts"
import * as InPlaceRetries from "./inPlaceRetries.ts"
import type { RecordInWork } from "./recordInWork.ts"
import { holdTrial, originOf, retryStateOf, takeRoute } from "./routing.ts"
import * as Unreadable from "./unreadable.ts"

/** A result, or the effect that leads to it. */
export type Settling<R> = DeliveryResult | Effect.Effect<DeliveryResult, never, R>

/**
 * Delivers a record until it is settled. False when the partition stops first. `failed`: the failure of a first attempt that the scheduler has made already.
 * `wasDelivered`: the breaker may have counted an earlier delivery.
 */
export const deliver = <R>(
  work: RecordInWork<R>,
  failed?: Cause.Cause<unknown>,
  wasDelivered = failed !== undefined || work.partition.tier !== undefined
): Effect.Effect<boolean, never, R> =>
  Effect.ensuring(untilSettled(work, failed, wasDelivered), work.delivery.ensureClosed)

const untilSettled = Effect.fnUntraced(function* <R>(
  work: RecordInWork<R>,
  failed: Cause.Cause<unknown> | undefined,
  wasDelivered: boolean
) {
  const { context, partition, delivery } = work
  let cause = failed
  let isAgain = wasDelivered
  while (true) {
    let result = handled(1)
    if (cause === undefined) {
      yield* work.gate.runnable
      if (work.gate.stopping) return false
      delivery.begin(context.clock.currentTimeMillisUnsafe())
      if (isAgain) replaceFailure(work)
      isAgain = true
      const exit = yield* partition.guard(work.attempt(true), delivery)
      if (Exit.isFailure(exit)) cause = exit.cause
      reportAttempt(work, cause)
    }
    if (cause !== undefined) {
      const settling = afterFailure(work, cause)
      result = Effect.isEffect(settling) ? yield* settling : settling
      cause = undefined
    }
    const settled = work.settle(result)
    if (Effect.isEffect(settled) ? yield* settled : settled) return true
    if (!staysInPlace(result)) return false
  }
})

/** Settles a record that cannot be read, without an attempt. False when the partition stops first. */
export const deliverUnreadable = <R>(work: RecordInWork<R>, undecodable: Undecodable): Effect.Effect<boolean> =>
  Effect.flatMap(Unreadable.settleWhenAdmitted(work, undecodable), (result) => {
    const settled = result !== undefined && work.settle(result)
    return Effect.isEffect(settled) ? settled : Effect.succeed(settled)
  })

/**
 * Leads a delivery from the failure of its first attempt to its result, and closes it. The answer is no effect where the record is not tried again in place and no
 * pause begins: the hot loop goes on behind such a record without ending its fiber.
 */
export const afterFailure = <R>(work: RecordInWork<R>, cause: Cause.Cause<unknown>): Settling<R> => {
  const { delivery } = work
  const settling = firstDecision(work, cause)
  if (!Effect.isEffect(settling)) {
    delivery.close("released")
    return settling
  }
  return Effect.ensuring(settling, delivery.ensureClosed)
}

const firstDecision = <R>(work: RecordInWork<R>, cause: Cause.Cause<unknown>): Settling<R> => {
  const { context, partition, delivery } = work
  const undecodable = Unreadable.undecodableOf(cause)
  if (undecodable !== undefined) return Unreadable.settleInSlot(work, undecodable)
  if (isAlreadyHandled(cause)) return skipped
  if (partition.stopping) return abandoned(1)
  const judged = judge(work, cause)
  const firstFailureMillis = context.clock.currentTimeMillisUnsafe()
  const isOneAttempt = delivery.isTrial || context.definition.retry.blocking.maxAttempts === 1
  return judged !== undefined && (!judged.decision.inPlace || isOneAttempt)
    ? giveUp(work, judged, 1, firstFailureMillis)
    : retryInPlace(work, judged, firstFailureMillis)
}

/** A failure of the handler, and the decision about it. */
interface Judged {
  readonly failure: Failure
  readonly decision: Decision
  readonly state: RetryState
}

/** The processing budget is used up. */
const budgetExceeded: Decision = { inPlace: false, destination: { _tag: "NextTier" }, permanent: false }

/** Undefined for a handler that interrupted itself. */
const judge = <R>(work: RecordInWork<R>, cause: Cause.Cause<unknown>): Judged | undefined => {
  const { context, partition, record, delivery } = work
  const { definition } = context
  if (delivery.wasCutOff) {
    const error = new ProcessingBudgetExceeded({ budgetMillis: budgetMillis(definition) })
    const state = retryStateOf(context, partition, record)
    return { failure: Failures.fromUnknown(error), decision: budgetExceeded, state }
  }
  const failure = Failures.fromCause(cause)
  if (failure === undefined) return undefined
  const state = retryStateOf(context, partition, record)
  return { failure, decision: definition.classify(cause, state.tier, failure), state }
}

/** The breaker counts the deliveries of one record as one: this one takes the place of a failure before (ruling 72). */
export const replaceFailure = <R>({ context, partition, record, delivery }: RecordInWork<R>): void => {
  if (delivery.remembersFailures) delivery.countFor(originOf(context, partition, record))
}

/** From GivingUp: the breaker counts the delivery, and the record takes its route. */
const giveUp = <R>(
  { context, partition, record, delivery, gate }: RecordInWork<R>,
  { failure, decision, state }: Judged,
  attempts: number,
  firstFailureMillis: number
): Settling<R> => {
  reportAttemptFailed(context, partition, record, attempts, failure, undefined)
  if (delivery.counts && !decision.permanent) delivery.countFor(state.origin)
  const failed = { attempts, failure, firstFailureMillis, state }
  if (delivery.close(decision.permanent ? "ignored" : "failure")) {
    return delivery.isTrial ? holdTrial(context, partition, gate, record, failed) : heldByBreaker(attempts, failure)
  }
  return takeRoute(context, partition, record, decision.destination, failed)
}

/** From Failed, through Backoff and Running, until there is no further attempt in place. */
const retryInPlace = Effect.fnUntraced(function* <R>(
  work: RecordInWork<R>,
  first: Judged | undefined,
  firstFailureMillis: number
) {
  const { context, partition, record, delivery } = work
  const nextDelay = yield* InPlaceRetries.stepper(context.definition)
  let attempts = 1
  let judged = first
  while (true) {
    const made = attempts
    const failure = judged?.failure
    let delay: number | undefined = InPlaceRetries.selfInterruptedMillis
    if (judged !== undefined) {
      const next =
        judged.decision.inPlace && !delivery.isTrial
          ? yield* nextDelay(context.clock.currentTimeMillisUnsafe())
          : undefined
      delay = InPlaceRetries.withinBudget(context, partition, delivery, next)
      if (delay === undefined) {
        const settling = giveUp(work, judged, attempts, firstFailureMillis)
        return Effect.isEffect(settling) ? yield* settling : settling
      }
      reportAttemptFailed(context, partition, record, attempts, judged.failure, delay)
      attempts++
    }
    yield* InPlaceRetries.backOff(context, partition, delivery, delay)
    if (partition.stopping) return abandoned(made)
    if (delivery.breakerHasOpened()) return heldByBreaker(made, failure)
    yield* delivery.waitOutPause(partition)
    if (partition.stopping) return abandoned(made)
    const beforeMillis = delivery.clock.spentMillis()
    const exit = yield* partition.guard(
      Effect.suspend(() => work.attempt(false)),
      delivery
    )
    if (!reportsItsCalls(work) && (Exit.isSuccess(exit) || hasCalled(exit.cause)))
      reportCall(context, delivery, beforeMillis)
    if (Exit.isSuccess(exit)) return handled(attempts)
    if (isAlreadyHandled(exit.cause)) return skipped
    if (partition.stopping) return abandoned(attempts)
    judged = judge(work, exit.cause)
  }
})

/** A transaction takes longer than the calls in it, and reports them by itself. */
const reportsItsCalls = <R>({ context }: RecordInWork<R>): boolean =>
  context.definition.handler._tag === "Transactional"

const reportAttempt = <R>(work: RecordInWork<R>, cause: Cause.Cause<unknown> | undefined): void => {
  if (reportsItsCalls(work)) return
  if (cause === undefined || hasCalled(cause)) reportCall(work.context, work.delivery)
}

/** Whether the handler was called: its record could be read, and was not handled before. */
export const hasCalled = (cause: Cause.Cause<unknown>): boolean =>
  Unreadable.undecodableOf(cause) === undefined && !isAlreadyHandled(cause)
