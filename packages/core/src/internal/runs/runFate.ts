/**
 * The fate of the copies of a run, by what Kafka holds: committed offsets of the group, what lies in its retry topics, and what came back to the dead letter topic.
 *
 * A record moves on before its offset is committed. So the committed offsets are read first, and the topics after them: a copy that the group has committed past is in a topic
 * that is read later, or it has passed.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Admin, FetchOptions } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { type ConsumerRecord, partitionKey, type RecordPosition, type TopicPartition } from "../../ConsumerRecord.ts"
import type { Receipt } from "../../ReplayRun.ts"
import * as BigInts from "../base/bigInts.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as Names from "../record/headerNames.ts"
import * as HeaderValues from "../record/headerValues.ts"
import * as RunMark from "../record/runMark.ts"
import * as TopicScan from "../replay/topicScan.ts"
import * as PlanChecks from "./planChecks.ts"
import * as Positions from "./positions.ts"
import type { BatchEntry, PlanEntry, Told } from "./runEntries.ts"
import type { Options } from "./runOptions.ts"
import * as Survey from "./survey.ts"

export interface Fate extends Pick<Receipt, "passed" | "cameBack" | "waiting" | "elsewhere"> {
  /** Of those that wait: the group has committed past them, and they may have come back, or wait in a tier, where an open transaction hides the end of a topic. */
  readonly hidden: number
  /** Copies that the group has committed past, and that may have come back: letters are gone from the dead letter topic before anybody has read them. */
  readonly unknown: number
}

export interface FateReader {
  /** Looks at the copies that the journal tells of by now. */
  readonly look: Effect.Effect<Fate, BrokerError>
}

/** The fate of these copies will not change. */
export const decided = ({ passed, cameBack, elsewhere, unknown }: Fate): number =>
  passed + cameBack + elsewhere + unknown

/** The copies that a share of returns is about. A return may show later, but none of these goes away. */
export const judged = ({ passed, cameBack, hidden }: Fate): number => passed + cameBack + hidden

/** Opens the topics of a run. Each look reads on from where the last one ended. */
export const open = Effect.fnUntraced(function* (
  options: Options,
  admin: Admin,
  plan: PlanEntry,
  told: Told
): Effect.fn.Return<FateReader, BrokerError, Scope.Scope> {
  const { deadLetterTopic, maxBufferedBytes, broker } = options
  const scan = yield* TopicScan.open({ broker, admin, maxRecordBytes: maxBufferedBytes })
  const remade = yield* PlanChecks.isRemade(options, admin, plan)
  const ends = remade ? new Map<number, bigint>() : Survey.toMap(Positions.read(plan.ends))
  const positions = new Map(Array.from(ends, ([partition, end]) => [partitionKey(deadLetterTopic, partition), end]))
  const sightings = new Sightings(told.id, options, remade)
  const copies = makeCopies(told)
  const partitionsOf = (topic: string, isolation: NonNullable<FetchOptions["isolationLevel"]>) =>
    Effect.catchTag(admin.topicOffsets(topic, isolation), "UnknownTopic", () => Effect.succeed([]))

  /** Reads what has come to a topic since the last look, from `least` on. Answers whether there is more of it that cannot be read yet. */
  const readOn = Effect.fnUntraced(function* (topic: string, least: (at: TopicPartition) => bigint) {
    // The whole log first: records that come between the two answers are later ones.
    const whole = yield* partitionsOf(topic, "read_uncommitted")
    const logs = yield* partitionsOf(topic, "read_committed")
    for (const { partition, logStart, logEnd } of logs) {
      const key = partitionKey(topic, partition)
      const position = positions.get(key) ?? 0n
      if (topic === deadLetterTopic && logStart > position) sightings.haveGaps = true
      const from = largest(position, least({ topic, partition }), logStart)
      const range = { topic, partition, from, to: logEnd }
      positions.set(key, from < logEnd ? yield* sightings.read(scan, range) : from)
    }
    return whole.some(({ partition, logEnd }) => (positions.get(partitionKey(topic, partition)) ?? 0n) < logEnd)
  })

  const look = Effect.gen(function* () {
    const committed = yield* committedOffsets(options, admin)
    const known = copies()
    const unknown = known.filter(({ at }) => at.offset < 0n)
    const lastOf = yield* logEndsOf(
      admin,
      unknown.map(({ at }) => at.topic)
    )
    let hides = false
    for (const { topic } of options.tiers.topics)
      if (yield* readOn(topic, (at) => committed.get(partitionKey(topic, at.partition)) ?? 0n)) hides = true
    if (yield* readOn(deadLetterTopic, () => 0n)) hides = true
    const isAhead = ({ topic, partition, offset }: RecordPosition): boolean => {
      const key = partitionKey(topic, partition)
      const position = committed.get(key)
      // The broker did not tell where the copy is: the end of the log is behind it for certain.
      return position === undefined || (offset < 0n ? position < (lastOf.get(key) ?? 0n) : offset >= position)
    }
    const fate = { passed: 0, cameBack: 0, waiting: 0, elsewhere: 0, hidden: 0, unknown: 0 }
    for (const { letter, at } of known) fate[sightings.fateOf(letter, at, isAhead)]++
    const { passed } = fate
    if (hides) return { ...fate, passed: 0, waiting: fate.waiting + passed, hidden: passed }
    return sightings.haveGaps ? { ...fate, passed: 0, unknown: passed } : fate
  })
  return { look }
})

interface KnownCopy {
  /** The dead letter, as `{partition}@{offset}`. */
  readonly letter: string
  readonly at: RecordPosition
}

/** The copies that the journal tells of. Each entry is read once. */
const makeCopies = ({ batches }: Told) => {
  const read = new Map<BatchEntry, ReadonlyArray<KnownCopy>>()
  return (): ReadonlyArray<KnownCopy> =>
    Array.from(batches.values()).flatMap(({ entry: batch }) => {
      const copies = read.get(batch) ?? copiesOf(batch)
      read.set(batch, copies)
      return copies
    })
}

const copiesOf = ({ copies }: BatchEntry): ReadonlyArray<KnownCopy> =>
  copies.flatMap(({ letter, copy }) => {
    const at = Positions.readCopy(copy)
    return at === undefined ? [] : [{ letter, at }]
  })

/** The records of the binding's topics that carry the id of the run. Only copies of the group's own are believed. */
class Sightings {
  readonly #runId: string
  readonly #options: Options
  readonly #cameBack = new Set<string>()
  /** By letter: where its copies in retry topics are. */
  readonly #inTiers = new Map<string, Array<RecordPosition>>()
  /** Whether letters are gone from the dead letter topic, or cannot be read, so that nobody here knows them. */
  haveGaps: boolean

  constructor(runId: string, options: Options, haveGaps: boolean) {
    this.haveGaps = haveGaps
    this.#runId = runId
    this.#options = options
  }

  /** Answers how far the range is known now. */
  read(scan: TopicScan.TopicScan, range: TopicScan.Range): Effect.Effect<bigint, BrokerError> {
    let end = range.to
    const pages = Stream.runForEach(scan.pages(range, "await"), ({ records, unreadable }) =>
      Effect.sync(() => {
        for (const record of records) this.#add(record)
        if (unreadable === undefined) return
        // In a tier, its records wait until the group has passed it. In the dead letter topic, nobody will ever know them.
        if (range.topic === this.#options.deadLetterTopic) this.haveGaps = true
        else end = BigInts.min(end, unreadable.offset)
      })
    )
    return Effect.map(pages, () => end)
  }

  #add(record: ConsumerRecord): void {
    const mark = RunMark.read(HeaderValues.last(record.headers, Names.runId))
    const owner = mark?.runId === this.#runId ? CopyOwner.of(record) : undefined
    if (mark === undefined || owner === undefined || !CopyOwner.isOurs(this.#options, owner)) return
    const letter = Positions.textOf(mark)
    const { topic, partition, offset } = record
    if (topic === this.#options.deadLetterTopic) this.#cameBack.add(letter)
    else this.#inTiers.set(letter, [...(this.#inTiers.get(letter) ?? []), { topic, partition, offset }])
  }

  fateOf(letter: string, at: RecordPosition, isAhead: (at: RecordPosition) => boolean): keyof Fate {
    if (this.#cameBack.has(letter)) return "cameBack"
    const { sourceTopic, tiers } = this.#options
    if (at.topic !== sourceTopic && tiers.ofTopic(at.topic) === undefined) return "elsewhere"
    const waits = isAhead(at) || this.#inTiers.get(letter)?.some(isAhead) === true
    return waits ? "waiting" : "passed"
  }
}

/** The offsets that the group has committed in all topics of the binding, by topic and partition. */
const committedOffsets = Effect.fnUntraced(function* (
  { groupId, tierGroupId, sourceTopic, tiers }: Options,
  admin: Admin
) {
  const tierTopics = tiers.topics.map(({ topic }) => topic)
  const groups = new Map([[groupId, [sourceTopic]]])
  if (tierTopics.length > 0) groups.set(tierGroupId, [...(groups.get(tierGroupId) ?? []), ...tierTopics])
  const found = yield* Effect.forEach(groups, ([group, topics]) => admin.committedOffsets(group, topics))
  return new Map(found.flat().map(({ topic, partition, offset }) => [partitionKey(topic, partition), offset]))
})

const logEndsOf = Effect.fnUntraced(function* (admin: Admin, topics: ReadonlyArray<string>) {
  const ends = new Map<string, bigint>()
  for (const topic of new Set(topics))
    for (const { partition, logEnd } of yield* admin.topicOffsets(topic))
      ends.set(partitionKey(topic, partition), logEnd)
  return ends
})

const largest = (first: bigint, ...others: ReadonlyArray<bigint>): bigint => {
  let most = first
  for (const each of others) if (each > most) most = each
  return most
}
