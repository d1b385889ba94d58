/**
 * Reads the leases of a group's replays from the journal, and tells which of them live.
 *
 * A lease is over 15 seconds after its last entry. Two clocks decide, whichever tells first, and neither is another process's: the cluster's, by the append times in a
 * journal that has them, and this process's monotonic one, from the moment that it saw the entry. The clock of a broker may be ahead, and stamps entries until another one
 * leads the partition: so the newest record tells the cluster's time, not the latest time, and only as far as this process's wall clock agrees.
 */
import { Clock, Effect, Schedule, type Scope } from "effect"
import type { Broker, Reader, ReadResult } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import * as Clocks from "../base/clocks.ts"
import * as Entries from "./leaseEntries.ts"

/** A lease that is not renewed for so long is over. */
const leaseMillis = 15_000

const readTimeoutMillis = 30_000

export interface LeaseLog {
  /** Reads to the end of the journal, past `least`, and answers the other runs whose lease is not over, the first one first. */
  readonly others: (least: bigint) => Effect.Effect<ReadonlyArray<Entries.LeaseEntry>, BrokerError>
}

export const open = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  groupId: string,
  run: string
): Effect.fn.Return<LeaseLog, BrokerError, Scope.Scope> {
  const clock = yield* Clock.Clock
  const elapsedMillis = Clocks.stopwatch(clock)
  // Leases are written without a transaction, and a replay's open one must not hide them.
  const reader = yield* broker.reader({ isolationLevel: "read_uncommitted" })
  const entries = new Map<string, Entries.LeaseEntry>()
  let position = 0n
  let newestMillis = 0

  /** Whether there is more to read. */
  const accept = (found: ReadResult): boolean => {
    if (found._tag === "OutOfRange") {
      position = found.logStart
      return found.logStart < found.logEnd
    }
    if (found._tag === "Unreadable") {
      position = found.lastOffset + 1n
      return true
    }
    const { records, nextOffset, highWatermark } = found.chunk
    for (const record of records) {
      newestMillis = Entries.appendedMillisOf(record) ?? newestMillis
      Entries.apply(entries, groupId, record, elapsedMillis())
    }
    position = nextOffset
    return nextOffset < highWatermark
  }

  const toEnd = Effect.fnUntraced(function* (least: bigint) {
    let more = true
    while (more || position <= least)
      more = accept(yield* read(reader, { topic, partition: Entries.partition, offset: position }))
  })
  /** A journal that was deleted meanwhile never comes to the offset. */
  const readToEnd = (least: bigint) =>
    Effect.timeoutOrElse(toEnd(least), {
      duration: readTimeoutMillis,
      orElse: () =>
        Effect.fail(new RequestTimedOut({ operation: `Reading topic '${topic}'`, millis: readTimeoutMillis }))
    })

  const others: LeaseLog["others"] = Effect.fnUntraced(function* (least) {
    // A process that is suspended after it has read takes nobody for dead.
    const beganMillis = elapsedMillis()
    yield* readToEnd(least)
    const clusterMillis = Math.min(newestMillis, clock.currentTimeMillisUnsafe())
    const isLive = ({ seenMillis, appendedMillis }: Entries.LeaseEntry): boolean =>
      beganMillis - seenMillis < leaseMillis &&
      (appendedMillis === undefined || clusterMillis - appendedMillis < leaseMillis)
    return Array.from(entries)
      .filter(([other, each]) => other !== run && isLive(each))
      .map(([, each]) => each)
      .sort((one, other) => (one.claim < other.claim ? -1 : 1))
  })
  return { others }
})

/** A leader that has just changed is looked up again. */
const read = (reader: Reader, position: RecordPosition) =>
  Effect.retry(reader.read(position), {
    times: 10,
    schedule: Schedule.spaced("200 millis"),
    while: ({ retryable }) => retryable
  })
