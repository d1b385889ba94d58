/**
 * Finds every copy of one record in its main topic, its retry topics and its dead letter topic, by the origin in the headers of each copy.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { type ConsumerRecord, partitionKey } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as TopicName from "../../TopicName.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import * as TopicScan from "../replay/topicScan.ts"

/** The topics to search. */
export interface Topics {
  /** The main topic. */
  readonly topic: string
  /** The group that reads it. Copies of other groups in the same topics are left out. */
  readonly groupId: string
  /** Former names of the group, whose copies are its own. Default: none. */
  readonly adopts?: ReadonlyArray<string> | undefined
  /** Default `TopicName.standard`. */
  readonly naming?: TopicName.NamingStrategy | undefined
  /** Retry topics in the order of their tiers. Default: those of `naming` that exist, from tier 1 to the first that does not. */
  readonly retryTopics?: ReadonlyArray<string> | undefined
  /** Default: the name that `naming` gives. */
  readonly deadLetterTopic?: string | undefined
}

/** The record to find: by its position in the main topic, or the newest record of a key. A search by key reads the whole main topic. */
export type Selector = { readonly partition: number; readonly offset: bigint } | { readonly key: string | Uint8Array }

/** A copy of the record. `replay`: a copy that a replay published to the main topic. */
export interface Copy {
  readonly kind: "main" | "retry" | "dead-letter" | "replay"
  readonly record: ConsumerRecord
  /** Whether the group has committed past the copy; undefined where the group does not consume or has committed nothing. */
  readonly committed: boolean | undefined
}

interface Origin {
  readonly partition: number
  readonly offset: bigint
}

/** Finds all copies, in no particular order. Empty when no copy is left. */
export const find = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topics: Topics,
  selector: Selector
): Effect.fn.Return<ReadonlyArray<Copy>, BrokerError, Scope.Scope> {
  const admin = yield* broker.admin
  const { retry, deadLetter } = yield* locate(admin, topics)
  // Before the search: if the record moves on meanwhile, either its next copy is found or the found one counts as not committed.
  const committed = yield* committedBy(admin, topics.groupId, [topics.topic, ...retry])
  const scan = yield* TopicScan.open({ broker, admin })
  const search: Search = { admin, scan, topics }
  const groups = readerOf(topics, admin)

  const requested = "key" in selector ? undefined : yield* originAt(search, selector)
  const copied: Array<ConsumerRecord> = []
  for (const topic of [...retry, deadLetter]) {
    yield* Stream.runForEach(everything(search, topic), (record) =>
      Effect.sync(() => {
        if (CopyOwner.foreign(record, groups) !== undefined) return
        const origin = originIn(topics, record)
        if ("key" in selector ? origin && hasKey(record, selector.key) : requested && isSame(origin, requested))
          copied.push(record)
      })
    )
  }
  const origin = "key" in selector ? yield* newestOf(search, selector.key, copied) : requested
  if (origin === undefined) return []
  const mine = copied.filter((record) => isSame(originIn(topics, record), origin))
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

const maxTiers = 100

const locate = Effect.fnUntraced(function* (admin: Admin, topics: Topics) {
  const { naming = TopicName.standard, retryTopics } = topics
  const existing = new Set(yield* admin.listTopics)
  const named: Array<string> = []
  for (let tier = 1; retryTopics === undefined && tier <= maxTiers; tier++) {
    const topic = naming.retry(topics, tier)
    if (!existing.has(topic) || named.includes(topic)) break
    named.push(topic)
  }
  const deadLetter = topics.deadLetterTopic ?? naming.deadLetter(topics)
  return { retry: (retryTopics ?? named).filter((topic) => existing.has(topic)), deadLetter }
})

/** Reads all records of a topic; none when the topic does not exist. */
const everything = ({ admin, scan }: Search, topic: string): Stream.Stream<ConsumerRecord, BrokerError> =>
  Stream.unwrap(
    admin.topicOffsets(topic).pipe(
      Effect.catchTag("UnknownTopic", () => Effect.succeed([])),
      Effect.map((logOffsets) =>
        Stream.flatMap(Stream.fromIterable(logOffsets), ({ partition, logStart, logEnd }) =>
          scan.read({ topic, partition, from: logStart, to: logEnd })
        )
      )
    )
  )

/** The position in the main topic that a copy comes from. */
const originIn = ({ topic }: Topics, record: ConsumerRecord): Origin | undefined => {
  const { originFrom, originalTopic, originalPartition, originalOffset } = DeadLetterRecord.read(record)
  return originFrom === "none" || originalTopic !== topic
    ? undefined
    : { partition: originalPartition, offset: originalOffset }
}

/** The origin of a record of the main topic: the record itself, unless it is a replay. */
const originOfMain = ({ admin, topics }: Search, record: ConsumerRecord): Origin =>
  ReplayHeaders.read(record, readerOf(topics, admin))?.origin ?? record

const readerOf = ({ groupId, adopts = [] }: Topics, { clusterId }: Admin): ReplayHeaders.Reader => ({
  clusterId,
  groupId,
  adopts
})

const isSame = (a: Origin | undefined, b: Origin): boolean => a?.partition === b.partition && a.offset === b.offset

/** The origin of the record at a position; the position itself when retention has removed the record. */
const originAt = (search: Search, position: Origin): Effect.Effect<Origin, BrokerError> =>
  Effect.map(Stream.runCollect(recordAt(search, position)), ([record]) =>
    record === undefined ? position : originOfMain(search, record)
  )

/** Reads the record at a position; none when the position is not in the log. */
const recordAt = ({ admin, scan, topics: { topic } }: Search, { partition, offset }: Origin) =>
  Stream.unwrap(
    Effect.map(admin.topicOffsets(topic), (logOffsets) => {
      const log = logOffsets.find((at) => at.partition === partition)
      return log === undefined || offset < log.logStart || offset >= log.logEnd
        ? Stream.empty
        : scan.read({ topic, partition, from: offset, to: offset + 1n })
    })
  )

/** The origin of the newest record of a key, even when retention has removed it from the main topic. */
const newestOf = Effect.fnUntraced(function* (
  search: Search,
  key: string | Uint8Array,
  copied: ReadonlyArray<ConsumerRecord>
) {
  const { topics } = search
  let newest: readonly [timestamp: number, origin: Origin | undefined] = [Number.NEGATIVE_INFINITY, undefined]
  const consider = (timestamp: number, origin: Origin | undefined): void => {
    if (timestamp >= newest[0]) newest = [timestamp, origin]
  }
  for (const record of copied) consider(DeadLetterRecord.read(record).originalTimestamp, originIn(topics, record))
  yield* Stream.runForEach(everything(search, topics.topic), (record) =>
    Effect.sync(() => {
      if (hasKey(record, key)) consider(record.timestamp, originOfMain(search, record))
    })
  )
  return newest[1]
})

const encoder = new TextEncoder()

const hasKey = (record: ConsumerRecord, key: string | Uint8Array): boolean => {
  const expected = typeof key === "string" ? encoder.encode(key) : key
  return record.key?.length === expected.length && record.key.every((byte, index) => byte === expected[index])
}

/** Finds replays in the main topic. A replay is younger than its dead letter, so the search starts at that time. */
const findReplays = Effect.fnUntraced(function* (
  { admin, scan, topics }: Search,
  origin: Origin,
  letters: ReadonlyArray<ConsumerRecord>
) {
  const { topic } = topics
  const reader = readerOf(topics, admin)
  const now = yield* Clock.currentTimeMillis
  const times = letters.map(({ timestamp }) => timestamp)
  // A time that is none, such as one in nanoseconds, tells nothing.
  const since = times.every((time) => time >= 0 && time <= now) ? Math.min(...times) : 0
  const ends = new Map((yield* admin.topicOffsets(topic)).map(({ partition, logEnd }) => [partition, logEnd]))
  const starts = yield* admin.offsetsForTimestamp(topic, since)
  return yield* Stream.fromIterable(starts).pipe(
    Stream.flatMap(({ partition, offset }) =>
      scan.read({ topic, partition, from: offset, to: ends.get(partition) ?? offset })
    ),
    Stream.filter((record) => isSame(ReplayHeaders.read(record, reader)?.origin, origin)),
    Stream.runCollect
  )
})

const committedBy = Effect.fnUntraced(function* (admin: Admin, groupId: string, topics: ReadonlyArray<string>) {
  const ofMain = yield* admin.committedOffsets(groupId, topics)
  // Retry topics may have a group of their own (`consumer: "separate"`).
  const ofTiers = yield* admin.committedOffsets(TopicName.retryGroup(groupId), topics)
  const offsets = new Map([...ofMain, ...ofTiers].map((at) => [partitionKey(at.topic, at.partition), at.offset]))
  return ({ topic, partition, offset }: ConsumerRecord): boolean | undefined => {
    const committed = offsets.get(partitionKey(topic, partition))
    return committed === undefined ? undefined : committed > offset
  }
})
