/**
 * A partition as a part of a unit (`orderingMode: "PER_KEY"`): the schedulers ask it which records are theirs, and tell it what became of them. Room `order` answers.
 */
import type * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { ResultWithCopy } from "../record/deliveryResult.ts"
import type { ParkedKeys } from "./commitMetadata.ts"

export interface OrderedPart {
  /** Whether no record need be asked about, since no key is parked. Never true in a retry topic. */
  readonly isQuiet: boolean
  /** Whether the record is not to be delivered now: the part finishes it. `sequence` is its number in the tracker. */
  readonly take: (record: ConsumerRecord, sequence: number) => boolean
  /** A record failed, and its copy is about to be published: its key is parked in this step. Answers the result to go on with. */
  readonly park: (record: ConsumerRecord, sequence: number, result: ResultWithCopy) => ResultWithCopy
  /** A record is done with; where a copy takes its place, the copy is acknowledged. The part finishes the record in the tracker, at once or once its key is free. */
  readonly finish: (sequence: number) => void
  /** Retention, or an operator, has removed what lies below this offset. */
  readonly lost: (below: bigint) => void
  /** Behind the last record of the main topic that is done of a key that was parked and is free: no lock covers it, only a commit does. */
  readonly freedTo: bigint
  /** False while so many keys are parked that no record of the main topic starts. */
  readonly hasRoom: boolean
  /** Returns when there is room. */
  readonly room: Effect.Effect<void>
  /** Records that wait behind parked keys, as far as they are known. 0 in a retry topic. */
  readonly followers: number
  /** The epoch in force at an offset; undefined in the main topic. */
  readonly epochAt: (offset: bigint) => number | undefined
  /** The keys whose locks are in retry topics; undefined without any, and in a retry topic. */
  readonly parked: () => ParkedKeys | undefined
}
