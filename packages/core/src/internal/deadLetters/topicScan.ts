/**
 * Reads ranges of partitions without disturbing any working group: in a group of its own, which commits nothing and is deleted at the end.
 *
 * A range ends by position and never waits for a record that may not come (ruling 31): transaction markers and compacted records move the position too. The scan
 * fails when nothing moves for `idleTimeout`.
 */
import { Duration, Effect, Option, Queue, Random, Scope, Stream } from "effect"
import type { Broker, ConsumerEvent, ConsumerSession } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut, UnknownTopic } from "../../BrokerError.ts"
import { type ConsumerRecord, partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"

export interface Options {
  readonly broker: Broker["Service"]
  /** All topics that the scan may read. */
  readonly topics: ReadonlyArray<string>
  /** The group is `{groupId}.scan-{random}`, so that a prefixed ACL covers it. */
  readonly groupId: string
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
   * Reads the records of a range that `read_committed` consumers see, in order. One range at a time: starting another ends the previous one. The session's queue
   * limits the memory. The scan skips records that retention removes meanwhile, and records of open transactions.
   */
  readonly read: (range: Range) => Stream.Stream<ConsumerRecord, BrokerError>
  /** The same records in pages, as they were fetched. */
  readonly pages: (range: Range) => Stream.Stream<Page, BrokerError>
}

export interface Page {
  readonly records: ReadonlyArray<ConsumerRecord>
  /** The range is read up to this offset, transaction markers included. */
  readonly nextOffset: bigint
}

/** The next position of a range, undefined when the range is read, and the page that was fetched on the way. */
interface Step {
  readonly page: Page | undefined
  readonly position: bigint | undefined
}

const deleteMillis = 5_000

/** Opens a scan. It sends no request before the first range that is not empty is read. */
export const open = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<TopicScan, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const idleTimeout = Duration.fromInputUnsafe(options.idleTimeout ?? "30 seconds")
  const join = Scope.provide(connect(options), scope)
  let reader: Reader | undefined

  const next = Effect.fnUntraced(function* (range: Range, from: bigint) {
    reader ??= readerOf(yield* join)
    const { session, begin, react, end } = reader
    let at = yield* begin(range, from)
    while (at !== undefined) {
      const event = yield* Effect.timeoutOrElse(Queue.take(session.events), {
        duration: idleTimeout,
        orElse: () =>
          Effect.fail(
            new RequestTimedOut({ operation: `Reading topic '${range.topic}'`, millis: Duration.toMillis(idleTimeout) })
          )
      })
      const { page, position }: Step = yield* react(event, range, at)
      if (page !== undefined) return [[page], Option.some(position ?? range.to)] as const
      at = position
    }
    yield* end
    return nothing
  })

  const pages: TopicScan["pages"] = (range) =>
    Stream.paginate(range.from, (from) => (from < range.to ? next(range, from) : Effect.succeed(nothing)))
  return { pages, read: (range) => Stream.flatMap(pages(range), ({ records }) => Stream.fromIterable(records)) }
})

const nothing: readonly [ReadonlyArray<Page>, Option.Option<bigint>] = [[], Option.none()]

const connect = Effect.fnUntraced(function* ({ broker, groupId, topics }: Options) {
  const group = `${groupId}.scan-${(yield* Random.nextIntBetween(0, 2 ** 48)).toString(36)}`
  // Added before the session, so it runs after the member has left. If the deletion fails, the broker expires the group, which has no offsets.
  yield* Effect.addFinalizer(() =>
    awaitAtMost(
      Effect.ignore(Effect.scoped(Effect.flatMap(broker.admin, (admin) => admin.deleteGroups([group])))),
      deleteMillis
    )
  )
  return yield* broker.consumer({ groupId: group, topics })
})

interface Reader {
  readonly session: ConsumerSession
  /** Starts or continues a range and answers the next position; undefined when nothing is left to read. */
  readonly begin: (range: Range, from: bigint) => Effect.Effect<bigint | undefined>
  readonly react: (event: ConsumerEvent, range: Range, at: bigint) => Effect.Effect<Step, UnknownTopic>
  readonly end: Effect.Effect<void>
}

const readerOf = (session: ConsumerSession): Reader => {
  const assigned = new Map<string, { readonly logStart: bigint; readonly logEnd: bigint }>()
  /** The ids that the topics had first. */
  const topicIds = new Map<string, string>()
  let current: { readonly range: Range; readonly position: bigint } | undefined

  /** The end of what can be read: an open transaction hides the records behind its first one. */
  const endOf = (range: Range): bigint => min(assigned.get(keyOf(range))?.logEnd ?? range.to, range.to)

  const seek = (range: Range, at: bigint, logStart: bigint): Effect.Effect<bigint | undefined> => {
    const start = at > logStart ? at : logStart
    if (start >= endOf(range)) return Effect.succeed(undefined)
    return session.seek(range, start).pipe(Effect.andThen(session.resume([range])), Effect.as(start))
  }

  const end = Effect.suspend(() => {
    const last = current
    current = undefined
    return last === undefined ? Effect.void : session.pause([last.range])
  })

  const begin: Reader["begin"] = (range, from) =>
    Effect.suspend(() => {
      if (current?.range === range && current.position === from) {
        return Effect.succeed(from < endOf(range) ? from : undefined)
      }
      return Effect.flatMap(end, () => {
        current = { range, position: from }
        const known = assigned.get(keyOf(range))
        return known === undefined ? Effect.succeed(from) : seek(range, from, known.logStart)
      })
    })

  const react: Reader["react"] = (event, range, at) => {
    const moved = (position: bigint | undefined): Step => ({ page: undefined, position })
    switch (event._tag) {
      case "Assigned": {
        for (const { topic, topicId } of event.partitions) {
          if (topicId === undefined) continue
          // The ranges are those of the topic that was deleted, and mean nothing in the new one.
          if ((topicIds.get(topic) ?? topicId) !== topicId) return Effect.fail(new UnknownTopic({ topic }))
          topicIds.set(topic, topicId)
        }
        for (const partition of event.partitions) assigned.set(keyOf(partition), partition)
        const own = event.partitions.find((partition) => keyOf(partition) === keyOf(range))
        return own === undefined ? Effect.succeed(moved(at)) : Effect.map(seek(range, at, own.logStart), moved)
      }
      case "Revoked":
      case "Lost":
        for (const partition of event.partitions) assigned.delete(keyOf(partition))
        return event._tag === "Lost" ? Effect.succeed(moved(at)) : Effect.as(event.release, moved(at))
      case "Unreadable":
        if (keyOf(event) !== keyOf(range)) return Effect.succeed(moved(at))
        return Effect.logWarning(
          `Left out offsets ${event.offset} to ${event.lastOffset} of ${event.topic}-${event.partition}: the batch cannot be read: ${event.detail}`
        ).pipe(Effect.andThen(seek(range, event.lastOffset + 1n, event.lastOffset + 1n)), Effect.map(moved))
      case "OutOfRange":
        if (keyOf(event) !== keyOf(range)) return Effect.succeed(moved(at))
        // A log that ends before the position is not the log that the range was taken from: it was recreated.
        return event.logStart > event.position
          ? Effect.map(seek(range, event.logStart, event.logStart), moved)
          : Effect.succeed(moved(undefined))
      case "Fetched": {
        const { nextOffset, records } = event.chunk
        if (keyOf(event.chunk) !== keyOf(range)) return Effect.succeed(moved(at))
        const to = endOf(range)
        const position = nextOffset < to ? nextOffset : undefined
        current = { range, position: position ?? range.to }
        const page = {
          records: records.filter(({ offset }) => offset >= at && offset < to),
          nextOffset: min(nextOffset, to)
        }
        return Effect.succeed({ page, position })
      }
    }
  }
  return { session, begin, react, end }
}

const keyOf = ({ topic, partition }: TopicPartition): string => partitionKey(topic, partition)

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
