/**
 * The verdict of a batch handler about its records: which are done, which failed, and which it did not reach.
 */
import { Cause, Option } from "effect"
import { BatchProcessing } from "../../EventBusError.ts"

/** Indices are those of the batch. */
export interface Verdict {
  readonly done: ReadonlyArray<number>
  readonly failed: ReadonlyArray<readonly [index: number, error: unknown]>
  /** The handler did not reach these. */
  readonly rest: ReadonlyArray<number>
}

/** `given`: the indices that the handler got. Undefined when the handler named no record, or a record that it did not get. */
export const of = (cause: Cause.Cause<unknown>, given: ReadonlyArray<number>): Verdict | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (!(error instanceof BatchProcessing)) return undefined
  const failures = new Map(error.failures.map((failure) => [failure.index, failure.error]))
  if (Array.from(failures.keys()).some((index) => !Number.isInteger(index) || index < 0 || index >= given.length))
    return undefined
  const end = error.kind === "from" ? error.failedIndex : given.length
  const reached = given.slice(0, end)
  const failed = error.kind === "from" ? [error.failedIndex] : Array.from(failures.keys()).sort((a, b) => a - b)
  return {
    done: reached.filter((_, at) => !failures.has(at)),
    failed: failed.map((at) => [given[at]!, failures.get(at)] as const),
    rest: error.kind === "from" ? given.slice(error.failedIndex + 1) : []
  }
}
