/**
 * The operations on plans and runs, over the connector. A run that this process works on goes on in the background.
 */
import { LogLine, type ReplayRun } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { AdminRuns } from "../../AdminRuns.ts"
import type { Letters } from "../lettersOfTopic.ts"
import type { Shown } from "../masking.ts"
import * as RunAnswers from "./runAnswers.ts"

/** Closing the scope interrupts the runs that this process works on: any process resumes them. */
export const make = (connector: Letters, shown: Shown, scope: Scope.Scope): AdminRuns => {
  /** Answers once the work has begun, or with the error for which it did not. It goes on when the caller of the answer is gone. */
  const begin = <E>(
    name: string,
    id: string,
    work: (options: ReplayRun.WorkOptions) => Effect.Effect<ReplayRun.Receipt, E>
  ): Effect.Effect<void, E> =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const working = Effect.onExit(work({ begun }), (exit) => tell(name, id, begun, exit))
      const fiber = yield* Effect.forkIn(working, scope)
      yield* Effect.raceFirst(Deferred.await(begun), Effect.asVoid(Fiber.join(fiber)))
    })

  const receiptAfter = <E>(runs: ReplayRun.Runs, id: string, command: Effect.Effect<void, E>) =>
    Effect.map(Effect.andThen(command, runs.receipt(id)), (receipt) => RunAnswers.receiptOf(receipt, false))

  return {
    makePlan: Effect.fnUntraced(function* (name, request, { payload = false } = {}) {
      const runs = yield* connector.runs(name)
      return RunAnswers.planOf(yield* runs.plan(request), shown(payload))
    }),
    getPlan: Effect.fnUntraced(function* (name, id, { payload = false } = {}) {
      const runs = yield* connector.runs(name)
      return RunAnswers.planOf(yield* runs.getPlan(id), shown(payload))
    }),
    applyPlan: Effect.fnUntraced(function* (name, id) {
      const runs = yield* connector.runs(name)
      const applied = receiptAfter(
        runs,
        id,
        begin(name, id, (options) => runs.apply(id, options))
      )
      // The journal has the beginning of the run.
      return yield* Effect.catchTag(applied, "UnknownRun", Effect.die)
    }),
    runs: Effect.fnUntraced(function* (name, { payload = false } = {}) {
      const runs = yield* connector.runs(name)
      return RunAnswers.runsOf(yield* runs.list, shown(payload))
    }),
    receipt: Effect.fnUntraced(function* (name, id, { payload = false } = {}) {
      const runs = yield* connector.runs(name)
      return RunAnswers.receiptOf(yield* runs.receipt(id), shown(payload))
    }),
    pauseRun: Effect.fnUntraced(function* (name, id, reason) {
      const runs = yield* connector.runs(name)
      return yield* receiptAfter(runs, id, runs.pause(id, reason))
    }),
    cancelRun: Effect.fnUntraced(function* (name, id, reason) {
      const runs = yield* connector.runs(name)
      return yield* receiptAfter(runs, id, runs.cancel(id, reason))
    }),
    resumeRun: Effect.fnUntraced(function* (name, id) {
      const runs = yield* connector.runs(name)
      return yield* receiptAfter(
        runs,
        id,
        begin(name, id, (options) => runs.resume(id, options))
      )
    }),
    setRunRate: Effect.fnUntraced(function* (name, id, rate) {
      const runs = yield* connector.runs(name)
      return yield* receiptAfter(runs, id, runs.setRate(id, rate))
    })
  }
}

/** Nobody waits any more for the error of a run that has begun, so the log has it. */
const tell = (name: string, id: string, begun: Deferred.Deferred<void>, exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) && Deferred.isDoneUnsafe(begun)
    ? LogLine.error(`Run ${id} of binding '${name}' failed; it can be resumed`, exit.cause)
    : Effect.void
