/**
 * A retry topic whose records wait for times of their own, as the number of their delivery says (`DueRecords`): none is held up by a longer wait in front of it.
 *
 * The fetch goes on while records wait, up to the partition's share of the buffer: then it pauses for reason `backpressure`, and a record that is not fetched may be late,
 * but none is early and none is lost. The records that are due are handed over together, the one that is due first in front. One timer per partition.
 */
import * as Effect from "effect/Effect"
import type { RecordChunk } from "../../Broker.ts"
import type { DueRecords } from "../partition/dueRecords.ts"
import type { Partition } from "../partition/partition.ts"
import * as RetryState from "../record/retryState.ts"
import type { ConsumerContext } from "./consumerContext.ts"
import * as DueTimes from "./dueTimes.ts"

/** Records that are finished far ahead of the first one that waits end the intake. It is looked this often whether that one is finished. */
const fullMillis = 100

interface OwnDueTimes<R> {
  readonly context: ConsumerContext<R>
  readonly partition: Partition
  readonly due: DueRecords
  /** Takes the records of other groups out of a chunk. */
  readonly withoutForeign: (chunk: RecordChunk) => RecordChunk
  /** Handles records that are due. */
  readonly handle: (part: RecordChunk) => Effect.Effect<void, never, R>
}

/** Hands records over when they are due, until the partition stops. */
export const run = Effect.fnUntraced(function* <R>(given: OwnDueTimes<R>) {
  const { context, partition, due, handle } = given
  const nowMillis = () => DueTimes.steadyMillis(context)
  const intake = new Intake(given)
  while (!partition.stopping) {
    const tookIn = intake.takeIn()
    if (tookIn && intake.hasRoom) yield* partition.syncFetch
    const ready = due.takeDue(nowMillis(), context.definition.maxPollRecords)
    if (ready.length > 0) {
      const { topic, partition: number, generation, log } = partition
      const bytes = ready.reduce((sum, each) => sum + each.bytes, 0)
      const records = ready.map(({ record }) => record)
      const at = { topic, partition: number, generation, nextOffset: log.fetchedTo, highWatermark: log.end }
      yield* handle({ ...at, records, bytes })
    } else if (tookIn) yield* Effect.yieldNow
    else {
      const untilDue = Math.min(due.nextMillis - nowMillis(), DueTimes.lookMillis)
      yield* intake.isHeldUp ? partition.sleep(Math.min(untilDue, fullMillis)) : partition.sleepUntilChunk(untilDue)
    }
  }
})

/** Takes fetched records to those that wait, in the order of their offsets. */
class Intake<R> {
  readonly #given: OwnDueTimes<R>
  /** The chunk that is taken in, from this index on. */
  #chunk: RecordChunk | undefined
  #index = 0
  /** Whether a record in it is too far ahead of the first that waits. */
  isHeldUp = false
  /** Whether records that are dropped have made room to fetch again. */
  hasRoom = false

  constructor(given: OwnDueTimes<R>) {
    this.#given = given
  }

  /** Takes the rest of one chunk in, as far as there is room. False when there was none, or no room. */
  takeIn(): boolean {
    const chunk = this.#chunk ?? this.#nextChunk()
    if (chunk === undefined) return false
    const from = this.#index
    const bytes = chunk.records.length === 0 ? 0 : chunk.bytes / chunk.records.length
    this.isHeldUp = false
    while (this.#index < chunk.records.length && !this.isHeldUp) this.#takeRecord(chunk, bytes)
    if (this.isHeldUp) return this.#index > from
    this.#chunk = undefined
    const { context, partition, due } = this.#given
    due.tracker.endOfChunk(chunk.nextOffset)
    context.committer.mark(partition)
    return true
  }

  #nextChunk(): RecordChunk | undefined {
    const { partition, withoutForeign } = this.#given
    const chunk = partition.takeChunk()
    if (chunk === undefined) return undefined
    const own = withoutForeign(chunk)
    const dropped = chunk.records.length - own.records.length
    this.hasRoom = dropped > 0 && partition.release(dropped, chunk.bytes - own.bytes)
    this.#chunk = own
    this.#index = 0
    return own
  }

  #takeRecord(chunk: RecordChunk, bytes: number): void {
    const { context, partition, due } = this.#given
    const record = chunk.records[this.#index]!
    this.isHeldUp = due.isTooFar(record)
    if (this.isHeldUp) return
    this.#index++
    if (due.wasFinished(record)) {
      if (partition.release(1, bytes)) this.hasRoom = true
      return
    }
    const delayMillis = RetryState.waitMillis(record, due.tier, context.definition)
    due.add({ record, dueMillis: DueTimes.dueMillis(context, record, delayMillis), bytes })
  }
}
