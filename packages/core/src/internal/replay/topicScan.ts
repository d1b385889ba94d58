/**
 * Reads ranges of partitions, without a group, so that it disturbs nobody's.
 *
 * A range ends by position and never waits for a record that may not come (ruling 31): transaction markers and compacted records move the position too. The scan
 * fails when nothing moves for `idleTimeout`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Admin, Broker, Reader, ReadResult, UnreadableBatch } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut, UnexpectedBrokerError, UnknownTopic } from "../../BrokerError.ts"
import type { ConsumerRecord, RecordPosition, TopicPartition } from "../../ConsumerRecord.ts"
import * as BigInts from "../base/bigInts.ts"
import * as LogLine from "../base/logLine.ts"

export interface Options {
  readonly broker: Broker["Service"]
  readonly admin: Admin
  /** The largest record of a compressed batch that is read. Default: that of a reader (`FetchOptions`). */
  readonly maxRecordBytes?: number
  /** Longest time without progress. Default 30 seconds. */
  readonly idleTimeout?: Duration.Input
}

/** Offsets `from` (inclusive) to `to` (exclusive) of a partition. */
export interface Range extends TopicPartition {
  readonly from: bigint
  readonly to: bigint
}

export interface TopicScan {
  /**
   * Reads the records of a range that `read_committed` consumers see, in order. The scan skips records that retention removes meanwhile. Unless it awaits open
   * transactions, it ends before the first record of one that was open when the scan first read the topic. It leaves out a batch that cannot be read, and logs that: a
   * caller that acts on what is missing takes pages.
   */
  readonly read: (range: Range, openTransactions?: OpenTransactions) => Stream.Stream<ConsumerRecord, BrokerError>
  /** The same records in pages, as they were fetched. A batch that cannot be read is a page of its own, without records. */
  readonly pages: (range: Range, openTransactions?: OpenTransactions) => Stream.Stream<Page, BrokerError>
  /** The id of the topic that the scan reads, looked up at a position that exists; undefined when the cluster gives none. */
  readonly topicId: (position: RecordPosition) => Effect.Effect<string | undefined, BrokerError>
}

/**
 * An open transaction hides the records behind its first one, those of others too. `leave`: the range ends there. `await`: the scan waits for its end, at most
 * `idleTimeout`: for a program that acts on what it reads.
 */
export type OpenTransactions = "leave" | "await"

export interface Page {
  readonly records: ReadonlyArray<ConsumerRecord>
  /** The range is read up to this offset, transaction markers included. */
  readonly nextOffset: bigint
  /** Set when the page stands for a batch that cannot be read: nobody knows its records. */
  readonly unreadable?: UnreadableBatch
}

/** Opens a scan. It sends no request before the first range that is not empty is read. */
export const open = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<TopicScan, never, Scope.Scope> {
  const { broker, admin, maxRecordBytes, idleTimeout = "30 seconds" } = options
  const reader = broker.reader(maxRecordBytes === undefined ? {} : { maxRecordBytes })
  const connected = yield* Effect.cached(Scope.provide(reader, yield* Effect.scope))
  /** The id that each topic had first, and the ends of what could be read then. */
  const topicIds = new Map<string, string>()
  const ends = new Map<string, ReadonlyMap<number, bigint>>()

  const endOf = Effect.fnUntraced(function* ({ topic, partition, to }: Range) {
    const known = ends.get(topic) ?? (yield* readableEnds(admin, topic))
    ends.set(topic, known)
    return BigInts.min(to, known.get(partition) ?? to)
  })

  const look = Effect.fnUntraced(function* (reader: Reader, position: RecordPosition) {
    const found = yield* awaitResult(reader, position, idleTimeout)
    const { topic } = position
    // The ranges are those of the topic that was deleted, and mean nothing in the new one.
    if (found.topicId !== undefined && (topicIds.get(topic) ?? found.topicId) !== found.topicId)
      return yield* new UnknownTopic({ topic })
    if (found.topicId !== undefined) topicIds.set(topic, found.topicId)
    return found
  })

  const topicId = Effect.fnUntraced(function* (position: RecordPosition) {
    const known = topicIds.get(position.topic)
    if (known !== undefined) return known
    const found = yield* Effect.flatMap(connected, ({ read }) => read(position))
    if (found.topicId !== undefined) topicIds.set(position.topic, found.topicId)
    return found.topicId
  })

  const next = Effect.fnUntraced(function* (range: Range, from: bigint, openTransactions: OpenTransactions) {
    const end = openTransactions === "await" ? Effect.succeed(range.to) : endOf(range)
    const [to, reader] = yield* Effect.all([end, connected], { concurrency: "unbounded" })
    let offset: bigint | undefined = from
    while (offset !== undefined && offset < to) {
      const { topic, partition } = range
      const found: ReadResult = yield* look(reader, { topic, partition, offset })
      if (found._tag === "Fetched") return [[pageOf(found.chunk, to)], Option.some(found.chunk.nextOffset)] as const
      if (found._tag === "Unreadable") return unreadablePage(found, to)
      // A log that ends before the position is not the log that the range was taken from: it was recreated.
      offset = found.logStart > found.position ? found.logStart : undefined
    }
    return nothing
  })

  const pages: TopicScan["pages"] = (range, openTransactions = "leave") =>
    Stream.paginate(range.from, (from) =>
      from < range.to ? next(range, from, openTransactions) : Effect.succeed(nothing)
    )
  return {
    pages,
    topicId,
    read: (range, openTransactions) =>
      Stream.flatMap(pages(range, openTransactions), ({ records, unreadable }) =>
        unreadable === undefined
          ? Stream.fromIterable(records)
          : Stream.drain(Stream.fromEffect(LogLine.warning(`Left out ${textOf(unreadable)}`)))
      )
  }
})

const nothing: readonly [ReadonlyArray<Page>, Option.Option<bigint>] = [[], Option.none()]

/** The ends of what can be read of each partition: an open transaction hides the records behind its first one. */
const readableEnds = (admin: Admin, topic: string): Effect.Effect<ReadonlyMap<number, bigint>, BrokerError> =>
  Effect.map(
    admin.topicOffsets(topic, "read_committed"),
    (offsets) => new Map(offsets.map(({ partition, logEnd }) => [partition, logEnd]))
  )

const pageOf = ({ records, nextOffset }: Page, to: bigint): Page => ({
  records: nextOffset > to ? records.filter(({ offset }) => offset < to) : records,
  nextOffset: BigInts.min(nextOffset, to)
})

const unreadablePage = (batch: UnreadableBatch, to: bigint) => {
  const nextOffset = BigInts.min(batch.lastOffset + 1n, to)
  const page: Page = { records: [], nextOffset, unreadable: batch }
  return [[page], Option.some(nextOffset)] as const
}

/** How many offsets of the page's unreadable batch lie at or above an offset: an upper bound of its records there; 0 when the page can be read. */
export const unreadableOffsets = ({ unreadable, nextOffset }: Page, from: bigint): number => {
  if (unreadable === undefined) return 0
  const first = unreadable.offset > from ? unreadable.offset : from
  return nextOffset > first ? Number(nextOffset - first) : 0
}

/** The text of a log line about a batch that cannot be read. */
export const textOf = ({ topic, partition, offset, lastOffset, detail }: UnreadableBatch): string =>
  `offsets ${offset} to ${lastOffset} of ${topic}-${partition}: the batch cannot be read: ${detail}`

/** Reads until something is found. A leader that has just changed may not know yet how far its log can be read. */
const awaitResult = (reader: Reader, position: RecordPosition, limit: Duration.Input) => {
  const { topic, offset } = position
  const millis = Duration.toMillis(limit)
  const timedOut = new RequestTimedOut({ operation: `Reading topic '${topic}'`, millis })
  let failed: BrokerError = timedOut
  return reader.read(position).pipe(
    Effect.filterOrFail(
      (found) => found._tag !== "Fetched" || found.chunk.nextOffset > offset,
      () => {
        failed = hiddenBehindTransaction(position, millis)
        return failed
      }
    ),
    Effect.retry({
      schedule: Schedule.spaced("100 millis"),
      while: ({ _tag, retryable }) => retryable && _tag !== "UnknownTopic"
    }),
    Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail(failed) })
  )
}

const hiddenBehindTransaction = ({ topic, partition, offset }: RecordPosition, millis: number): BrokerError =>
  new UnexpectedBrokerError({
    operation: `Reading ${topic}-${partition} from offset ${offset} on`,
    code: "OPEN_TRANSACTION",
    detail: `an open transaction of some producer has hidden the records there for ${millis} ms. A producer that was killed leaves one, and Kafka ends it after its transaction timeout: try again then`,
    retryable: true
  })
