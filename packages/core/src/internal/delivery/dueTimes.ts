/**
 * When the records of a retry topic are due: the tier's delay after they were published to it (rulings 13 and 14). Here all records of a topic wait equally long; where
 * the number of the delivery says how long, it is `ownDueTimes.ts`.
 *
 * Records of a partition become due in the order of their offsets: one wait for the first serves all. The wait pauses the fetch of its partition for reason
 * `delay`. It takes no concurrency slot, and one timer per partition.
 */
import * as Effect from "effect/Effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Clocks from "../base/clocks.ts"
import { partOf } from "../partition/chunkPart.ts"
import type { Partition } from "../partition/partition.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import * as RetryState from "../record/retryState.ts"
import type { ConsumerContext } from "./consumerContext.ts"

/** A wait looks at the clock this often: it notices a clock that was set, and no timer gets too long for the platform. */
export const lookMillis = 60_000

/** The clocks of two machines differ by less. A record that is further ahead was published before this clock was set back. */
const skewMillis = 60_000

/**
 * The partition is fetched again this long before a record is due. A fetch that waits for data of another partition delays the next fetch by
 * `fetch.max.wait.ms`, and the records that are due together with this one have to be here by then.
 */
const leadMillis = ({ definition }: ConsumerContext<unknown>): number => definition.fetchMaxWaitMillis + 100

/** Hands a chunk over in parts that are due together, and waits in between. Ends early when the partition stops. */
export const eachDue = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  delayMillis: number,
  chunk: RecordChunk,
  handle: (part: RecordChunk) => Effect.Effect<void, never, R>
) {
  const { records } = chunk
  if (records.length === 0) return yield* handle(chunk)
  const untilDueMillis = countdown(context, delayMillis)
  // A lock without a record to deliver, or a claim, waits for nothing but those in front of it.
  const isAtOnce = (record: ConsumerRecord) => partition.order !== undefined && OrderHeaders.isAtOnce(record)
  const restMillis = (record: ConsumerRecord) => (isAtOnce(record) ? 0 : untilDueMillis(record))
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
 * How long a record of a chunk that is here now has to wait. The record was in its topic when the chunk came, even if its headers or the clock say otherwise: no
 * record waits longer than the delay from then on, and the waits of many records do not add up.
 */
const countdown = <R>(context: ConsumerContext<R>, delayMillis: number) => {
  const hereMillis = Clocks.stopwatch(context.clock)
  return (record: ConsumerRecord): number => {
    const rest = restMillis(context, record, delayMillis, context.clock.currentTimeMillisUnsafe())
    return rest <= 0 ? rest : Math.min(rest, delayMillis - hereMillis())
  }
}

const restMillis = <R>(
  { setBackMillis }: ConsumerContext<R>,
  record: ConsumerRecord,
  delayMillis: number,
  nowMillis: number
): number => {
  const published = RetryState.publishedMillis(record)
  const beforeSetting = published > nowMillis + skewMillis ? setBackMillis() : 0
  return Math.min(published + delayMillis - nowMillis - beforeSetting, delayMillis)
}

/** The wall clock as if nobody had set it back: due times by it lie in the future for no longer than they did when they were made. */
export const steadyMillis = <R>({ clock, setBackMillis }: ConsumerContext<R>): number =>
  clock.currentTimeMillisUnsafe() + setBackMillis()

/** When a record that has just come is due, by that clock: after its delay at the latest. */
export const dueMillis = <R>(context: ConsumerContext<R>, record: ConsumerRecord, delayMillis: number): number => {
  // One reading: between two, the clock may move on, and the record would be early by that.
  const nowMillis = context.clock.currentTimeMillisUnsafe()
  return nowMillis + context.setBackMillis() + restMillis(context, record, delayMillis, nowMillis)
}

/** Returns when no wait is left, or when the partition stops. */
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
