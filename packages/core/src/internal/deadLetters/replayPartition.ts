/**
 * Replays one partition of a dead letter topic, from where it is dealt with: batch by batch, each one transaction.
 */
import { Clock, Effect, Stream } from "effect"
import type { Admin, Broker, TransactionalProducer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { type ConsumerRecord, type ProducerRecord, partitionKey } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as TopicName from "../../TopicName.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import type { Tiers } from "../retry/tiers.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayProgress from "./replayProgress.ts"

type Letter = DeadLetterRecord.DeadLetterRecord

export interface Options {
  readonly broker: Broker["Service"]
  /** The binding's group. */
  readonly groupId: string
  /** The binding's topic: where records go whose headers do not say where they came from. */
  readonly sourceTopic: string
  readonly deadLetterTopic: string
  readonly tiers: Pick<Tiers, "count" | "topicOf">
  /** A record that was replayed so often stays. */
  readonly maxReplays: number
  /** False when a custom handler consumes the topic: the offset of group `{groupId}.dlt` is that handler's then, and the journal alone says what was replayed. */
  readonly ownsPosition: boolean
}

/** What a run takes. */
export interface Selection {
  /** Most records. */
  readonly count: number
  /** `stop` ends the partition. */
  readonly select: (letter: Letter) => "take" | "leave" | "stop"
  /** Leaves nothing before what it takes, so that the position moves. */
  readonly inOrder: boolean
  /** Where copies go. Default: to where the records came from. */
  readonly tier?: number
  /** Why the records are given up: there are no copies then. */
  readonly discardedBecause?: string
  /** The partition that is read first. Default 0. */
  readonly first?: number
}

/** What a run has done so far. */
export interface RunState {
  replayed: number
  passedOver: number
  /** Keys of records that the broker did not take. */
  readonly refused: Set<string>
}

export interface Run {
  readonly options: Options
  readonly selection: Selection
  readonly state: RunState
  readonly progress: ReplayProgress.ReplayProgress
  readonly producer: TransactionalProducer
  readonly admin: Admin
  /** Makes the journal when it is missing. */
  readonly ensureJournal: Effect.Effect<void, BrokerError>
  /** Of the topics that copies went to. */
  readonly partitionCounts: Map<string, number>
}

/** The broker did not take the copy of this record. */
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

/** What the next transaction is about. */
interface Batch {
  readonly letters: ReadonlyArray<Letter>
  readonly passedOver: number
  /** Where the batch before it ended; 0 for the first. */
  readonly from: bigint
  /** Everything below is dealt with when the batch is. */
  readonly position: bigint
  /** The last record below it. */
  readonly last: ConsumerRecord | undefined
}

export const replayPartition = Effect.fnUntraced(function* (run: Run, partition: ReplayProgress.PartitionProgress) {
  const { options, selection, state, progress: survey } = run
  const { position, logStart, logEnd } = partition
  const range = {
    topic: options.deadLetterTopic,
    partition: partition.partition,
    from: options.ownsPosition ? position : logStart,
    to: logEnd
  }
  let batch: Batch = { letters: [], passedOver: 0, from: 0n, position: range.from, last: undefined }
  const publish = Effect.suspend(() => {
    const ready = batch
    if (ready.position === (ready.from || range.from)) return Effect.void
    batch = { letters: [], passedOver: 0, from: ready.position, position: ready.position, last: ready.last }
    return publishBatch(run, partition, ready)
  })

  yield* Stream.runForEachWhile(
    survey.scan.pages(range),
    Effect.fnUntraced(function* ({ records, nextOffset }) {
      for (const record of records) {
        const letter = DeadLetterRecord.read(record)
        const verdict = ReplayProgress.isTaken(partition, record) ? "leave" : selection.select(letter)
        if (verdict === "stop") return false
        const isExhausted = selection.discardedBecause === undefined && letter.replayCount >= options.maxReplays
        const isSent = verdict === "take" && !isExhausted && !state.refused.has(keyOf(record))
        batch = {
          ...batch,
          letters: isSent ? [...batch.letters, letter] : batch.letters,
          passedOver: batch.passedOver + (verdict === "take" && isExhausted ? 1 : 0),
          position: record.offset + 1n,
          last: record
        }
        const isEnough = !(state.replayed + batch.letters.length < selection.count)
        if (isEnough || batch.letters.length >= batchRecords) yield* publish
        if (isEnough) return false
      }
      batch = { ...batch, position: nextOffset }
      return true
    })
  )
  yield* publish
})

/** One transaction. What it says about the topic comes true together with its copies, or not at all. */
const publishBatch = Effect.fnUntraced(function* (run: Run, partition: ReplayProgress.PartitionProgress, batch: Batch) {
  const { options, producer, selection, state } = run
  const { deadLetterTopic, groupId } = options
  const journal = Journal.topicOf(deadLetterTopic)
  const movesPosition = selection.inOrder && options.ownsPosition
  if (!movesPosition && batch.letters.length === 0) {
    state.passedOver += batch.passedOver
    return
  }
  const { discardedBecause } = selection
  const nowMillis = yield* Clock.currentTimeMillis
  const discards =
    discardedBecause === undefined
      ? []
      : batch.letters.map((letter) => Journal.discardedEntry(journal, groupId, letter, discardedBecause, nowMillis))
  const copies =
    discardedBecause === undefined ? yield* Effect.forEach(batch.letters, (letter) => copyOf(run, letter)) : []
  const entries = movesPosition
    ? [
        Journal.positionEntry(journal, groupId, partition.partition, batch.position, batch.last),
        ...Array.from(partition.taken.keys())
          .filter((offset) => offset >= batch.from && offset < batch.position)
          .map((offset) => Journal.passedEntry(journal, groupId, partition.partition, offset))
      ]
    : batch.letters.map(({ record }) => Journal.takenEntry(journal, groupId, record))
  yield* run.ensureJournal
  yield* producer.transaction((transaction) =>
    Effect.gen(function* () {
      yield* Effect.forEach(
        copies,
        ({ record, copy }) => Effect.mapError(transaction.send(copy), (error) => new CopyRefused(record, error)),
        { concurrency: "unbounded", discard: true }
      )
      yield* transaction.sendAll([...entries, ...discards])
      if (!movesPosition) return
      const offset = { topic: deadLetterTopic, partition: partition.partition, offset: batch.position }
      yield* transaction.sendOffsets(TopicName.deadLetterGroup(groupId), [offset])
    })
  )
  state.replayed += batch.letters.length
  state.passedOver += batch.passedOver
})

const copyOf = Effect.fnUntraced(function* (run: Run, letter: Letter) {
  const { options, selection } = run
  const { record, key, value } = letter
  const copy = (topic: string, headers: ProducerRecord["headers"], partition: number | undefined) => ({
    record,
    copy: { topic, key, value, headers: headers ?? [], ...(partition === undefined ? {} : { partition }) }
  })
  if (selection.tier !== undefined) {
    const { topic } = options.tiers.topicOf(selection.tier)
    const headers = ReplayHeaders.forTier(letter, options.groupId, selection.tier, yield* Clock.currentTimeMillis)
    return copy(topic, headers, key === null ? yield* existing(run, topic, letter.originalPartition) : undefined)
  }
  // A dead letter that claims to come from the dead letter topic would go around in circles.
  const isKnown = letter.originFrom !== "none" && letter.originalTopic !== options.deadLetterTopic
  const topic = isKnown ? letter.originalTopic : options.sourceTopic
  // Where it was, whatever put it there; a record of unknown origin goes by its key.
  const partition = isKnown ? yield* existing(run, topic, letter.originalPartition) : undefined
  return copy(topic, ReplayHeaders.forSource(letter, options.groupId), partition)
})

/** The partition, if the topic has it. What is wrong with a topic shows when the copy is sent. */
const existing = (run: Run, topic: string, partition: number): Effect.Effect<number | undefined> => {
  const known = run.partitionCounts.get(topic)
  const count =
    known === undefined
      ? Effect.match(run.admin.describeTopic(topic), { onSuccess: ({ partitions }) => partitions, onFailure: () => 0 })
      : Effect.succeed(known)
  return Effect.map(count, (partitions) => {
    run.partitionCounts.set(topic, partitions)
    return partition < partitions ? partition : undefined
  })
}
