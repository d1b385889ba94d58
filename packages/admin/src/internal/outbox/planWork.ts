/**
 * The work of this process on plans over dead events: each goes on in the background until it is done, stops itself, or somebody cancels it.
 */
import { LogLine } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { DeadEventPlanApplied, DeadEventPlanNotRunning } from "../../AdminError.ts"
import type { ApplyReport } from "../../OutboxPort.ts"
import { given } from "../answersOf.ts"
import type { KeptPlan, Work } from "./keptPlans.ts"

/** Begins the work on a plan, and returns once it has begun. A plan that could not begin is as if nobody had applied it. Closing the scope ends the work. */
export const begin = <E>(
  kept: KeptPlan,
  scope: Scope.Scope,
  work: (options: { readonly begun: Deferred.Deferred<void> }) => Effect.Effect<ApplyReport, E>
): Effect.Effect<void, E | DeadEventPlanApplied> =>
  Effect.gen(function* () {
    const begun = yield* Deferred.make<void>()
    const startedMillis = yield* Clock.currentTimeMillis
    const working = Effect.interruptible(work({ begun })).pipe(
      Effect.onExit((exit) => end(kept, startedMillis, Deferred.isDoneUnsafe(begun), exit))
    )
    // In one step: of two callers at once, one applies the plan.
    const fiber = yield* Effect.uninterruptible(
      Effect.suspend(() => {
        if (kept.work !== undefined) return Effect.fail(new DeadEventPlanApplied({ id: kept.plan.id }))
        kept.work = { state: "running", startedMillis }
        return Effect.tap(Effect.forkIn(working, scope), (forked) =>
          Effect.sync(() => {
            kept.fiber = forked
          })
        )
      })
    )
    yield* Effect.raceFirst(Deferred.await(begun), Effect.asVoid(Fiber.join(fiber)))
  })

/** Ends the work, and waits for its end. */
export const cancel = (kept: KeptPlan, reason: string): Effect.Effect<void, DeadEventPlanNotRunning> =>
  Effect.suspend(() => {
    const { fiber, plan, work } = kept
    const state = work?.state ?? "planned"
    if (work === undefined || state !== "running" || fiber === undefined)
      return Effect.fail(new DeadEventPlanNotRunning({ id: plan.id, state }))
    kept.work = { ...work, stateReason: reason }
    return Fiber.interrupt(fiber)
  })

const end = (kept: KeptPlan, startedMillis: number, hasBegun: boolean, exit: Exit.Exit<ApplyReport, unknown>) =>
  Effect.gen(function* () {
    if (!hasBegun) {
      kept.work = undefined
      return
    }
    kept.work = { ...workOf(exit, kept.work), startedMillis, endedMillis: yield* Clock.currentTimeMillis }
    // Nobody waits any more for the error of work that has begun, so the log has it.
    if (kept.work.state === "failed" && Exit.isFailure(exit))
      yield* LogLine.error(
        `The work on plan ${kept.plan.id} over dead events failed; the rest needs a new plan`,
        exit.cause
      )
  })

const workOf = (
  exit: Exit.Exit<ApplyReport, unknown>,
  before: Work | undefined
): Omit<Work, "startedMillis" | "endedMillis"> => {
  if (Exit.isSuccess(exit)) {
    const { state, stateReason, dealtWith } = exit.value
    return { state, dealtWith, ...given("stateReason", stateReason) }
  }
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return { state: "cancelled", ...given("stateReason", before?.stateReason) }
  }
  return { state: "failed", stateReason: "the log of the process says why; the rest needs a new plan" }
}
