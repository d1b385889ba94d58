/**
 * Replays one partition of a dead letter topic from its replay position on, one transaction per batch.
 */
import { Clock, Effect, Stream } from "effect"
import type { Admin, Broker, TransactionalProducer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { type ConsumerRecord, type Header, type ProducerRecord, partitionKey } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as Partitioner from "../../Partitioner.ts"
import * as TopicName from "../../TopicName.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import type { Tiers } from "../retry/tiers.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayProgress from "./replayProgress.ts"

type Letter = DeadLetterRecord.DeadLetterRecord

/** The groups are the binding's own, and those that it adopts. */
export interface Options extends CopyOwner.Groups {
  readonly broker: Broker["Service"]
  /** The main topic of the binding. Records whose headers name no origin go there. */
  readonly sourceTopic: string
  readonly deadLetterTopic: string
  readonly tiers: Pick<Tiers, "count" | "topicOf" | "ofTopic">
  /** A record that was replayed this often is passed over, unless the run sets another limit. */
  readonly maxReplays: number
  /** False when a custom handler consumes the topic: the offset of group `{groupId}.dlt` belongs to that handler, and only the journal tells what was replayed. */
  readonly ownsPosition: boolean
}

/** The records that a run selects. */
export interface Selection {
  /** How many records the run selects at most. */
  readonly count: number
  /** Decides about each record: replay it, leave it, or stop with this partition. */
  readonly select: (letter: Letter) => "take" | "leave" | "stop"
  /** True when the run takes every record up to the last selected one, so that the position may move. */
  readonly inOrder: boolean
  /** The retry tier that copies go to. Default: the topic that the record came from. */
  readonly tier?: number
  /** Set when the records are discarded, with the reason. No copies are published then. */
  readonly discardedBecause?: string
  /** The index of the partition that is read first. Default 0. */
  readonly first?: number
  /** The limit of this run instead of the binding's. */
  readonly maxReplays?: number
  /** True when the run does not come back to records that an earlier run passed over. Default: it reports them again. */
  readonly passesOverOnce?: boolean
}

/** The progress of a run. */
export interface RunState {
  replayed: number
  passedOver: number
  /** Dead letters of other groups, by group. */
  readonly foreign: Map<string, number>
  /** Records below these offsets have been counted, by partition: a run that starts again counts no record twice. */
  readonly countedTo: Map<number, bigint>
  /** Keys of records whose copies the broker refused. */
  readonly refused: Set<string>
}

export interface Run {
  readonly options: Options
  readonly selection: Selection
  readonly state: RunState
  readonly progress: ReplayProgress.ReplayProgress
  readonly producer: TransactionalProducer
  readonly admin: Admin
  /** Creates the journal topic when it is missing. */
  readonly ensureJournal: Effect.Effect<void, BrokerError>
  /** Partition counts of the target topics, by topic. */
  readonly partitionCounts: Map<string, number>
}

/** The broker refused the copy of this record. */
export class CopyRefused {
  readonly record: ConsumerRecord
  readonly error: BrokerError

  constructor(record: ConsumerRecord, error: BrokerError) {
    this.record = record
    this.error = error
  }
}

export const keyOf = ({ topic, partition, offset }: ConsumerRecord): string =>
  `${partitionKey(topic, partition)}/${offset}`

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
        ({ record, copy }) => Effect.mapError(transaction.send(copy), (error) => new CopyRefused(record, error)),
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

const copyOf = Effect.fnUntraced(function* (run: Run, letter: Letter) {
  const { options, selection } = run
  const { record, key, value } = letter
  // Time and partition are set here, because the bond in the headers names them.
  const timestamp = yield* Clock.currentTimeMillis
  const copy = (topic: string, headers: ReadonlyArray<Header>, partition: number) => ({
    record,
    copy: { topic, key, value, headers, partition, timestamp } satisfies ProducerRecord
  })
  if (selection.tier !== undefined) {
    const { topic } = options.tiers.topicOf(selection.tier)
    const headers = ReplayHeaders.forTier(letter, options.groupId, { topic, tier: selection.tier }, timestamp)
    const partition = yield* partitionIn(run, letter, topic, key === null ? letter.originalPartition : undefined)
    return copy(topic, headers, partition)
  }
  const isKnown = isOriginKnown(options, letter)
  const topic = isKnown ? letter.originalTopic : options.sourceTopic
  // To the original partition, whatever partitioner chose it. A record of unknown origin is partitioned by its key.
  const partition = yield* partitionIn(run, letter, topic, isKnown ? letter.originalPartition : undefined)
  const target = { clusterId: run.admin.clusterId, topic, partition, timestamp }
  return copy(topic, ReplayHeaders.forSource(letter, options.groupId, target), partition)
})

/**
 * Whether a replay goes to the topic that the letter names. A topic that the binding derives is none: a record of the dead letter topic would come back to it in
 * circles, and one of a retry topic would be there for every group. A letter that was marked for a topic of nobody here came by a mirror that renames topics: it names the
 * topic of the other cluster, which this binding does not read.
 */
const isOriginKnown = ({ sourceTopic, deadLetterTopic, tiers }: Options, letter: Letter): boolean => {
  const isDerived = (topic: string) => topic === deadLetterTopic || tiers.ofTopic(topic) !== undefined
  if (letter.originFrom === "none" || isDerived(letter.originalTopic)) return false
  const markedFor = CopyOwner.partsOf(letter.headers)?.topic
  return letter.originalTopic === sourceTopic || markedFor === undefined || isDerived(markedFor)
}

/** The wanted partition if the topic has it, or else the one of the key. */
const partitionIn = Effect.fnUntraced(function* (run: Run, { record, key }: Letter, topic: string, wanted?: number) {
  const partitions = run.partitionCounts.get(topic) ?? (yield* countPartitions(run, record, topic))
  if (wanted !== undefined && wanted < partitions) return wanted
  return key === null ? Number(record.offset % BigInt(partitions)) : Partitioner.partitionFor(key, partitions)
})

const countPartitions = Effect.fnUntraced(function* (run: Run, record: ConsumerRecord, topic: string) {
  const { partitions } = yield* Effect.mapError(
    run.admin.describeTopic(topic),
    (error) => new CopyRefused(record, error)
  )
  run.partitionCounts.set(topic, partitions)
  return partitions
})

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
