/**
 * Replays one partition of a dead letter topic from its replay position on, one transaction per batch.
 */
import { Clock, Effect, Stream } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as TopicName from "../../TopicName.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as FittingCopy from "./fittingCopy.ts"
import { copyOf } from "./replayCopies.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayProgress from "./replayProgress.ts"
import { CopyRefused, keyOf, type Run } from "./replayRun.ts"

type Letter = DeadLetterRecord.DeadLetterRecord

/** Records of one transaction. */
const batchRecords = 100

/** The records of the next transaction. */
interface Batch {
  readonly letters: ReadonlyArray<Letter>
  /** Records that the run passes over for the first time. Once the position is behind them, the journal alone tells that they are not dealt with. */
  readonly exhausted: ReadonlyArray<Letter>
  readonly passedOver: number
  /** The owners of the dead letters of other groups. */
  readonly foreign: ReadonlyArray<string>
  /** The position at which the previous batch ended; 0 for the first. */
  readonly from: bigint
  /** All records below this offset are dealt with once the batch is. */
  readonly position: bigint
  /** The last record below `position`. */
  readonly last: ConsumerRecord | undefined
}

export const replayPartition = Effect.fnUntraced(function* (run: Run, partition: ReplayProgress.PartitionProgress) {
  const { options, selection, state, progress } = run
  const { logStart, logEnd } = partition
  const range = {
    topic: options.deadLetterTopic,
    partition: partition.partition,
    from: options.ownsPosition ? beginOf(run, partition) : logStart,
    to: logEnd
  }
  const counted = state.countedTo.get(partition.partition) ?? 0n
  const nothing = { letters: [], exhausted: [], passedOver: 0, foreign: [] }
  let batch: Batch = { ...nothing, from: 0n, position: range.from, last: undefined }
  const publish = Effect.suspend(() => {
    const ready = batch
    if (ready.position === (ready.from || range.from)) return Effect.void
    batch = { ...nothing, from: ready.position, position: ready.position, last: ready.last }
    return publishBatch(run, partition, ready)
  })

  yield* Stream.runForEachWhile(
    progress.scan.pages(range),
    Effect.fnUntraced(function* ({ records, nextOffset }) {
      for (const record of records) {
        const letter = DeadLetterRecord.read(record)
        const verdict = verdictOn(run, partition, letter)
        if (verdict === "stop") return false
        const isNew = record.offset >= counted
        const isNoted = verdict !== "exhausted" || ReplayProgress.isExhausted(partition, record)
        batch = {
          ...batch,
          letters: verdict === "take" ? [...batch.letters, letter] : batch.letters,
          exhausted: isNoted ? batch.exhausted : [...batch.exhausted, letter],
          passedOver: batch.passedOver + (verdict === "exhausted" && isNew ? 1 : 0),
          foreign: verdict === "foreign" && isNew ? [...batch.foreign, letter.owner!] : batch.foreign,
          position: record.offset + 1n,
          last: record
        }
        const isEnough = !(state.replayed + batch.letters.length < selection.count)
        if (isEnough || batch.letters.length + batch.exhausted.length >= batchRecords) yield* publish
        if (isEnough) return false
      }
      batch = { ...batch, position: nextOffset }
      return true
    })
  )
  yield* publish
})

/** The position, or the first record below it that is not dealt with and that the run takes or reports. */
const beginOf = (
  { options, selection }: Run,
  { position, logStart, failed, exhausted }: ReplayProgress.PartitionProgress
): bigint => {
  let begin = position
  const include = (offset: bigint) => {
    if (offset < begin && offset >= logStart) begin = offset
  }
  for (const offset of failed.keys()) include(offset)
  // Somebody may have raised the limit since the record was passed over.
  for (const [offset, { replays }] of exhausted)
    if (selection.passesOverOnce !== true || replays < options.maxReplays) include(offset)
  return begin
}

/** `exhausted`: it was replayed too often. `foreign`: it belongs to another group (ruling 71). */
const verdictOn = (
  { options, selection, state }: Run,
  partition: ReplayProgress.PartitionProgress,
  letter: Letter
): "take" | "leave" | "stop" | "exhausted" | "foreign" => {
  const { record } = letter
  const isPassed = options.ownsPosition && record.offset < partition.position
  if (isPassed && !ReplayProgress.isFailed(partition, record) && !ReplayProgress.isExhausted(partition, record))
    return "leave"
  if (CopyOwner.foreign(record, options) !== undefined) {
    // A run in order passes all of them over, so that a young one never stops it.
    return selection.inOrder || selection.select(letter) === "take" ? "foreign" : "leave"
  }
  if (ReplayProgress.isTaken(partition, record)) return "leave"
  const verdict = selection.select(letter)
  if (verdict !== "take") return verdict
  if (letter.replayCount >= (selection.maxReplays ?? options.maxReplays)) return "exhausted"
  return state.refused.has(keyOf(record)) ? "leave" : "take"
}

/** Counts what the batch passed over, once it is dealt with. */
const count = ({ state }: Run, partition: number, batch: Batch): void => {
  state.passedOver += batch.passedOver
  for (const owner of batch.foreign) state.foreign.set(owner, (state.foreign.get(owner) ?? 0) + 1)
  const counted = state.countedTo.get(partition) ?? 0n
  if (batch.position > counted) state.countedTo.set(partition, batch.position)
}

/** Publishes one batch in one transaction: copies, journal entries and position become visible together or not at all. */
const publishBatch = Effect.fnUntraced(function* (run: Run, partition: ReplayProgress.PartitionProgress, batch: Batch) {
  const { options, producer, selection, state } = run
  const { deadLetterTopic, groupId } = options
  const journal = Journal.topicOf(deadLetterTopic)
  const movesPosition = selection.inOrder && options.ownsPosition
  if (!movesPosition && batch.letters.length === 0) return count(run, partition.partition, batch)
  const { discardedBecause } = selection
  const nowMillis = yield* Clock.currentTimeMillis
  const discards =
    discardedBecause === undefined
      ? []
      : batch.letters.map((letter) => Journal.discardedEntry(journal, groupId, letter, discardedBecause, nowMillis))
  const copies =
    discardedBecause === undefined ? yield* Effect.forEach(batch.letters, (letter) => copyOf(run, letter)) : []
  const position = max(batch.position, partition.position)
  const notes = movesPosition ? notesBehind(run, partition, batch) : notesOf(run, partition, batch)
  if (notes.length === 0 && batch.letters.length === 0 && position === partition.position)
    return count(run, partition.partition, batch)
  const positions = movesPosition
    ? [Journal.positionEntry(journal, groupId, partition.partition, position, batch.last)]
    : []
  yield* run.ensureJournal
  yield* producer.transaction((transaction) =>
    Effect.gen(function* () {
      yield* Effect.forEach(
        copies,
        ({ record, copy }) =>
          Effect.mapError(FittingCopy.send(transaction, copy), (error) => new CopyRefused(record, error)),
        { concurrency: "unbounded", discard: true }
      )
      yield* transaction.sendAll([...positions, ...notes, ...discards])
      if (!movesPosition) return
      const offset = { topic: deadLetterTopic, partition: partition.partition, offset: position }
      yield* transaction.sendOffsets(TopicName.deadLetterGroup(groupId), [offset])
    })
  )
  state.replayed += batch.letters.length
  count(run, partition.partition, batch)
})

/** The journal entries of records that the position leaves behind: only those that are not dealt with keep one. */
const notesBehind = (run: Run, partition: ReplayProgress.PartitionProgress, batch: Batch) => {
  const { deadLetterTopic, groupId } = run.options
  const isBehind = (offset: bigint) => offset >= batch.from && offset < batch.position
  const isOver = (offset: bigint) => offset < partition.logStart || isIn(batch)(offset)
  return [
    ...batch.exhausted.map((letter) => Journal.exhaustedEntry(Journal.topicOf(deadLetterTopic), groupId, letter)),
    ...tombstones(run, partition, "taken", isBehind),
    ...tombstones(run, partition, "failed", isBehind),
    ...tombstones(run, partition, "exhausted", isOver)
  ]
}

/** The journal entries of records that are dealt with, wherever the position is. */
const notesOf = (run: Run, partition: ReplayProgress.PartitionProgress, batch: Batch) => {
  const { deadLetterTopic, groupId } = run.options
  return [
    ...batch.letters.map(({ record }) => Journal.takenEntry(Journal.topicOf(deadLetterTopic), groupId, record)),
    ...tombstones(run, partition, "failed", isIn(batch)),
    ...tombstones(run, partition, "exhausted", isIn(batch))
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

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
