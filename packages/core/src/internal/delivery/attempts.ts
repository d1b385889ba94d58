/**
 * The slow path of one record: its first attempt failed. Attempts in place, classification, and the route at the end of them.
 *
 * What ends it early: the partition stops (the record stays unfinished, and nothing is published for it), the processing budget is used
 * up, the breaker opens, or the route says so. A record is settled once.
 */
import { type Cause, Duration, Effect, Exit, Pull, Schedule } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import { ProcessingBudgetExceeded } from "../../EventBusError.ts"
import * as Clocks from "../base/clocks.ts"
import type { Decision } from "../failure/classification.ts"
import * as Failure from "../failure/failure.ts"
import type { Partition } from "../partition/partition.ts"
import type { Undecodable } from "../record/decoding.ts"
import type { Settled } from "../record/deliveryResult.ts"
import * as Backoff from "../retry/backoff.ts"
import { type BindingDefinition, budgetMillis } from "../settings/bindingDefinition.ts"
import { isAlreadyHandled } from "../settings/idempotent.ts"
import { type Timer, timerFrom } from "../slots/concurrencySlots.ts"
import { attemptFailed, called, type Handling, report, spentMillis } from "./consumerContext.ts"
import { deadLetter, retryStateOf, type Story, takeRoute } from "./routing.ts"

/** One failed run: why, the timer of its delivery, and whether the processing budget cut it off. */
export interface FailedRun {
  readonly cause: Cause.Cause<unknown>
  readonly timer: Timer
  readonly cutOff: boolean
}

/** Pause after a handler that interrupted itself, which is neither success nor failure (ruling 16). */
export const selfInterruptedMillis = 1000

/** The attempts of a tier are used up, or its time is. */
const exhausted: Decision = { inPlace: false, destination: { _tag: "NextTier" }, permanent: false }

/** A failure of the handler, and what it means. */
interface Judged {
  readonly failure: Failure.Failure
  readonly decision: Decision
}

/** A settled record, or what settles it. */
export type Settling<R> = Settled | Effect.Effect<Settled, never, R>

/** Settles a record whose first run failed; `again` is one more run of it, on the timer of the delivery. */
export const settleFailed = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  first: FailedRun,
  again: (timer: Timer) => Effect.Effect<unknown, unknown, R>
): Effect.Effect<Settled, never, R> =>
  Effect.suspend(() => asEffect(settleAtOnce(handling, partition, record, first, again)))

/** The same, without an effect where nothing has to be waited for: it is not tried again in place, and goes where only a copy of it has to. */
export const settleAtOnce = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  first: FailedRun,
  again: (timer: Timer) => Effect.Effect<unknown, unknown, R>
): Settling<R> => {
  const { breaker, definition } = handling
  const { timer } = first
  const settling = (): Settling<R> => {
    if (isAlreadyHandled(first.cause)) return alreadyHandled
    if (partition.stopping) return unfinished(1)
    const judged = judge(handling, partition, record, first)
    const firstFailureMillis = handling.clock.currentTimeMillisUnsafe()
    return judged !== undefined && (!judged.decision.inPlace || definition.retry.blocking.maxAttempts === 1)
      ? giveUp(handling, partition, record, timer, judged, { attempts: 1, firstFailureMillis })
      : attempts(handling, partition, record, { timer, judged, firstFailureMillis }, again)
  }
  const settled = settling()
  if (breaker === undefined) return settled
  const release = () => breaker.release(timer)
  if (Effect.isEffect(settled)) return Effect.ensuring(settled, Effect.sync(release))
  release()
  return settled
}

const asEffect = <R>(settling: Settling<R>): Effect.Effect<Settled, never, R> =>
  Effect.isEffect(settling) ? settling : Effect.succeed(settling)

/** Undefined for a handler that interrupted itself. */
const judge = (
  handling: Handling<unknown>,
  partition: Partition,
  record: ConsumerRecord,
  { cause, cutOff }: Pick<FailedRun, "cause" | "cutOff">
): Judged | undefined => {
  const { definition } = handling
  if (cutOff) {
    const error = new ProcessingBudgetExceeded({ budgetMillis: budgetMillis(definition) })
    return { failure: Failure.fromUnknown(error), decision: exhausted }
  }
  const failure = Failure.fromCause(cause)
  if (failure === undefined) return undefined
  const tier = partition.tier === undefined ? 0 : retryStateOf(handling, partition, record).tier
  return { failure, decision: definition.classify(cause, tier, failure) }
}

/** No further attempt in place. */
const giveUp = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  timer: Timer,
  { failure, decision }: Judged,
  { attempts, firstFailureMillis }: Pick<Story, "attempts" | "firstFailureMillis">
): Settling<R> => {
  attemptFailed(handling, partition, record, attempts, failure, undefined)
  if (handling.breaker?.failed(timer, decision.permanent)) return refused(attempts, failure)
  return takeRoute(handling, partition, record, decision.destination, { attempts, failure, firstFailureMillis })
}

/** What is known when the attempts in place begin: the first one has failed. */
interface Begun {
  readonly timer: Timer
  readonly judged: Judged | undefined
  readonly firstFailureMillis: number
}

const attempts = Effect.fnUntraced(function* <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  { timer, judged: first, firstFailureMillis }: Begun,
  again: (timer: Timer) => Effect.Effect<unknown, unknown, R>
) {
  const { definition, clock, breaker } = handling
  const nextDelay = yield* stepper(definition)
  let attempts = 1
  let judged = first

  while (true) {
    let delay: number | undefined = selfInterruptedMillis
    const failure = judged?.failure
    if (judged !== undefined) {
      const next = judged.decision.inPlace ? yield* nextDelay(clock.currentTimeMillisUnsafe()) : undefined
      delay = withinBudget(handling, partition, timer, next)
      if (delay === undefined) {
        return yield* asEffect(giveUp(handling, partition, record, timer, judged, { attempts, firstFailureMillis }))
      }
      attemptFailed(handling, partition, record, attempts, judged.failure, delay)
      attempts++
    }
    yield* backOff(handling, partition, timer, delay)
    const made = failure === undefined ? attempts : attempts - 1
    if (partition.stopping) return unfinished(made)
    if (breaker?.hasOpened(timer)) return refused(made, failure)
    if (!partition.open) {
      // Others may find out meanwhile how the dependency is.
      breaker?.release(timer)
      timer.startedMillis += yield* pausedMillis(handling, partition)
      if (partition.stopping) return unfinished(made)
    }
    const beforeMillis = spentMillis(handling, timer)
    const { exit, cutOff } = yield* partition.guard(
      Effect.suspend(() => again(timer)),
      timer
    )
    if (handling.definition.handler._tag !== "Transactional") called(handling, timer, beforeMillis)
    if (Exit.isSuccess(exit)) return handled(attempts)
    if (isAlreadyHandled(exit.cause)) return alreadyHandled
    if (partition.stopping) return unfinished(attempts)
    judged = judge(handling, partition, record, { cause: exit.cause, cutOff })
  }
})

/** A wait between two attempts, unless it would use up the processing budget. */
export const withinBudget = (
  handling: Handling<unknown>,
  partition: Partition,
  timer: Timer,
  delay: number | undefined
): number | undefined => {
  if (delay === undefined || spentMillis(handling, timer) + delay < budgetMillis(handling.definition)) return delay
  report(handling, partition, { _tag: "ProcessingBudgetReached" })
  return undefined
}

/** Waits for the next attempt of a delivery. */
export const backOff = (
  { clock }: Handling<unknown>,
  partition: Partition,
  timer: Timer,
  millis: number
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const clockWasSet = Clocks.adjustments(clock)
    return Effect.map(partition.sleep(millis), () => {
      timer.startedMillis += clockWasSet()
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
export const turnOfUndecodable = <R>(handling: Handling<R>, partition: Partition): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const timer = timerFrom(handling.clock.currentTimeMillisUnsafe())
    const turn = handling.places.within(partition, timer, () => Effect.fail("unreadable"))
    return Effect.flatMap(Effect.exit(turn), (exit) =>
      missedTurn(handling, timer) ? turnOfUndecodable(handling, partition) : Effect.succeed(!Exit.hasInterrupts(exit))
    )
  })

/**
 * The turn of a record that cannot be read is over. True when the breaker has opened since it began, as whoever gets the place next may make it: the record
 * waits for another turn (ruling 28).
 */
export const missedTurn = ({ breaker }: Handling<unknown>, timer: Timer): boolean => {
  const hasOpened = breaker?.hasOpened(timer) === true
  breaker?.release(timer)
  return hasOpened
}

/** A record that cannot be read, and has missed its turn. */
export const waitsForTurn: Settled = { settlement: "Refused", attempts: 0, failure: undefined }

/** A record that cannot be read: to the dead letter topic, without an attempt (connector seed §4.10). */
export const settleUndecodable = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  undecodable: Undecodable
): Settled => {
  const failure = Failure.fromUnknown(undecodable.value ?? undecodable.key)
  const firstFailureMillis = handling.clock.currentTimeMillisUnsafe()
  attemptFailed(handling, partition, record, 0, failure, undefined)
  return deadLetter(
    handling,
    partition,
    record,
    { attempts: 0, failure, firstFailureMillis, undecodable },
    "NON_RETRYABLE"
  )
}

const handled = (attempts: number): Settled => ({ settlement: "Handled", attempts, failure: undefined })

/** No attempt: its handler was not called. */
const alreadyHandled: Settled = { settlement: "Skipped", attempts: 0, failure: undefined }

const unfinished = (attempts: number): Settled => ({ settlement: "Unfinished", attempts, failure: undefined })

/** The breaker is open: the record stays where it is, and its delivery begins anew when the breaker lets it. */
const refused = (attempts: number, failure: Failure.Failure | undefined): Settled => ({
  settlement: "Refused",
  attempts,
  failure
})

/** Waits until records may start; answers how long that took, which does not count against the budget. */
export const pausedMillis = <R>(handling: Handling<R>, partition: Partition): Effect.Effect<number> =>
  Effect.suspend(() => {
    const before = handling.clock.currentTimeMillisUnsafe()
    return Effect.map(partition.runnable, () => handling.clock.currentTimeMillisUnsafe() - before)
  })
