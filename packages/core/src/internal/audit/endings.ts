/** How an action ended, by the exit of its effect. Errors are named by their tags: their messages may quote a record. */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type { Ending } from "../../AuditView.ts"

const of = (error: unknown): Ending => {
  const tag = Predicate.hasProperty(error, "_tag") ? String(error._tag) : "Error"
  // An error of the broker, also as the answer of the admin API: nobody knows what had been done by then.
  const isOfCluster = tag === "ClusterFailed" || Predicate.hasProperty(error, "retryable")
  return { outcome: isOfCluster ? "failed" : "refused", error: tag }
}

/** How an action ended that was run to this exit: `failed` for defects, interruptions and errors of the cluster, `refused` for all other errors. */
export const endingOf = (exit: Exit.Exit<unknown, unknown>): Ending => {
  if (Exit.isSuccess(exit)) return { outcome: "done" }
  if (Cause.hasDies(exit.cause)) return { outcome: "failed", error: "Defect" }
  if (Cause.hasInterruptsOnly(exit.cause)) return { outcome: "failed", error: "Interrupted" }
  return of(Cause.squash(exit.cause))
}
