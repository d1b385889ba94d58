/**
 * The slow path of one record: its first attempt failed. Attempts in place, classification, and the route at the end of them.
 *
 * What ends it early: the partition stops (the record stays unfinished, and nothing is published for it), the processing budget is used
 * up, or the route says so. A record is settled once.
 */
import { type Cause, Duration, Effect, Exit, Pull, Schedule } from "effect"
import type { ConsumerRecord } from "../ConsumerRecord.ts"
import { ProcessingBudgetExceeded } from "../EventBusError.ts"
import type { Settlement } from "../EventBusEvent.ts"
import * as Route from "../Route.ts"
import * as Backoff from "./backoff.ts"
import { type BindingDefinition, budgetMillis } from "./definition.ts"
import type { Undecodable } from "./delivery.ts"
import * as Failure from "./failure.ts"
import { attemptFailed, deadLetterFailed, type Handling, report } from "./handling.ts"
import type { Partition } from "./partition.ts"
import type { Timer } from "./places.ts"

export interface Settled {
  readonly settlement: Settlement
  readonly attempts: number
  readonly failure: Failure.Failure | undefined
}

/** One failed run: why, when it began, and whether the processing budget cut it off. */
export interface FailedRun {
  readonly cause: Cause.Cause<unknown>
  readonly startedMillis: number
  readonly cutOff: boolean
}

/** Pause after a handler that interrupted itself, which is neither success nor failure (ruling 16). */
const selfInterruptedMillis = 1000

/** Settles a record whose first run failed; `again` is one more run of it, on the timer of the delivery. */
export const settleFailed = Effect.fnUntraced(function* <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  first: FailedRun,
  again: (timer: Timer) => Effect.Effect<unknown, unknown, R>
) {
  const { definition, clock } = handling
  const budget = budgetMillis(definition)
  const nextDelay = yield* stepper(definition)
  const firstFailureMillis = clock.currentTimeMillisUnsafe()
  const timer: Timer = { startedMillis: first.startedMillis }
  let attempts = 1
  let run: { readonly cause: Cause.Cause<unknown>; readonly cutOff: boolean } = first

  while (true) {
    if (partition.stopping) return unfinished(attempts)
    const failure = run.cutOff
      ? Failure.fromUnknown(new ProcessingBudgetExceeded({ budgetMillis: budget }))
      : Failure.fromCause(run.cause)
    let delay: number | undefined = selfInterruptedMillis
    if (failure !== undefined) {
      const now = clock.currentTimeMillisUnsafe()
      const route = run.cutOff ? Route.retry : classify(handling, run.cause)
      delay = route._tag === "Retry" ? yield* nextDelay(now) : undefined
      if (run.cutOff) delay = undefined
      if (delay !== undefined && now + delay - timer.startedMillis >= budget) {
        report(handling, partition, { _tag: "ProcessingBudgetReached" })
        delay = undefined
      }
      attemptFailed(handling, partition, record, attempts, failure, delay)
      if (delay === undefined) {
        return yield* takeRoute(handling, partition, record, route, { attempts, failure, firstFailureMillis })
      }
      attempts++
    }
    yield* partition.sleep(delay)
    timer.startedMillis += yield* pausedMillis(handling, partition)
    if (partition.stopping) return unfinished(failure === undefined ? attempts : attempts - 1)
    const { exit, cutOff } = yield* partition.guard(
      Effect.suspend(() => again(timer)),
      timer
    )
    if (Exit.isSuccess(exit)) return handled(attempts)
    run = { cause: exit.cause, cutOff }
  }
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

/** A record that cannot be read: to the dead letter topic, without an attempt (connector seed §4.10). */
export const settleUndecodable = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  undecodable: Undecodable
): Effect.Effect<Settled> => {
  const failure = Failure.fromUnknown(undecodable.value ?? undecodable.key)
  const firstFailureMillis = handling.clock.currentTimeMillisUnsafe()
  attemptFailed(handling, partition, record, 0, failure, undefined)
  return deadLetter(
    handling,
    partition,
    record,
    { attempts: 0, failure, firstFailureMillis },
    "NON_RETRYABLE",
    undecodable
  )
}

interface Story {
  readonly attempts: number
  readonly failure: Failure.Failure
  readonly firstFailureMillis: number
}

const handled = (attempts: number): Settled => ({ settlement: "Handled", attempts, failure: undefined })

const unfinished = (attempts: number): Settled => ({ settlement: "Unfinished", attempts, failure: undefined })

/** A classifier that throws must not decide by accident: the record keeps the default route. */
const classify = (handling: Handling<unknown>, cause: Cause.Cause<unknown>): Route.Route => {
  try {
    return handling.definition.route(cause)
  } catch {
    return Route.retry
  }
}

/** Waits until records may start; answers how long that took, which does not count against the budget. */
export const pausedMillis = <R>(handling: Handling<R>, partition: Partition): Effect.Effect<number> =>
  Effect.suspend(() => {
    const before = handling.clock.currentTimeMillisUnsafe()
    return Effect.map(partition.runnable, () => handling.clock.currentTimeMillisUnsafe() - before)
  })

const takeRoute = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  route: Route.Route,
  story: Story
): Effect.Effect<Settled> =>
  Route.match(route, {
    Retry: () => {
      if (handling.definition.onExhausted === "dead-letter") {
        return deadLetter(handling, partition, record, story, "RETRIES_EXHAUSTED")
      }
      partition.addReason("operator")
      return Effect.as(Effect.andThen(partition.syncFetch, handling.onHalted(partition)), {
        settlement: "Halted",
        ...story
      } as const)
    },
    DeadLetter: () => deadLetter(handling, partition, record, story, "NON_RETRYABLE"),
    Pause: () => Effect.as(handling.pauseBinding, { settlement: "Halted", ...story } as const),
    Skip: () => Effect.succeed({ settlement: "Skipped", ...story } as const)
  })

const deadLetter = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  story: Story,
  reason: "RETRIES_EXHAUSTED" | "NON_RETRYABLE",
  undecodable?: Undecodable
): Effect.Effect<Settled> =>
  Effect.map(
    handling.deadLetters.publish({
      partition,
      record,
      reason,
      undecodable,
      ...story,
      onRefused: (topic, error, attempt) => deadLetterFailed(handling, partition, record, topic, error, attempt)
    }),
    (acknowledged) => ({ settlement: acknowledged ? "DeadLettered" : "Unfinished", ...story })
  )
