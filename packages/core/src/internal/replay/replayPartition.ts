/** Replays one partition of a dead letter topic from its replay position on, one transaction per batch. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { UnreadableBatch } from "../../Broker.ts"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as TopicName from "../../TopicName.ts"
import * as BigInts from "../base/bigInts.ts"
import * as LogLine from "../base/logLine.ts"
import * as Audits from "./replayAudits.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayProgress from "./replayProgress.ts"
import * as Refusals from "./replayRefusals.ts"
import * as Restores from "./replayRestores.ts"
import { batchRecords, keyOf, LeaseNeeded, makesCopies, type Run, type Selection } from "./replayRun.ts"
import * as Verdicts from "./replayVerdicts.ts"
import * as TopicScan from "./topicScan.ts"

type Letter = DeadLetterRecord.DeadLetterRecord

/** Bytes of values that are enough for one transaction, which has a time limit. */
const batchBytes = 4 * 1024 * 1024

/** The records of the next transaction. */
interface Batch {
  readonly letters: ReadonlyArray<Letter>
  /** Records that the run passes over for the first time. Once the position is behind them, the journal alone tells that they are not dealt with. */
  readonly exhausted: ReadonlyArray<Letter>
  /** Records whose copies the broker refused, as above. */
  readonly refused: ReadonlyArray<Letter>
  /** Bytes of the values of `letters`. */
  readonly bytes: number
  readonly passedOver: number
  /** The owners of the dead letters of other groups. */
  readonly foreign: ReadonlyArray<string>
  /** Offsets of batches that cannot be read. */
  readonly unreadable: number
  /** The position at which the previous batch ended; 0 for the first. */
  readonly from: bigint
  /** All records below this offset are dealt with once the batch is. */
  readonly position: bigint
  /** The last record below `position`. */
  readonly last: ConsumerRecord | undefined
}

/** The offsets that the run comes to. */
export const rangeOf = (run: Run, partition: ReplayProgress.PartitionProgress): TopicScan.Range => ({
  topic: run.options.deadLetterTopic,
  partition: partition.partition,
  from: run.options.ownsPosition && run.selection.restores === undefined ? beginOf(run, partition) : partition.logStart,
  to: partition.logEnd
})

export const replayPartition = Effect.fnUntraced(function* (run: Run, partition: ReplayProgress.PartitionProgress) {
  const { options, selection, state, progress } = run
  const range = rangeOf(run, partition)
  let movesPosition = selection.inOrder && options.ownsPosition
  let batch: Batch = { ...nothing, from: 0n, position: range.from, last: undefined }
  const publish = Effect.suspend(() => {
    const ready = batch
    if (ready.position === (ready.from || range.from)) return Effect.void
    batch = { ...nothing, from: ready.position, position: ready.position, last: ready.last }
    return publishBatch(run, partition, ready, movesPosition)
  })
  /** The position never moves past a batch that nobody has read. Records behind it are replayed all the same, each with a note of its own. */
  const passUnreadable = Effect.fnUntraced(function* (page: TopicScan.Page, batchOf: UnreadableBatch) {
    const offsets = selection.concerns?.(batchOf) === false ? 0 : TopicScan.unreadableOffsets(page, partition.position)
    if (offsets > 0) {
      yield* publish
      movesPosition = false
      yield* warnOnce(run, batchOf)
    }
    const isNew = batchOf.offset >= (state.countedTo.get(partition.partition) ?? 0n)
    batch = { ...batch, unreadable: batch.unreadable + (isNew ? offsets : 0), position: page.nextOffset }
    return true
  })

  yield* Stream.runForEachWhile(
    progress.scan.pages(range),
    Effect.fnUntraced(function* (page) {
      const { records, nextOffset, unreadable } = page
      if (run.producer !== undefined && selection.planned !== undefined) yield* selection.planned.glance
      if (unreadable !== undefined) return yield* passUnreadable(page, unreadable)
      for (const [index, record] of records.entries()) {
        const letter = DeadLetterRecord.read(record)
        const verdict = Verdicts.isLikelyRefused(run, partition, letter)
          ? yield* Verdicts.afterTrial(run, partition, letter, records.slice(index + 1))
          : Verdicts.of(run, partition, letter)
        if (verdict === "stop") return false
        batch = withLetter(run, partition, batch, letter, verdict)
        const isEnough = !(state.replayed + batch.letters.length < selection.count)
        if (isEnough || isFull(batch, selection)) yield* publish
        if (isEnough) return false
      }
      batch = { ...batch, position: nextOffset }
      return true
    })
  )
  yield* publish
})

/** A run that starts again comes to the same batches. */
const warnOnce = ({ state: { warned } }: Run, batch: UnreadableBatch) =>
  Effect.suspend(() => {
    if (warned.has(keyOf(batch))) return Effect.void
    warned.add(keyOf(batch))
    return LogLine.warning(`A replay left ${TopicScan.textOf(batch)}`)
  })

const nothing = { letters: [], exhausted: [], refused: [], bytes: 0, passedOver: 0, foreign: [], unreadable: 0 }

const isFull = ({ letters, exhausted, refused, bytes }: Batch, { planned }: Selection): boolean =>
  letters.length + exhausted.length + refused.length >= batchRecords ||
  bytes >= batchBytes ||
  (planned !== undefined && letters.length >= planned.most())

/** The batch and one more record. */
const withLetter = (
  { state }: Run,
  partition: ReplayProgress.PartitionProgress,
  batch: Batch,
  letter: Letter,
  verdict: Exclude<Verdicts.Verdict, "stop">
): Batch => {
  const { record, owner } = letter
  const isNew = record.offset >= (state.countedTo.get(partition.partition) ?? 0n)
  const isNoted = ReplayProgress.isLeft(partition, record)
  const isTaken = verdict === "take"
  return {
    ...batch,
    letters: isTaken ? [...batch.letters, letter] : batch.letters,
    exhausted: verdict === "exhausted" && !isNoted ? [...batch.exhausted, letter] : batch.exhausted,
    refused: verdict === "refused" && !isNoted ? [...batch.refused, letter] : batch.refused,
    bytes: batch.bytes + (isTaken ? (letter.value?.length ?? 0) : 0),
    passedOver: batch.passedOver + (verdict === "exhausted" && isNew ? 1 : 0),
    foreign: verdict === "foreign" && isNew ? [...batch.foreign, owner!] : batch.foreign,
    position: record.offset + 1n,
    last: record
  }
}

/** The position, or the first record below it that is not dealt with and that the run takes or reports. */
const beginOf = ({ options, selection }: Run, partition: ReplayProgress.PartitionProgress): bigint => {
  const { position, logStart, failed, exhausted, refused, former } = partition
  // The position says nothing about records of former names.
  if (former.size > 0) return logStart
  let begin = position
  const include = (offset: bigint) => {
    if (offset < begin && offset >= logStart) begin = offset
  }
  for (const offset of failed.keys()) include(offset)
  // Somebody may have raised the limit since the record was passed over.
  for (const [offset, { replays }] of exhausted)
    if (selection.passesOverOnce !== true || replays < options.maxReplays) include(offset)
  if (selection.passesOverOnce !== true) for (const offset of refused.keys()) include(offset)
  return begin
}

/** Counts what the batch passed over, once it is dealt with. */
const count = ({ state }: Run, partition: number, batch: Batch): void => {
  state.passedOver += batch.passedOver
  state.unreadable += batch.unreadable
  for (const owner of batch.foreign) state.foreign.set(owner, (state.foreign.get(owner) ?? 0) + 1)
  const counted = state.countedTo.get(partition) ?? 0n
  if (batch.position > counted) state.countedTo.set(partition, batch.position)
}

/** Publishes one batch in one transaction: copies, journal entries and position become visible together or not at all. */
const publishBatch = Effect.fnUntraced(function* (
  run: Run,
  partition: ReplayProgress.PartitionProgress,
  given: Batch,
  movesPosition: boolean
) {
  const { options, producer, selection, state } = run
  const { deadLetterTopic, groupId } = options
  if (!movesPosition && given.letters.length === 0) return count(run, partition.partition, given)
  if (producer !== undefined && selection.planned !== undefined) yield* selection.planned.ready
  const { batch, copies } = producer === undefined ? { batch: given, copies: [] } : yield* copiesOf(run, given)
  const position = BigInts.max(batch.position, partition.position)
  const notes = yield* notesFor(run, partition, batch, movesPosition)
  if (notes.length === 0 && batch.letters.length === 0 && (!movesPosition || position === partition.position))
    return count(run, partition.partition, batch)
  if (producer === undefined) return yield* Effect.fail(new LeaseNeeded())
  const discards = yield* discardsOf(run, batch)
  const positions = movesPosition ? yield* positionsOf(run, partition, batch, position) : []
  yield* producer.transaction((transaction) =>
    Effect.gen(function* () {
      const copied = yield* Refusals.send(transaction, copies)
      const planned =
        selection.planned === undefined ? [] : yield* selection.planned.entries(copied, batch.letters.length)
      yield* transaction.sendAll([...positions, ...notes, ...discards, ...planned])
      if (!movesPosition) return
      const offset = { topic: deadLetterTopic, partition: partition.partition, offset: position }
      yield* transaction.sendOffsets(TopicName.deadLetterGroup(groupId), [offset])
    })
  )
  state.replayed += batch.letters.length
  count(run, partition.partition, batch)
  if (selection.planned !== undefined) yield* selection.planned.committed
})

const notesFor = (
  run: Run,
  partition: ReplayProgress.PartitionProgress,
  batch: Batch,
  movesPosition: boolean
): Effect.Effect<ReadonlyArray<ProducerRecord>> => {
  if (run.selection.restores !== undefined) return Restores.notesOf(run, partition, batch.letters)
  return Effect.succeed(movesPosition ? notesBehind(run, partition, batch) : notesOf(run, partition, batch))
}

/** The copies of a batch, and the batch without the letters that could not be made ready: they stay. */
const copiesOf = Effect.fnUntraced(function* (run: Run, batch: Batch) {
  if (!makesCopies(run.selection)) return { batch, copies: [] }
  const copies = yield* Refusals.copiesOf(run, batch.letters)
  const copied = new Set(copies.map(({ record }) => record))
  return { batch: { ...batch, letters: batch.letters.filter(({ record }) => copied.has(record)) }, copies }
})

/** The audit entries of records that are given up. */
const discardsOf = Effect.fnUntraced(function* ({ options, selection }: Run, batch: Batch) {
  const { discardedBecause: reason, discardedBy: by, planned } = selection
  if (reason === undefined) return []
  const { deadLetterTopic, groupId } = options
  const journal = Journal.topicOf(deadLetterTopic)
  const nowMillis = yield* Clock.currentTimeMillis
  const ofRun = planned === undefined ? {} : { runId: planned.runId }
  const why = { reason, discardedAt: nowMillis, ...(by === undefined ? {} : { by }), ...ofRun }
  return batch.letters.map((letter) => Audits.discardedEntry(journal, groupId, letter, why))
})

/** The position, and the topic that it belongs to. */
const positionsOf = (run: Run, progress: ReplayProgress.PartitionProgress, batch: Batch, position: bigint) => {
  const { deadLetterTopic, groupId } = run.options
  const { partition, anchor, logStart } = progress
  const journal = Journal.topicOf(deadLetterTopic)
  const entry = Journal.positionEntry(journal, groupId, partition, position, batch.last ?? anchor)
  return Effect.map(run.progress.scan.topicId({ topic: deadLetterTopic, partition, offset: logStart }), (topicId) =>
    topicId === undefined ? [entry] : [entry, Journal.topicEntry(journal, groupId, partition, { position, topicId })]
  )
}

/** The journal entries of records that the position leaves behind: only those that it does not tell enough about keep one. */
const notesBehind = (run: Run, partition: ReplayProgress.PartitionProgress, batch: Batch) => {
  const { deadLetterTopic, groupId } = run.options
  const journal = Journal.topicOf(deadLetterTopic)
  const isBehind = (offset: bigint) => offset >= batch.from && offset < batch.position
  const isGone = (offset: bigint) => offset < partition.logStart
  const isInBatch = isIn(batch)
  const isOver = (offset: bigint) => isGone(offset) || isInBatch(offset)
  return [
    ...batch.exhausted.map((letter) => Journal.exhaustedEntry(journal, groupId, letter)),
    ...batch.refused.map(({ record }) => Journal.recordEntry("refused", journal, groupId, record)),
    ...batch.letters
      .filter(({ record }) => ReplayProgress.isOfFormerName(partition, record))
      .map(({ record }) => Journal.recordEntry("adopted", journal, groupId, record)),
    ...tombstones(run, partition, "taken", isBehind),
    ...tombstones(run, partition, "failed", isBehind),
    ...tombstones(run, partition, "exhausted", isOver),
    ...tombstones(run, partition, "refused", isOver),
    ...tombstones(run, partition, "adopted", isGone)
  ]
}

/** The journal entries of records that are dealt with, wherever the position is. */
const notesOf = (run: Run, partition: ReplayProgress.PartitionProgress, batch: Batch) => {
  const { deadLetterTopic, groupId } = run.options
  const journal = Journal.topicOf(deadLetterTopic)
  const isInBatch = isIn(batch)
  return [
    ...batch.letters.map(({ record }) => {
      const kind = ReplayProgress.isOfFormerName(partition, record) ? "adopted" : "taken"
      return Journal.recordEntry(kind, journal, groupId, record)
    }),
    ...tombstones(run, partition, "failed", isInBatch),
    ...tombstones(run, partition, "exhausted", isInBatch),
    ...tombstones(run, partition, "refused", isInBatch)
  ]
}

const isIn = ({ letters }: Batch) => {
  const offsets = new Set(letters.map(({ record }) => record.offset))
  return (offset: bigint): boolean => offsets.has(offset)
}

/** Ends the entries of one kind. */
const tombstones = (
  { options }: Run,
  progress: ReplayProgress.PartitionProgress,
  kind: Journal.RecordEntry,
  isOver: (offset: bigint) => boolean
) => {
  const { deadLetterTopic, groupId } = options
  return Array.from(progress[kind].keys())
    .filter(isOver)
    .map((offset) => Journal.tombstone(kind, Journal.topicOf(deadLetterTopic), groupId, progress.partition, offset))
}
