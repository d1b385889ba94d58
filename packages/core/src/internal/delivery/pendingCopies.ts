/**
 * Copies of one partition on their way to a retry topic or the dead letter topic. The next record does not wait for their acknowledgement, the commit does: each
 * record keeps its offset unfinished until then. The number of pending copies is bounded, in records and in bytes. Records that fail before the partition's loop
 * lets go of the event loop are published together.
 */
import { Effect, FiberSet, Latch, type Scope } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import { type DeliveryResult, type ResultWithCopy, staysInPlace } from "../record/deliveryResult.ts"
import { type ConsumerContext, reportSettled } from "./consumerContext.ts"

export interface PendingCopies {
  /**
   * Takes a record over, to publish its copy. Returns when there is room for another, or, where order is kept, when the copy is acknowledged; false when it is
   * not going to be, since the partition stopped.
   */
  readonly add: (record: ConsumerRecord, sequence: number, result: ResultWithCopy) => Effect.Effect<boolean>
  /** Reports a result that needs no copy. True when the record is finished by it. */
  readonly finish: (record: ConsumerRecord, sequence: number, result: DeliveryResult) => boolean
  /** Whether a copy is on its way: nothing behind its record can be committed. */
  readonly hasPending: () => boolean
  /** Returns when no copy is on its way. */
  readonly idle: Effect.Effect<void>
}

interface PendingCopy {
  readonly record: ConsumerRecord
  readonly bytes: number
  readonly sequence: number
  readonly result: ResultWithCopy
}

const most = { records: 1_000, bytes: 4 * 1024 * 1024 }

/** Hears what becomes of the records. */
export interface Listener {
  /** One is finished. */
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
  /** What is published next, in one request. */
  let batch: Array<PendingCopy> = []
  let records = 0
  let bytes = 0
  let openingRoom = false

  const hasRoom = () => records < most.records && bytes < most.bytes
  /** After everything that one answer of the broker makes room for: the records that fail next are published together, too. */
  const openRoom = Effect.map(Effect.yieldNow, () => {
    openingRoom = false
    if (hasRoom()) room.openUnsafe()
  })

  const finish: PendingCopies["finish"] = (record, sequence, result) => {
    reportSettled(context, partition, record, result)
    if (result.settlement === "Abandoned" || staysInPlace(result)) return false
    partition.tracker.finish(sequence)
    onFinished()
    return true
  }

  const onAcknowledged = ({ record, sequence, result }: PendingCopy): void => {
    finish(record, sequence, result)
    // A batch is acknowledged as a whole, by the scheduler.
    if (listenerType === "SINGLE" && ackMode === "MANUAL_IMMEDIATE") context.committer.hasten(partition)
    else if (listenerType === "SINGLE") context.committer.mark(partition)
  }

  const onAnswered = (pending: PendingCopy, acknowledged: boolean): boolean => {
    if (acknowledged) onAcknowledged(pending)
    else {
      finish(pending.record, pending.sequence, { ...pending.result, settlement: "Abandoned" })
      onGivenUp(pending.sequence)
    }
    return acknowledged
  }

  const makeRoom = (pending: PendingCopy, acknowledged: boolean): void => {
    onAnswered(pending, acknowledged)
    records--
    bytes -= pending.bytes
    if (openingRoom || Latch.isOpen(room) || !hasRoom()) return
    openingRoom = true
    fork(openRoom)
  }

  /** Starts once the partition's loop has let go of the event loop. */
  const publish = (copies: ReadonlyArray<PendingCopy>): Effect.Effect<void> =>
    Effect.flatMap(Effect.yieldNow, () => {
      if (batch === copies) batch = []
      // Another owner may have the records by now.
      if (!partition.owned())
        return Effect.sync(() => {
          for (const pending of copies) makeRoom(pending, false)
        })
      return context.copyPublisher.publishEach(
        copies.map(({ result }) => result.copy),
        (index, answer) => {
          const pending = copies[index]!
          if (typeof answer === "boolean") makeRoom(pending, answer)
          else fork(Effect.map(answer, (acknowledged) => makeRoom(pending, acknowledged)))
        }
      )
    })

  /** Copies keep their order: one for another topic begins another batch. */
  const addToBatch = (pending: PendingCopy): void => {
    const last = batch.at(-1)
    if (last !== undefined && last.result.copy.topic === pending.result.copy.topic) {
      batch.push(pending)
      return
    }
    batch = [pending]
    fork(publish(batch))
  }

  return {
    add: (record, sequence, result) => {
      const pending = { record, bytes: sizeOf(record), sequence, result }
      if (inOrder)
        return Effect.map(context.copyPublisher.publish(result.copy), (acknowledged) =>
          onAnswered(pending, acknowledged)
        )
      // A stop never leads to a copy (ruling 17). A copy that was taken over before it is published: more may be handled behind its record.
      if (partition.stopping) return Effect.sync(() => onAnswered(pending, false))
      records++
      bytes += pending.bytes
      addToBatch(pending)
      if (hasRoom()) return accepted
      room.closeUnsafe()
      return Effect.as(partition.until(room.await), true)
    },
    finish,
    hasPending: () => records > 0,
    idle: FiberSet.awaitEmpty(fibers)
  }
})

const accepted = Effect.succeed(true)

const sizeOf = ({ key, value }: ConsumerRecord): number => (key?.length ?? 0) + (value?.length ?? 0)
