/**
 * When the records of a retry topic are due: the tier's delay after they were published to it (rulings 13 and 14).
 *
 * Records of a partition become due in the order of their offsets, so waiting for the first is waiting for all. The wait is the partition's own: it holds
 * the fetch for reason `delay`, no handler slot, no timer but its own.
 */
import { Effect } from "effect"
import type { RecordChunk } from "../Broker.ts"
import type { ConsumerRecord } from "../ConsumerRecord.ts"
import * as Bookkeeping from "./bookkeeping.ts"
import type { Handling } from "./handling.ts"
import type { Partition } from "./partition.ts"

/** A wait looks at the clock so often: one that was set meanwhile is noticed, and no timer gets too long for the platform. */
const lookMillis = 60_000

/** Hands a chunk over in the parts that are due together, waiting in between. Ends early when the partition stops. */
export const eachDue = Effect.fnUntraced(function* <R>(
  handling: Handling<R>,
  partition: Partition,
  delayMillis: number,
  chunk: RecordChunk,
  handle: (part: RecordChunk) => Effect.Effect<void, never, R>
) {
  const { records } = chunk
  const bytesEach = records.length === 0 ? 0 : chunk.bytes / records.length
  if (records.length === 0) return yield* handle(chunk)
  for (let from = 0; from < records.length; ) {
    yield* waitFor(handling, partition, delayMillis, records[from]!)
    if (partition.stopping) return
    const now = handling.clock.currentTimeMillisUnsafe()
    let to = from + 1
    while (to < records.length && dueMillis(records[to]!, delayMillis) <= now) to++
    const part = records.slice(from, to)
    yield* handle({
      ...chunk,
      records: part,
      bytes: bytesEach * part.length,
      nextOffset: to === records.length ? chunk.nextOffset : part.at(-1)!.offset + 1n
    })
    from = to
  }
})

const dueMillis = (record: ConsumerRecord, delayMillis: number): number =>
  Bookkeeping.publishedMillis(record) + delayMillis

/** Returns when the record is due, or the partition stops. Whatever the header says, it takes no longer than the delay. */
const waitFor = Effect.fnUntraced(function* <R>(
  { clock }: Handling<R>,
  partition: Partition,
  delayMillis: number,
  record: ConsumerRecord
) {
  const due = dueMillis(record, delayMillis)
  const elapsedMillis = stopwatch(clock)
  let waits = false
  while (!partition.stopping) {
    const now = clock.currentTimeMillisUnsafe()
    // Behind the clock's back (it was set back, or the header lies ahead), the delay itself is the longest wait.
    const rest = Math.min(due - now, delayMillis - elapsedMillis())
    if (rest <= 0) break
    if (!waits) {
      waits = true
      partition.addReason("delay")
      yield* partition.syncFetch
    }
    yield* partition.sleep(Math.min(rest, lookMillis))
  }
  if (!waits) return
  partition.removeReason("delay")
  yield* partition.syncFetch
})

/** Measures with the monotonic clock, in whole milliseconds: a millisecond that has begun does not count. */
const stopwatch = (clock: Handling<unknown>["clock"]): (() => number) => {
  const began = clock.currentTimeNanosUnsafe()
  return () => Number((clock.currentTimeNanosUnsafe() - began) / 1_000_000n)
}
