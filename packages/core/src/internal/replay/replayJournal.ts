/**
 * The journal of replays of a dead letter topic: the compacted topic `{dead letter topic}.replays`.
 *
 * A replay writes these entries in the transaction that publishes its copies:
 * - `position/{partition}/{group}` → `{position} {offset} {timestamp}`: all records below `position` are dealt with. Offset and timestamp identify the last record
 *   below it, which tells whether the topic was recreated since. The committed offset of group `{group}.dlt` takes precedence. Kafka deletes that offset seven days
 *   after the last commit of a group without members; this entry stays.
 * - `topic/{partition}/{group}` → `{position} {topic id}`: the topic that the position belongs to. It says nothing about another position, which an older version has
 *   written since.
 * - `taken/{partition}/{offset}/{group}` → `{timestamp}`: this record at or above the position is dealt with. Deleted once the position has passed it.
 * - `exhausted/{partition}/{offset}/{group}` → `{timestamp} {replays}`: a replay moved the position past this record and left it, because it was replayed `maxReplays`
 *   times, `replays` by now. So it is not dealt with. Deleted once somebody replays it all the same, or discards it, or it is gone from the topic.
 * - `refused/{partition}/{offset}/{group}` → `{timestamp}`: a replay moved the position past this record, whose copy the broker refused. So it is not dealt with. Deleted
 *   like `exhausted`.
 * - `adopted/{partition}/{offset}/{group}` → `{timestamp}`: this record, which was dead-lettered under a former name of the group, is dealt with. The position says
 *   nothing about such a record, since it may have passed it before the group adopted the name. Deleted once the record is gone from the topic.
 * - `discarded/{partition}/{offset}/{group}` → JSON: an operator discarded this record, and why. It stays until the record is restored.
 * - `restored/{partition}/{offset}/{group}` → JSON: an operator has restored a discarded record, and why. It stays.
 *
 * A replay that has something to write holds a lease, outside of any transaction (`leaseEntries.ts`):
 * - `lease/{run}/{group}` → JSON: who it is, and how far. Deleted at its end.
 *
 * A custom handler's consumer writes before it commits past the record:
 * - `failed/{partition}/{offset}/{group}` → `{timestamp}`: the handler failed for this record, so it is not dealt with although the position has passed it (ruling 75).
 *   Deleted once a replay takes it, somebody discards it, or the handler succeeds for it after a restart.
 * - `adopted/{partition}/{offset}/{group}`, as above, when the handler has succeeded.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Admin, PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import type { TopicScan } from "./topicScan.ts"

export const topicOf = DerivedNames.journal

/** The last record below a position. */
export interface Anchor {
  readonly offset: bigint
  readonly timestamp: number
}

interface Position {
  readonly position: bigint
  readonly anchor: Anchor | undefined
}

/** The topic that a position belongs to. */
interface TopicOfPosition {
  readonly position: bigint
  readonly topicId: string
}

/** A record that was replayed as often as it may be. */
export interface Exhausted {
  /** The timestamp of the record. */
  readonly timestamp: number
  /** How often it was replayed. */
  readonly replays: number
}

/** The kinds of entries that are about one record. */
export type RecordEntry = "taken" | "failed" | "exhausted" | "refused" | "adopted"

/** The entries of one group at the time of reading. */
export interface Journal {
  /** By partition. */
  readonly positions: ReadonlyMap<number, Position>
  /** By partition. */
  readonly topics: ReadonlyMap<number, TopicOfPosition>
  /** By partition, then by offset: the timestamp of the record. */
  readonly taken: ReadonlyMap<number, ReadonlyMap<bigint, number>>
  /** The records that the custom handler failed for, in the same form. */
  readonly failed: ReadonlyMap<number, ReadonlyMap<bigint, number>>
  /** The records whose copies the broker refused, in the same form. */
  readonly refused: ReadonlyMap<number, ReadonlyMap<bigint, number>>
  /** The records of former names that are dealt with, in the same form. */
  readonly adopted: ReadonlyMap<number, ReadonlyMap<bigint, number>>
  /** The records that a replay left behind the position, by partition, then by offset. */
  readonly exhausted: ReadonlyMap<number, ReadonlyMap<bigint, Exhausted>>
  /** The records that operators discarded, by partition, then by offset. */
  readonly discarded: ReadonlyMap<number, ReadonlyMap<bigint, true>>
}

const emptyJournal = (): MutableJournal => ({
  ...{ positions: new Map(), topics: new Map(), exhausted: new Map(), discarded: new Map() },
  ...{ taken: new Map(), failed: new Map(), refused: new Map(), adopted: new Map() }
})

/** A journal without entries. */
export const empty: Journal = emptyJournal()

/**
 * Reads the whole journal, and answers the part of each of the groups. `onEntry` gets every record, in order. `logOffsets` are those of the journal topic. Groups may share a journal, so a transaction of
 * another one can hide what this one has written, while the committed offset of the same transaction is known already: the journal is read behind open transactions.
 */
export const load = (
  scan: TopicScan,
  topic: string,
  logOffsets: ReadonlyArray<PartitionOffsets>,
  groupIds: ReadonlyArray<string>,
  onEntry: (record: ConsumerRecord) => void = () => {}
): Effect.Effect<ReadonlyMap<string, Journal>, BrokerError> => {
  const journals = new Map(groupIds.map((groupId): [string, MutableJournal] => [groupId, emptyJournal()]))
  return entries(scan, topic, logOffsets).pipe(
    Stream.runForEach((record) =>
      Effect.sync(() => {
        onEntry(record)
        apply(record, journals)
      })
    ),
    Effect.as(journals)
  )
}

/** All records of the journal, read behind open transactions. */
export const entries = (scan: TopicScan, topic: string, logOffsets: ReadonlyArray<PartitionOffsets>) =>
  Stream.flatMap(Stream.fromIterable(logOffsets), ({ partition, logStart, logEnd }) =>
    scan.read({ topic, partition, from: logStart, to: logEnd }, "await")
  )

export const positionEntry = (
  topic: string,
  groupId: string,
  partition: number,
  position: bigint,
  anchor: Anchor | undefined
): ProducerRecord => ({
  topic,
  key: encoder.encode(`position/${partition}/${groupId}`),
  value: encoder.encode(anchor === undefined ? String(position) : `${position} ${anchor.offset} ${anchor.timestamp}`)
})

/** The topic that the position belongs to. */
export const topicEntry = (
  topic: string,
  groupId: string,
  partition: number,
  { position, topicId }: TopicOfPosition
): ProducerRecord => ({
  topic,
  key: encoder.encode(`topic/${partition}/${groupId}`),
  value: encoder.encode(`${position} ${topicId}`)
})

/** An entry of a kind that says no more than which record it is. */
export const recordEntry = (
  kind: Exclude<RecordEntry, "exhausted">,
  topic: string,
  groupId: string,
  { partition, offset, timestamp }: ConsumerRecord
): ProducerRecord => ({
  topic,
  key: recordKey(kind, partition, offset, groupId),
  value: encoder.encode(String(timestamp))
})

/** The position leaves the record behind, and nobody has dealt with it. */
export const exhaustedEntry = (topic: string, groupId: string, letter: DeadLetterRecord): ProducerRecord => {
  const { record, replayCount } = letter
  return {
    topic,
    key: recordKey("exhausted", record.partition, record.offset, groupId),
    value: encoder.encode(`${record.timestamp} ${replayCount}`)
  }
}

/** The tombstone of a `taken` entry that the position has passed, or of another one whose record is dealt with now. */
export const tombstone = (
  kind: RecordEntry,
  topic: string,
  groupId: string,
  partition: number,
  offset: bigint
): ProducerRecord => ({ topic, key: recordKey(kind, partition, offset, groupId), value: null })

/** The cluster's clock decides how old a lease is. A journal of an older version has the times of its writers, and then nobody believes them. */
const config = new Map([
  ["cleanup.policy", "compact"],
  ["message.timestamp.type", "LogAppendTime"]
])

/** Creates the journal topic when it is missing, with the replication factor of the dead letter topic. */
export const ensure = (admin: Admin, deadLetterTopic: string): Effect.Effect<void, BrokerError> => {
  const topic = topicOf(deadLetterTopic)
  const create = Effect.flatMap(admin.describeTopic(deadLetterTopic), ({ replicationFactor }) =>
    admin.createTopics([{ topic, partitions: 1, replicationFactor, config }])
  )
  return admin.describeTopic(topic).pipe(
    Effect.catchTag("UnknownTopic", () => Effect.catchTag(create, "TopicExists", () => Effect.void)),
    Effect.asVoid
  )
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const recordKey = (kind: RecordEntry, partition: number, offset: bigint, groupId: string): Uint8Array =>
  encoder.encode(`${kind}/${partition}/${offset}/${groupId}`)

const key =
  /^(?:(position|topic)\/(\d{1,10})|(taken|failed|exhausted|refused|adopted|discarded)\/(\d{1,10})\/(\d{1,19}))\/(.*)$/s
/** A record may have any time of 64 bits, such as one in nanoseconds. As a number of JavaScript it has up to 20 digits. */
const positionValue = /^(\d{1,19})(?: (\d{1,19}) (-?\d{1,20}))?$/
const topicValue = /^(\d{1,19}) (\S{1,64})$/
const recordValue = /^-?\d{1,20}$/
const exhaustedValue = /^(-?\d{1,20}) (\d{1,10})$/

interface MutableJournal extends Record<Exclude<RecordEntry, "exhausted">, Map<number, Map<bigint, number>>> {
  readonly positions: Map<number, Position>
  readonly topics: Map<number, TopicOfPosition>
  readonly exhausted: Map<number, Map<bigint, Exhausted>>
  readonly discarded: Map<number, Map<bigint, true>>
}

/** A custom handler's consumer writes these outside of any transaction. */
const ofHandlers: ReadonlySet<string | undefined> = new Set(["failed", "adopted"])

/** Applies one entry. A malformed entry is ignored, and so is one that no replay can have written: replays write in transactions only. */
const apply = (record: ConsumerRecord, journals: ReadonlyMap<string, MutableJournal>): void => {
  const found = key.exec(record.key === null ? "" : decoder.decode(record.key))
  const journal = found === null ? undefined : journals.get(found[6]!)
  if (found === null || journal === undefined) return
  if (record.transactional === false && !ofHandlers.has(found[3])) return
  const value = record.value === null ? "" : decoder.decode(record.value)
  if (found[1] !== undefined) {
    applyPosition(journal, found[1], Number(found[2]), value)
    return
  }
  const at = { partition: Number(found[4]), offset: BigInt(found[5]!) }
  const kind = found[3] as RecordEntry | "discarded"
  if (kind === "discarded") put(journal.discarded, at, record.value === null ? undefined : true)
  else if (kind === "exhausted") {
    const parts = exhaustedValue.exec(value)
    const entry = parts === null ? undefined : { timestamp: Number(parts[1]), replays: Number(parts[2]) }
    put(journal.exhausted, at, entry)
  } else put(journal[kind], at, recordValue.test(value) ? Number(value) : undefined)
}

const applyPosition = (journal: MutableJournal, kind: string, partition: number, value: string): void => {
  if (kind === "topic") {
    const [, position, topicId] = topicValue.exec(value) ?? []
    if (position !== undefined) journal.topics.set(partition, { position: BigInt(position), topicId: topicId! })
    return
  }
  const [, position, offset, timestamp] = positionValue.exec(value) ?? []
  if (position === undefined) return
  const anchor = offset === undefined ? undefined : { offset: BigInt(offset), timestamp: Number(timestamp) }
  journal.positions.set(partition, { position: BigInt(position), anchor })
}

/** Keeps the entry of a record; undefined ends it. */
const put = <A>(
  records: Map<number, Map<bigint, A>>,
  { partition, offset }: { readonly partition: number; readonly offset: bigint },
  entry: A | undefined
): void => {
  const offsets = records.get(partition) ?? new Map<bigint, A>()
  records.set(partition, offsets)
  if (entry === undefined) offsets.delete(offset)
  else offsets.set(offset, entry)
}
