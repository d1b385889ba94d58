/**
 * The verdict about the records of a batch after a call of its handler: which are done, which failed, and which it did not reach.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { BatchProcessing } from "../../EventBusError.ts"
import { isInstance } from "../base/properties.ts"

/** Indices are those of the batch. */
export interface Verdict {
  readonly done: ReadonlyArray<number>
  readonly failed: ReadonlyArray<readonly [index: number, error: unknown]>
  /** The handler did not reach these. */
  readonly rest: ReadonlyArray<number>
  /** These were handled before, and were not handed over. */
  readonly already: ReadonlyArray<number>
}

/**
 * How a call ended that got only some of the records that were meant for it, as a value or as an error. The indices of its verdict are positions among those that were
 * meant for it.
 */
export class PartOfBatch {
  readonly _tag = "PartOfBatch"
  readonly verdict: Verdict

  constructor(verdict: Verdict) {
    this.verdict = verdict
  }
}

/** The verdict of a call. `given`: the indices that were meant for it. Undefined after a plain success, and when the handler named no record, or one that it did not get. */
export const ofExit = (exit: Exit.Exit<unknown, unknown>, given: ReadonlyArray<number>): Verdict | undefined => {
  if (Exit.isFailure(exit)) return of(exit.cause, given)
  return isInstance(exit.value, PartOfBatch) ? translated(exit.value.verdict, given) : undefined
}

/** The verdict of a call that failed. */
export const of = (cause: Cause.Cause<unknown>, given: ReadonlyArray<number>): Verdict | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (isInstance(error, PartOfBatch)) return translated(error.verdict, given)
  if (!isInstance(error, BatchProcessing)) return undefined
  const failures = new Map(error.failures.map((failure) => [failure.index, failure.error]))
  if (Array.from(failures.keys()).some((index) => !Number.isInteger(index) || index < 0 || index >= given.length))
    return undefined
  const end = error.kind === "from" ? error.failedIndex : given.length
  const reached = given.slice(0, end)
  const failed = error.kind === "from" ? [error.failedIndex] : Array.from(failures.keys()).sort((a, b) => a - b)
  return {
    done: reached.filter((_, at) => !failures.has(at)),
    failed: failed.map((at) => [given[at]!, failures.get(at)] as const),
    rest: error.kind === "from" ? given.slice(error.failedIndex + 1) : [],
    already: []
  }
}

/** The failure of the record of a batch of one: a verdict about it is that record's failure. */
export const causeOfOne = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> => {
  const failed = of(cause, [0])?.failed[0]
  return failed === undefined ? cause : Cause.fail(failed[1])
}

const translated = ({ done, failed, rest, already }: Verdict, given: ReadonlyArray<number>): Verdict => {
  const indices = (positions: ReadonlyArray<number>) => positions.map((at) => given[at]!)
  return {
    ...{ done: indices(done), rest: indices(rest), already: indices(already) },
    failed: failed.map(([at, error]) => [given[at]!, error] as const)
  }
}
