/**
 * Copies of one partition that are on their way to a retry topic or the dead letter topic. The next record does not wait for their acknowledgement, the
 * commit does: each keeps its slot until then. What is outstanding is bounded, in records and in bytes. What fails before the partition's loop lets go of
 * the event loop is published together.
 */
import { Effect, FiberSet, Latch, type Scope } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import type { ResultWithCopy } from "../record/deliveryResult.ts"
import { type ConsumerContext, reportSettled } from "./consumerContext.ts"

export interface PendingCopies {
  /**
   * Takes a record over, to publish its copy. Returns when there is room for another, or, where order is kept, when it is acknowledged; false
   * when it is not going to be, since the partition stopped.
   */
  readonly add: (record: ConsumerRecord, sequence: number, outcome: ResultWithCopy) => Effect.Effect<boolean>
  /** Whether something is on its way: nothing behind it can be committed. */
  readonly hasPending: () => boolean
  /** Returns when nothing is on its way. */
  readonly idle: Effect.Effect<void>
}

interface Entry {
  readonly record: ConsumerRecord
  readonly bytes: number
  readonly sequence: number
  readonly outcome: ResultWithCopy
}

const most = { records: 1_000, bytes: 4 * 1024 * 1024 }

/** What becomes of the slots that `add` takes over. */
export interface Listener {
  /** One became free. */
  readonly onFinished: () => void
  /** One stays unfinished: the partition stops, and no copy takes the record's place. */
  readonly onGivenUp: (sequence: number) => void
}

const nobody: Listener = { onFinished: () => {}, onGivenUp: () => {} }

export const make = Effect.fnUntraced(function* (
  context: ConsumerContext<unknown>,
  partition: Partition,
  { onFinished, onGivenUp }: Listener = nobody
): Effect.fn.Return<PendingCopies, never, Scope.Scope> {
  const fibers = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(fibers)()
  const room = Latch.makeUnsafe(true)
  const inOrder = context.definition.orderingMode === "STRICT"
  const { listenerType, ackMode } = context.definition
  /** What the next flight takes along. */
  let batch: Array<Entry> = []
  let records = 0
  let bytes = 0
  let openingRoom = false

  const hasRoom = () => records < most.records && bytes < most.bytes
  /** After all that one answer of the broker makes room for: what goes on then fails together, too. */
  const openRoom = Effect.map(Effect.yieldNow, () => {
    openingRoom = false
    if (hasRoom()) room.openUnsafe()
  })

  const finish = ({ record, sequence, outcome }: Entry, acknowledged: boolean): boolean => {
    reportSettled(context, partition, record, acknowledged ? outcome : { ...outcome, settlement: "Abandoned" })
    if (!acknowledged) {
      onGivenUp(sequence)
      return false
    }
    partition.tracker.finish(sequence)
    onFinished()
    // A batch is acknowledged as a whole, by who handles it.
    if (listenerType === "SINGLE" && ackMode === "MANUAL_IMMEDIATE") context.committer.hasten(partition)
    else if (listenerType === "SINGLE") context.committer.mark(partition)
    return true
  }

  const onAnswered = (entry: Entry, acknowledged: boolean): void => {
    finish(entry, acknowledged)
    records--
    bytes -= entry.bytes
    if (openingRoom || Latch.isOpen(room) || !hasRoom()) return
    openingRoom = true
    fork(openRoom)
  }

  /** Starts once the partition's loop has let go of the event loop. */
  const take = (entries: ReadonlyArray<Entry>): Effect.Effect<void> =>
    Effect.flatMap(Effect.yieldNow, () => {
      if (batch === entries) batch = []
      // Another owner may have the records by now.
      if (!partition.owned())
        return Effect.sync(() => {
          for (const entry of entries) onAnswered(entry, false)
        })
      return context.copyPublisher.publishEach(
        entries.map(({ outcome }) => outcome.copy),
        (index, answer) => {
          const entry = entries[index]!
          if (typeof answer === "boolean") onAnswered(entry, answer)
          else fork(Effect.map(answer, (acknowledged) => onAnswered(entry, acknowledged)))
        }
      )
    })

  /** Copies keep their order: one for another topic begins another flight. */
  const addToBatch = (entry: Entry): void => {
    const last = batch.at(-1)
    if (last !== undefined && last.outcome.copy.topic === entry.outcome.copy.topic) {
      batch.push(entry)
      return
    }
    batch = [entry]
    fork(take(batch))
  }

  return {
    add: (record, sequence, outcome) => {
      const entry = { record, bytes: sizeOf(record), sequence, outcome }
      if (inOrder)
        return Effect.map(context.copyPublisher.publish(outcome.copy), (acknowledged) => finish(entry, acknowledged))
      // A stop never leads to a copy (ruling 17). One that was taken over before it is published: more may be handled behind it.
      if (partition.stopping) return Effect.sync(() => finish(entry, false))
      records++
      bytes += entry.bytes
      addToBatch(entry)
      if (hasRoom()) return accepted
      room.closeUnsafe()
      return Effect.as(partition.until(room.await), true)
    },
    hasPending: () => records > 0,
    idle: FiberSet.awaitEmpty(fibers)
  }
})

const accepted = Effect.succeed(true)

const sizeOf = ({ key, value }: ConsumerRecord): number => (key?.length ?? 0) + (value?.length ?? 0)
