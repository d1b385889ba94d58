/**
 * Writes and reads the headers of a replayed copy. The copy starts again at tier 0 or at the given tier, and keeps its origin and the time of its first failure
 * (ruling 30).
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import { addOrigin, carriedOver, number, type Origin, text } from "./deadLetterHeaders.ts"
import { withoutOtherFormats } from "./deadLetterRecordHeaders.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

/** The history of a replayed record. `replayCount` includes this replay. */
export interface Replayed {
  readonly origin: Origin
  /** Epoch milliseconds. */
  readonly firstFailureMillis: number
  readonly replayCount: number
}

const maxReplayCount = 1_000_000_000

/** The headers of a copy in the source topic: the user's own, origin, first failure, and the marks of a replay for this group. */
export const forSource = (letter: DeadLetterRecord.DeadLetterRecord, groupId: string): ReadonlyArray<Header> => [
  ...usersOwn(letter),
  ...originHeaders(letter),
  number(Names.firstFailureTimestamp, letter.firstFailureTimestamp),
  ...marks(letter, groupId)
]

/** The headers of a copy in a retry topic: its first delivery there, with all attempts left. */
export const forTier = (
  letter: DeadLetterRecord.DeadLetterRecord,
  groupId: string,
  tier: number,
  nowMillis: number
): ReadonlyArray<Header> => [
  ...usersOwn(letter),
  ...originHeaders(letter),
  number(Names.totalAttempts, 0),
  number(Names.firstFailureTimestamp, letter.firstFailureTimestamp),
  number(Names.retryTier, tier),
  number(Names.retryAttempt, 1),
  number(Names.retryTimestamp, nowMillis),
  ...marks(letter, groupId)
]

/**
 * Reads a record of the main topic that this group replayed; undefined for every other record. Only a record whose origin is this topic can have been replayed
 * to it.
 */
export const read = (record: ConsumerRecord, groupId: string): Replayed | undefined => {
  const group = groupOf(record)
  if (group !== groupId) return undefined
  const letter = DeadLetterRecord.read(record)
  if (letter.originFrom !== "eventbus" || letter.originalTopic !== record.topic) return undefined
  return {
    origin: originOf(letter),
    firstFailureMillis: letter.firstFailureTimestamp,
    replayCount: letter.replayCount
  }
}

/** Whether the record was replayed for another group, so that this group skips it (ruling 61). */
export const isForAnotherGroup = (record: ConsumerRecord, groupId: string): boolean => {
  const group = groupOf(record)
  return group !== undefined && group !== groupId
}

/** The group that a record was replayed for. */
const groupOf = ({ headers }: ConsumerRecord): string | undefined => {
  const group = HeaderValues.text(HeaderValues.last(headers, Names.replayGroup))
  if (group === undefined) return undefined
  const count = HeaderValues.wholeNumber(HeaderValues.last(headers, Names.replayCount), 1, maxReplayCount)
  return count === undefined ? undefined : group
}

const usersOwn = (letter: DeadLetterRecord.DeadLetterRecord): ReadonlyArray<Header> =>
  withoutOtherFormats(carriedOver(letter.headers)).filter(
    ({ key }) => key !== Names.replayCount && key !== Names.replayGroup
  )

const originOf = (letter: DeadLetterRecord.DeadLetterRecord): Origin => ({
  topic: letter.originalTopic,
  partition: letter.originalPartition,
  offset: letter.originalOffset,
  timestamp: letter.originalTimestamp
})

const originHeaders = (letter: DeadLetterRecord.DeadLetterRecord): ReadonlyArray<Header> => {
  const headers: Array<Header> = []
  if (letter.originFrom !== "none") addOrigin(headers, originOf(letter))
  return headers
}

const marks = (letter: DeadLetterRecord.DeadLetterRecord, groupId: string): ReadonlyArray<Header> => [
  number(Names.replayCount, Math.min(maxReplayCount, letter.replayCount + 1)),
  text(Names.replayGroup, groupId)
]
