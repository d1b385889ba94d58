/**
 * When the records of a retry topic are due: the tier's delay after they were published to it (rulings 13 and 14).
 *
 * Records of a partition become due in the order of their offsets, so waiting for the first is waiting for all. The wait is the partition's own: it holds
 * the fetch for reason `delay`, no handler slot, no timer but its own.
 */
import { Effect } from "effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Clocks from "../base/clocks.ts"
import { partOf } from "../partition/chunkPart.ts"
import type { Partition } from "../partition/partition.ts"
import * as RetryState from "../record/retryState.ts"
import type { ConsumerContext } from "./consumerContext.ts"

/** A wait looks at the clock so often: one that was set meanwhile is noticed, and no timer gets too long for the platform. */
const lookMillis = 60_000

/** Clocks of different machines differ by less. A record that is further ahead of a clock that was set back comes from before that. */
const skewMillis = 60_000

/**
 * So long before a record is due, its partition is fetched from again: a fetch that waits for data elsewhere holds the next one up for `fetch.max.wait.ms`,
 * and what is due together with the record is to be here by then.
 */
const leadMillis = ({ definition }: ConsumerContext<unknown>): number => definition.fetchMaxWaitMillis + 100

/** Hands a chunk over in the parts that are due together, waiting in between. Ends early when the partition stops. */
export const eachDue = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  delayMillis: number,
  chunk: RecordChunk,
  handle: (part: RecordChunk) => Effect.Effect<void, never, R>
) {
  const { records } = chunk
  if (records.length === 0) return yield* handle(chunk)
  const restMillis = countdown(context, delayMillis)
  for (let from = 0; from < records.length; ) {
    yield* waitFor(partition, leadMillis(context), () => restMillis(records[from]!))
    if (partition.stopping) return
    let to = from + 1
    while (to < records.length && restMillis(records[to]!) <= 0) to++
    yield* handle(partOf(chunk, from, to))
    from = to
  }
})

/**
 * How long a record of a chunk that is here now has to wait. A record was in its topic when the chunk came, even if its headers or the clock say otherwise: none waits
 * longer than the delay from then on, and the waits of many do not add up.
 */
const countdown = <R>({ clock, setBackMillis }: ConsumerContext<R>, delayMillis: number) => {
  const hereMillis = Clocks.stopwatch(clock)
  return (record: ConsumerRecord): number => {
    const published = RetryState.publishedMillis(record)
    const now = clock.currentTimeMillisUnsafe()
    const beforeSetting = published > now + skewMillis ? setBackMillis() : 0
    const rest = published + delayMillis - now - beforeSetting
    return rest <= 0 ? rest : Math.min(rest, delayMillis - hereMillis())
  }
}

/** Returns when nothing is left to wait, or the partition stops. */
const waitFor = Effect.fnUntraced(function* (partition: Partition, leadMillis: number, restMillis: () => number) {
  let holdsFetch = false
  const holdFetch = (hold: boolean): Effect.Effect<void> => {
    if (hold === holdsFetch) return Effect.void
    holdsFetch = hold
    if (hold) partition.addReason("delay")
    else partition.removeReason("delay")
    return partition.syncFetch
  }
  while (!partition.stopping) {
    const rest = restMillis()
    if (rest <= 0) break
    const untilFetch = rest - leadMillis
    yield* holdFetch(untilFetch > 0)
    yield* partition.sleep(Math.min(untilFetch > 0 ? untilFetch : rest, lookMillis))
  }
  yield* holdFetch(false)
})
