/**
 * Decides what a replay does about each dead letter that it comes to.
 */
import * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as ReplayProgress from "./replayProgress.ts"
import * as Refusals from "./replayRefusals.ts"
import * as Restores from "./replayRestores.ts"
import { batchRecords, type Run } from "./replayRun.ts"
import * as Sizes from "./replaySizes.ts"

/** `exhausted`: it was replayed too often. `refused`: the broker refused its copy. `foreign`: it belongs to another group (ruling 71). */
export type Verdict = "take" | "leave" | "stop" | "exhausted" | "refused" | "foreign"

export const of = (
  run: Run,
  partition: ReplayProgress.PartitionProgress,
  letter: DeadLetterRecord.DeadLetterRecord
): Verdict => {
  const { options, selection } = run
  const { record } = letter
  const isForeign = CopyOwner.foreign(record, options) !== undefined
  if (options.ownsPosition && isForeign && record.offset < partition.position) return "leave"
  if (isForeign) {
    // A run in order passes all of them over, so that a young one never stops it.
    return selection.inOrder || selection.select(letter) === "take" ? "foreign" : "leave"
  }
  if (selection.restores !== undefined)
    return Restores.isGivenUp(run, partition, letter) ? selection.select(letter) : "leave"
  if (ReplayProgress.isPassed(partition, record) && (options.ownsPosition || selection.takesHandled !== true))
    return "leave"
  if (ReplayProgress.isTaken(partition, record)) return "leave"
  const verdict = selection.select(letter)
  if (verdict !== "take") return verdict
  const limit = selection.maxReplays ?? options.maxReplays
  const wasLeft = selection.passesOverOnce === true && ReplayProgress.isLeft(partition, record)
  if (letter.replayCount >= limit) return wasLeft ? "leave" : "exhausted"
  if (wasLeft && ReplayProgress.isRefused(partition, record)) return "leave"
  return Refusals.isRefused(run, letter) ? "refused" : "take"
}

/** One or two refusals cost less than a look at the limits of their topics. */
const fewestToLook = 3

/** Whether the run would take the letter, and its copy is likely to be refused. */
export const isLikelyRefused = (
  run: Run,
  partition: ReplayProgress.PartitionProgress,
  letter: DeadLetterRecord.DeadLetterRecord
): boolean => of(run, partition, letter) === "take" && Refusals.isDoubtful(run, partition, letter)

/** The verdict on a letter that is likely to be refused, once it was tried, with the likely ones of those behind it. */
export const afterTrial = Effect.fnUntraced(function* (
  run: Run,
  partition: ReplayProgress.PartitionProgress,
  letter: DeadLetterRecord.DeadLetterRecord,
  behind: ReadonlyArray<ConsumerRecord>
) {
  const isLikely = (each: DeadLetterRecord.DeadLetterRecord) => isLikelyRefused(run, partition, each)
  const likely = [letter, ...behind.map(DeadLetterRecord.read).filter(isLikely)].slice(0, batchRecords)
  // A prepared value may have another size.
  const isSizeKnown = run.selection.planned?.prepare === undefined
  if (likely.length >= fewestToLook && isSizeKnown) yield* Sizes.noteTooLarge(run, likely)
  const left = likely.filter(isLikely)
  if (left.length > 0) yield* Refusals.tryAll(run, left)
  return of(run, partition, letter)
})
