/**
 * The slow path of one record: its first attempt failed. Attempts in place, classification, and the route at the end of them.
 *
 * What ends it early: the partition stops (the record stays unfinished, and nothing is published for it), the processing budget is used
 * up, the breaker opens, or the route says so. A record is settled once.
 */
import { type Cause, Duration, Effect, Exit, Pull, Schedule } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import { ProcessingBudgetExceeded } from "../../EventBusError.ts"
import type { Failure } from "../../Failure.ts"
import * as Clocks from "../base/clocks.ts"
import type { Decision } from "../failure/classification.ts"
import * as Failures from "../failure/failure.ts"
import type { Partition } from "../partition/partition.ts"
import type { Undecodable } from "../record/decoding.ts"
import type { DeliveryResult } from "../record/deliveryResult.ts"
import * as Backoff from "../retry/backoff.ts"
import { type BindingDefinition, budgetMillis } from "../settings/bindingDefinition.ts"
import { isAlreadyHandled } from "../settings/idempotent.ts"
import { type DeliveryContext, deliveryFrom } from "../slots/concurrencySlots.ts"
import { type ConsumerContext, report, reportAttemptFailed, reportCall, spentMillis } from "./consumerContext.ts"
import { deadLetter, type FailedDelivery, retryStateOf, takeRoute } from "./routing.ts"

/** One failed run: why, the timer of its delivery, and whether the processing budget cut it off. */
export interface FailedRun {
  readonly cause: Cause.Cause<unknown>
  readonly delivery: DeliveryContext
  readonly cutOff: boolean
}

/** Pause after a handler that interrupted itself, which is neither success nor failure (ruling 16). */
export const selfInterruptedMillis = 1000

/** The attempts of a tier are used up, or its time is. */
const exhausted: Decision = { inPlace: false, destination: { _tag: "NextTier" }, permanent: false }

/** A failure of the handler, and what it means. */
interface Judged {
  readonly failure: Failure
  readonly decision: Decision
}

/** A settled record, or what settles it. */
export type Settling<R> = DeliveryResult | Effect.Effect<DeliveryResult, never, R>

/** Settles a record whose first run failed; `again` is one more run of it, on the timer of the delivery. */
export const settleFailed = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  first: FailedRun,
  again: (delivery: DeliveryContext) => Effect.Effect<unknown, unknown, R>
): Effect.Effect<DeliveryResult, never, R> =>
  Effect.suspend(() => asEffect(settleAtOnce(context, partition, record, first, again)))

/** The same, without an effect where nothing has to be waited for: it is not tried again in place, and goes where only a copy of it has to. */
export const settleAtOnce = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  first: FailedRun,
  again: (delivery: DeliveryContext) => Effect.Effect<unknown, unknown, R>
): Settling<R> => {
  const { breaker, definition } = context
  const { delivery } = first
  const settling = (): Settling<R> => {
    if (isAlreadyHandled(first.cause)) return alreadyHandled
    if (partition.stopping) return abandoned(1)
    const judged = judge(context, partition, record, first)
    const firstFailureMillis = context.clock.currentTimeMillisUnsafe()
    return judged !== undefined && (!judged.decision.inPlace || definition.retry.blocking.maxAttempts === 1)
      ? giveUp(context, partition, record, delivery, judged, { attempts: 1, firstFailureMillis })
      : attempts(context, partition, record, { delivery, judged, firstFailureMillis }, again)
  }
  const settled = settling()
  if (breaker === undefined) return settled
  const release = () => breaker.release(delivery)
  if (Effect.isEffect(settled)) return Effect.ensuring(settled, Effect.sync(release))
  release()
  return settled
}

const asEffect = <R>(settling: Settling<R>): Effect.Effect<DeliveryResult, never, R> =>
  Effect.isEffect(settling) ? settling : Effect.succeed(settling)

/** Undefined for a handler that interrupted itself. */
const judge = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  { cause, cutOff }: Pick<FailedRun, "cause" | "cutOff">
): Judged | undefined => {
  const { definition } = context
  if (cutOff) {
    const error = new ProcessingBudgetExceeded({ budgetMillis: budgetMillis(definition) })
    return { failure: Failures.fromUnknown(error), decision: exhausted }
  }
  const failure = Failures.fromCause(cause)
  if (failure === undefined) return undefined
  const tier = partition.tier === undefined ? 0 : retryStateOf(context, partition, record).tier
  return { failure, decision: definition.classify(cause, tier, failure) }
}

/** No further attempt in place. */
const giveUp = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  delivery: DeliveryContext,
  { failure, decision }: Judged,
  { attempts, firstFailureMillis }: Pick<FailedDelivery, "attempts" | "firstFailureMillis">
): Settling<R> => {
  reportAttemptFailed(context, partition, record, attempts, failure, undefined)
  if (context.breaker?.failed(delivery, decision.permanent)) return heldByBreaker(attempts, failure)
  return takeRoute(context, partition, record, decision.destination, { attempts, failure, firstFailureMillis })
}

/** What is known when the attempts in place begin: the first one has failed. */
interface Begun {
  readonly delivery: DeliveryContext
  readonly judged: Judged | undefined
  readonly firstFailureMillis: number
}

const attempts = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  { delivery, judged: first, firstFailureMillis }: Begun,
  again: (delivery: DeliveryContext) => Effect.Effect<unknown, unknown, R>
) {
  const { definition, clock, breaker } = context
  const nextDelay = yield* stepper(definition)
  let attempts = 1
  let judged = first

  while (true) {
    let delay: number | undefined = selfInterruptedMillis
    const failure = judged?.failure
    if (judged !== undefined) {
      const next = judged.decision.inPlace ? yield* nextDelay(clock.currentTimeMillisUnsafe()) : undefined
      delay = withinBudget(context, partition, delivery, next)
      if (delay === undefined) {
        return yield* asEffect(giveUp(context, partition, record, delivery, judged, { attempts, firstFailureMillis }))
      }
      reportAttemptFailed(context, partition, record, attempts, judged.failure, delay)
      attempts++
    }
    yield* backOff(context, partition, delivery, delay)
    const made = failure === undefined ? attempts : attempts - 1
    if (partition.stopping) return abandoned(made)
    if (breaker?.hasOpened(delivery)) return heldByBreaker(made, failure)
    if (!partition.open) {
      // Others may find out meanwhile how the dependency is.
      breaker?.release(delivery)
      delivery.startedMillis += yield* pausedMillis(context, partition)
      if (partition.stopping) return abandoned(made)
    }
    const beforeMillis = spentMillis(context, delivery)
    const { exit, cutOff } = yield* partition.guard(
      Effect.suspend(() => again(delivery)),
      delivery
    )
    if (context.definition.handler._tag !== "Transactional") reportCall(context, delivery, beforeMillis)
    if (Exit.isSuccess(exit)) return handled(attempts)
    if (isAlreadyHandled(exit.cause)) return alreadyHandled
    if (partition.stopping) return abandoned(attempts)
    judged = judge(context, partition, record, { cause: exit.cause, cutOff })
  }
})

/** A wait between two attempts, unless it would use up the processing budget. */
export const withinBudget = (
  context: ConsumerContext<unknown>,
  partition: Partition,
  delivery: DeliveryContext,
  delay: number | undefined
): number | undefined => {
  if (delay === undefined || spentMillis(context, delivery) + delay < budgetMillis(context.definition)) return delay
  report(context, partition, { _tag: "ProcessingBudgetReached" })
  return undefined
}

/** Waits for the next attempt of a delivery. */
export const backOff = (
  { clock }: ConsumerContext<unknown>,
  partition: Partition,
  delivery: DeliveryContext,
  millis: number
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const clockWasSet = Clocks.adjustments(clock)
    return Effect.map(partition.sleep(millis), () => {
      delivery.startedMillis += clockWasSet()
    })
  })

/** The waits of one delivery, one by one: milliseconds, and undefined when the attempts are used up. */
export const stepper = (
  definition: BindingDefinition<unknown>
): Effect.Effect<(nowMillis: number) => Effect.Effect<number | undefined>> =>
  Effect.map(
    Schedule.toStep(Backoff.schedule(definition.retry.blocking)),
    (step) => (nowMillis) =>
      Pull.matchEffect(step(nowMillis, undefined), {
        onSuccess: ([, delay]) => Effect.succeed<number | undefined>(Duration.toMillis(delay)),
        onFailure: Effect.failCause,
        onDone: () => Effect.succeed(undefined)
      })
  )

/**
 * Waits for the turn of a record that cannot be read: there is no attempt, but what holds attempts, an open circuit breaker above all, holds its dead
 * letter, too (ruling 28). False when the partition stops first.
 */
export const slotForUndecodable = <R>(context: ConsumerContext<R>, partition: Partition): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const delivery = deliveryFrom(context.clock.currentTimeMillisUnsafe())
    const lease = context.slots.within(partition, delivery, () => Effect.fail("unreadable"))
    return Effect.flatMap(Effect.exit(lease), (exit) =>
      missedSlot(context, delivery) ? slotForUndecodable(context, partition) : Effect.succeed(!Exit.hasInterrupts(exit))
    )
  })

/**
 * The turn of a record that cannot be read is over. True when the breaker has opened since it began, as whoever gets the place next may make it: the record
 * waits for another turn (ruling 28).
 */
export const missedSlot = ({ breaker }: ConsumerContext<unknown>, delivery: DeliveryContext): boolean => {
  const hasOpened = breaker?.hasOpened(delivery) === true
  breaker?.release(delivery)
  return hasOpened
}

/** A record that cannot be read, and has missed its turn. */
export const waitsForSlot: DeliveryResult = { settlement: "HeldByBreaker", attempts: 0, failure: undefined }

/** A record that cannot be read: to the dead letter topic, without an attempt (connector seed §4.10). */
export const settleUndecodable = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  undecodable: Undecodable
): DeliveryResult => {
  const failure = Failures.fromUnknown(undecodable.value ?? undecodable.key)
  const firstFailureMillis = context.clock.currentTimeMillisUnsafe()
  reportAttemptFailed(context, partition, record, 0, failure, undefined)
  return deadLetter(
    context,
    partition,
    record,
    { attempts: 0, failure, firstFailureMillis, undecodable },
    "NON_RETRYABLE"
  )
}

const handled = (attempts: number): DeliveryResult => ({ settlement: "Handled", attempts, failure: undefined })

/** No attempt: its handler was not called. */
const alreadyHandled: DeliveryResult = { settlement: "Skipped", attempts: 0, failure: undefined }

const abandoned = (attempts: number): DeliveryResult => ({ settlement: "Abandoned", attempts, failure: undefined })

/** The breaker is open: the record stays where it is, and its delivery begins anew when the breaker lets it. */
const heldByBreaker = (attempts: number, failure: Failure | undefined): DeliveryResult => ({
  settlement: "HeldByBreaker",
  attempts,
  failure
})

/** Waits until records may start; answers how long that took, which does not count against the budget. */
export const pausedMillis = <R>(context: ConsumerContext<R>, partition: Partition): Effect.Effect<number> =>
  Effect.suspend(() => {
    const before = context.clock.currentTimeMillisUnsafe()
    return Effect.map(partition.runnable, () => context.clock.currentTimeMillisUnsafe() - before)
  })
