/**
 * A dead letter topic as the views of operators read it, and the reading of one record of it.
 */
import type { UnreadableBatch } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { State } from "../../DeadLetterList.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import type * as Fingerprint from "../failure/fingerprint.ts"
import * as FailureHeaders from "../record/failureHeaders.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"

/** With the user's function that groups dead letters whose headers have no fingerprint. */
export interface LettersTarget extends ReplayProgress.LimitedTarget {
  readonly ownFingerprint?: Fingerprint.OwnFingerprint | undefined
  /** The topic that the dead letters are of, where the binding reads several. */
  readonly sourceTopic?: string | undefined
}

/** A dead letter and its state. */
export interface StatedLetter {
  readonly letter: DeadLetterRecord.DeadLetterRecord
  readonly state: State
}

/** Reads a record of the topic. */
export const read = (
  target: LettersTarget,
  progress: ReplayProgress.PartitionProgress,
  record: ConsumerRecord
): StatedLetter => {
  const letter = DeadLetterRecord.read(record)
  return {
    letter: FailureHeaders.regrouped(letter, target.ownFingerprint),
    state: ReplayProgress.stateOf(target, progress, record, letter)
  }
}

/** Of a batch that cannot be read, only the position is known. */
export const ofUnreadable = ({ topic, partition, offset }: UnreadableBatch): StatedLetter => {
  const record = { topic, partition, offset, timestamp: 0, key: null, value: null, headers: [] }
  return { letter: DeadLetterRecord.read(record), state: "unreadable" }
}

/** The whole log of a partition. */
export const wholeOf = (
  { deadLetterTopic }: Pick<LettersTarget, "deadLetterTopic">,
  { partition, logStart, logEnd }: ReplayProgress.PartitionProgress
) => ({ topic: deadLetterTopic, partition, from: logStart, to: logEnd })
