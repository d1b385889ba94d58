/**
 * Finds every copy of one record: in its main topic, the retry topics and the dead letter topic, by the origin that each copy names.
 */
import { Effect, type Scope, Stream } from "effect"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { type ConsumerRecord, partitionKey } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as TopicName from "../../TopicName.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import * as TopicScan from "./topicScan.ts"

/** Where to look. */
export interface Topics {
  /** The main topic. */
  readonly topic: string
  readonly groupId: string
  /** Default `TopicName.standard`. */
  readonly naming?: TopicName.NamingStrategy | undefined
  /** Retry topics in the order of their tiers. Default: those of `naming` that exist, from tier 1 to the first that does not. */
  readonly retryTopics?: ReadonlyArray<string> | undefined
  /** Default: what `naming` says. */
  readonly deadLetterTopic?: string | undefined
}

/** Which record: by its place in the main topic, or the newest one of a key, for which all that lies in the main topic is read. */
export type Selector = { readonly partition: number; readonly offset: bigint } | { readonly key: string | Uint8Array }

/** `replay`: put back into the main topic. */
export interface Copy {
  readonly kind: "main" | "retry" | "dead-letter" | "replay"
  readonly record: ConsumerRecord
  /** Whether the group has committed past it; undefined where it does not consume, or has committed nothing. */
  readonly committed: boolean | undefined
}

interface Origin {
  readonly partition: number
  readonly offset: bigint
}

/** All copies, in no particular order; none when nothing of the record is left. */
export const find = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topics: Topics,
  selector: Selector
): Effect.fn.Return<ReadonlyArray<Copy>, BrokerError, Scope.Scope> {
  const admin = yield* broker.admin
  const { retry, deadLetter } = yield* locate(admin, topics)
  // Before the search: a record that moves on meanwhile has a copy that is found, or counts as not done yet.
  const committed = yield* committedBy(admin, topics.groupId, [topics.topic, ...retry])
  const all = [topics.topic, ...retry, deadLetter]
  const scan = yield* TopicScan.open({ broker, groupId: topics.groupId, topics: all })
  const search: Search = { admin, scan, topics }

  const place = "key" in selector ? undefined : yield* originAt(search, selector)
  const parked: Array<ConsumerRecord> = []
  for (const topic of [...retry, deadLetter]) {
    yield* Stream.runForEach(everything(search, topic), (record) =>
      Effect.sync(() => {
        const copied = originIn(topics, record)
        if ("key" in selector ? copied && hasKey(record, selector.key) : place && isSame(copied, place))
          parked.push(record)
      })
    )
  }
  const origin = "key" in selector ? yield* newestOf(search, selector.key, parked) : place
  if (origin === undefined) return []
  const mine = parked.filter((record) => isSame(originIn(topics, record), origin))
  const main = yield* Stream.runCollect(recordAt(search, origin))
  const letters = mine.filter(({ topic }) => topic === deadLetter)
  const replayed = letters.length === 0 ? [] : yield* findReplays(search, origin, letters)
  const copies = (kind: Copy["kind"], records: ReadonlyArray<ConsumerRecord>) =>
    records.map((record): Copy => ({ kind, record, committed: committed(record) }))
  return [
    ...copies("main", main),
    ...copies("replay", replayed),
    ...copies(
      "retry",
      mine.filter(({ topic }) => topic !== deadLetter)
    ),
    ...copies("dead-letter", letters)
  ]
})

interface Search {
  readonly admin: Admin
  readonly scan: TopicScan.TopicScan
  readonly topics: Topics
}

const mostTiers = 100

const locate = Effect.fnUntraced(function* (admin: Admin, topics: Topics) {
  const { naming = TopicName.standard, retryTopics } = topics
  const existing = new Set(yield* admin.listTopics)
  const named: Array<string> = []
  for (let tier = 1; retryTopics === undefined && tier <= mostTiers; tier++) {
    const topic = naming.retry(topics, tier)
    if (!existing.has(topic) || named.includes(topic)) break
    named.push(topic)
  }
  const deadLetter = topics.deadLetterTopic ?? naming.deadLetter(topics)
  return { retry: (retryTopics ?? named).filter((topic) => existing.has(topic)), deadLetter }
})

/** All records of a topic; none when there is no such topic. */
const everything = ({ admin, scan }: Search, topic: string): Stream.Stream<ConsumerRecord, BrokerError> =>
  Stream.unwrap(
    admin.topicOffsets(topic).pipe(
      Effect.catchTag("UnknownTopic", () => Effect.succeed([])),
      Effect.map((bounds) =>
        Stream.flatMap(Stream.fromIterable(bounds), ({ partition, logStart, logEnd }) =>
          scan.read({ topic, partition, from: logStart, to: logEnd })
        )
      )
    )
  )

/** The place in the main topic that a copy comes from. */
const originIn = ({ topic }: Topics, record: ConsumerRecord): Origin | undefined => {
  const { originFrom, originalTopic, originalPartition, originalOffset } = DeadLetterRecord.read(record)
  return originFrom === "none" || originalTopic !== topic
    ? undefined
    : { partition: originalPartition, offset: originalOffset }
}

/** What a record of the main topic is a copy of: mostly itself. */
const originOfMain = ({ groupId }: Topics, record: ConsumerRecord): Origin =>
  ReplayHeaders.read(record, groupId)?.origin ?? record

const isSame = (a: Origin | undefined, b: Origin): boolean => a?.partition === b.partition && a.offset === b.offset

/** What the record of a place is a copy of; the place itself when retention removed it. */
const originAt = (search: Search, place: Origin): Effect.Effect<Origin, BrokerError> =>
  Effect.map(Stream.runCollect(recordAt(search, place)), ([record]) =>
    record === undefined ? place : originOfMain(search.topics, record)
  )

/** None where there is no such place. */
const recordAt = ({ admin, scan, topics: { topic } }: Search, { partition, offset }: Origin) =>
  Stream.unwrap(
    Effect.map(admin.topicOffsets(topic), (bounds) => {
      const log = bounds.find((at) => at.partition === partition)
      return log === undefined || offset < log.logStart || offset >= log.logEnd
        ? Stream.empty
        : scan.read({ topic, partition, from: offset, to: offset + 1n })
    })
  )

/** The newest record of a key, be it gone from the main topic. */
const newestOf = Effect.fnUntraced(function* (
  search: Search,
  key: string | Uint8Array,
  parked: ReadonlyArray<ConsumerRecord>
) {
  const { topics } = search
  let newest: readonly [timestamp: number, origin: Origin | undefined] = [Number.NEGATIVE_INFINITY, undefined]
  const consider = (timestamp: number, origin: Origin | undefined): void => {
    if (timestamp >= newest[0]) newest = [timestamp, origin]
  }
  for (const record of parked) consider(DeadLetterRecord.read(record).originalTimestamp, originIn(topics, record))
  yield* Stream.runForEach(everything(search, topics.topic), (record) =>
    Effect.sync(() => {
      if (hasKey(record, key)) consider(record.timestamp, originOfMain(topics, record))
    })
  )
  return newest[1]
})

const encoder = new TextEncoder()

const hasKey = (record: ConsumerRecord, key: string | Uint8Array): boolean => {
  const wanted = typeof key === "string" ? encoder.encode(key) : key
  return record.key?.length === wanted.length && record.key.every((byte, index) => byte === wanted[index])
}

/** A replay is younger than the dead letter that it is of. */
const findReplays = Effect.fnUntraced(function* (
  { admin, scan, topics }: Search,
  origin: Origin,
  letters: ReadonlyArray<ConsumerRecord>
) {
  const { topic, groupId } = topics
  const since = Math.min(...letters.map(({ timestamp }) => timestamp))
  const ends = new Map((yield* admin.topicOffsets(topic)).map(({ partition, logEnd }) => [partition, logEnd]))
  const starts = yield* admin.offsetsForTimestamp(topic, since)
  return yield* Stream.fromIterable(starts).pipe(
    Stream.flatMap(({ partition, offset }) =>
      scan.read({ topic, partition, from: offset, to: ends.get(partition) ?? offset })
    ),
    Stream.filter((record) => isSame(ReplayHeaders.read(record, groupId)?.origin, origin)),
    Stream.runCollect
  )
})

const committedBy = Effect.fnUntraced(function* (admin: Admin, groupId: string, topics: ReadonlyArray<string>) {
  const shared = yield* admin.committedOffsets(groupId, topics)
  // Tiers may have a group of their own (`consumer: "separate"`).
  const apart = yield* admin.committedOffsets(TopicName.retryGroup(groupId), topics)
  const offsets = new Map([...shared, ...apart].map((at) => [partitionKey(at.topic, at.partition), at.offset]))
  return ({ topic, partition, offset }: ConsumerRecord): boolean | undefined => {
    const committed = offsets.get(partitionKey(topic, partition))
    return committed === undefined ? undefined : committed > offset
  }
})
