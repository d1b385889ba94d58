/**
 * Reads partition 0 of a journal, where leases and runs have their entries, from its beginning on, and later what has come since.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Broker, FetchOptions, Reader, ReadResult } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"

/** The partition that all entries of leases and runs lie in, so that the order of the log is theirs. */
export const partition = 0

const readTimeoutMillis = 30_000

export interface JournalTail {
  /** Reads to the end of the journal, and at least past the offset `least`, for which it waits. */
  readonly toEnd: (least?: bigint) => Effect.Effect<void, BrokerError>
}

/** Opens the journal. `onRecord` gets each record once, in order. */
export const open = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  isolationLevel: NonNullable<FetchOptions["isolationLevel"]>,
  onRecord: (record: ConsumerRecord) => void
): Effect.fn.Return<JournalTail, BrokerError, Scope.Scope> {
  const reader = yield* broker.reader({ isolationLevel })
  let position = 0n
  let topicId: string | undefined

  /** Whether there is more to read. A topic that was deleted and made again is read from its beginning. */
  const accept = (found: ReadResult): boolean => {
    const isRemade = topicId !== undefined && found.topicId !== undefined && found.topicId !== topicId
    topicId = found.topicId ?? topicId
    if (isRemade) {
      position = 0n
      return true
    }
    if (found._tag === "OutOfRange") {
      position = found.logStart
      return found.logStart < found.logEnd
    }
    if (found._tag === "Unreadable") {
      position = found.lastOffset + 1n
      return true
    }
    const { records, nextOffset, highWatermark } = found.chunk
    for (const record of records) if (record.offset >= position) onRecord(record)
    if (nextOffset > position) position = nextOffset
    return position < highWatermark
  }

  const readOn = Effect.fnUntraced(function* (least: bigint) {
    // At the end the newest record is read once more: a read that finds nothing waits for something new.
    let offset = least >= 0n && position === least + 1n ? least : position
    let more = true
    while (more || position <= least) {
      const before = position
      more = accept(yield* read(reader, { topic, partition, offset }))
      offset = position
      // An open transaction hides what is awaited.
      if (!more && position === before && position <= least) yield* Effect.sleep(pollMillis)
    }
  })
  /** A journal that was deleted meanwhile never comes to the offset. */
  const toEnd = (least = -1n) =>
    Effect.timeoutOrElse(readOn(least), {
      duration: readTimeoutMillis,
      orElse: () =>
        Effect.fail(new RequestTimedOut({ operation: `Reading topic '${topic}'`, millis: readTimeoutMillis }))
    })
  return { toEnd }
})

const pollMillis = 100

/** A leader that has just changed is looked up again. */
const read = (reader: Reader, position: RecordPosition) =>
  Effect.retry(reader.read(position), {
    times: 10,
    schedule: Schedule.spaced("200 millis"),
    while: ({ retryable }) => retryable
  })
