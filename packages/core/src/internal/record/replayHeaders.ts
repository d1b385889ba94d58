/**
 * Writes and reads the headers of a replayed copy. The copy starts again at tier 0 or at the given tier, and keeps its origin and the time of its first failure
 * (ruling 30). On the main topic they are believed only while the bond holds (ruling 70).
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import type * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as CopyOwner from "./copyOwner.ts"
import { addOrigin, carriedOver, number, type Origin } from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import { withoutOtherFormats } from "./headerSets.ts"
import * as HeaderValues from "./headerValues.ts"
import { inHeadersOf, readOrigin } from "./origin.ts"
import * as ReplayBond from "./replayBond.ts"
import * as RunMark from "./runMark.ts"

/** The history of a replayed record. `replayCount` includes this replay. */
export interface Replayed {
  readonly origin: Origin
  /** Epoch milliseconds. */
  readonly firstFailureMillis: number
  readonly replayCount: number
}

/** The group that reads a record, and the cluster that it reads it from. */
export interface Reader extends CopyOwner.Groups {
  readonly clusterId: string
}

const maxReplayCount = 1_000_000_000

/** The headers of a copy in the source topic: the user's own, origin, first failure, and the marks of a replay for this group. */
export const forSource = (
  letter: DeadLetterRecord.DeadLetterRecord,
  groupId: string,
  target: ReplayBond.Target,
  runId?: string
): ReadonlyArray<Header> => [
  ...usersOwn(letter),
  ...originHeaders(letter),
  number(Names.firstFailureTimestamp, letter.firstFailureTimestamp),
  ...marks(letter, groupId, runId),
  ReplayBond.header(target)
]

/** The headers of a copy in a retry topic: its first delivery there, with all attempts left. */
export const forTier = (
  letter: DeadLetterRecord.DeadLetterRecord,
  groupId: string,
  { topic, tier }: { readonly topic: string; readonly tier: number },
  nowMillis: number,
  runId?: string
): ReadonlyArray<Header> => [
  ...usersOwn(letter),
  ...originHeaders(letter),
  number(Names.totalAttempts, 0),
  number(Names.firstFailureTimestamp, letter.firstFailureTimestamp),
  number(Names.retryTier, tier),
  number(Names.retryAttempt, 1),
  number(Names.retryTimestamp, nowMillis),
  ...marks(letter, groupId, runId),
  CopyOwner.mark(topic, groupId)
]

/**
 * Reads a record of the main topic that this group replayed; undefined for every other record. Only a record whose origin is this topic can have been replayed
 * to it.
 */
export const read = (record: ConsumerRecord, reader: Reader): Replayed | undefined => {
  const group = boundGroup(record, reader.clusterId)
  if (group === undefined || !CopyOwner.isOurs(reader, group)) return undefined
  const origin = readOrigin(record, inHeadersOf(record))
  if (origin?.topic !== record.topic) return undefined
  const firstFailure = HeaderValues.timestamp(HeaderValues.last(record.headers, Names.firstFailureTimestamp))
  return { origin, firstFailureMillis: firstFailure ?? record.timestamp, replayCount: countOf(record) ?? 1 }
}

/** The group that the record was replayed for when that is another one, so that this group passes it over (ruling 61). A broken bond means: handle it. */
export const foreign = (record: ConsumerRecord, reader: Reader): string | undefined => {
  const group = boundGroup(record, reader.clusterId)
  return group === undefined || CopyOwner.isOurs(reader, group) ? undefined : group
}

/** The run that published the record for this group, whatever its origin is. */
export const runOf = (record: ConsumerRecord, reader: Reader): RunMark.RunMark | undefined => {
  const value = HeaderValues.last(record.headers, Names.runId)
  const group = value === undefined ? undefined : boundGroup(record, reader.clusterId)
  return group !== undefined && CopyOwner.isOurs(reader, group) ? RunMark.read(value) : undefined
}

const countOf = ({ headers }: ConsumerRecord): number | undefined =>
  HeaderValues.wholeNumber(HeaderValues.last(headers, Names.replayCount), 1, maxReplayCount)

/** The group that a replay published the record for; undefined where no bond holds. */
const boundGroup = (record: ConsumerRecord, clusterId: string): string | undefined => {
  const group = HeaderValues.text(HeaderValues.last(record.headers, Names.replayGroup))
  return group !== undefined && countOf(record) !== undefined && ReplayBond.holds(record, clusterId) ? group : undefined
}

const usersOwn = (letter: DeadLetterRecord.DeadLetterRecord): ReadonlyArray<Header> =>
  withoutOtherFormats(carriedOver(letter.headers))

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

const encoder = new TextEncoder()

/** The group is never cut: a cut name would be another group's. */
const marks = (
  { replayCount, record: { partition, offset } }: DeadLetterRecord.DeadLetterRecord,
  groupId: string,
  runId: string | undefined
): ReadonlyArray<Header> => [
  number(Names.replayCount, Math.min(maxReplayCount, replayCount + 1)),
  { key: Names.replayGroup, value: encoder.encode(groupId) },
  ...(runId === undefined ? [] : [RunMark.header({ runId, partition, offset })])
]
