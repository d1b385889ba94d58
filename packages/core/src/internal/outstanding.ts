/**
 * Copies of one partition that are on their way to a retry topic or the dead letter topic. The next record does not wait for their acknowledgement, the
 * commit does: each keeps its slot until then. What is outstanding is bounded, in records and in bytes.
 */
import { Effect, FiberSet, Latch, type Scope } from "effect"
import type { ConsumerRecord } from "../ConsumerRecord.ts"
import { type Handling, settled } from "./handling.ts"
import type { Partition } from "./partition.ts"
import type { Parked } from "./settled.ts"

export interface Outstanding {
  /**
   * Takes a record over that is being published. Returns when there is room for another, or, where order is kept, when it is acknowledged; false
   * when it is not going to be, since the partition stopped.
   */
  readonly add: (record: ConsumerRecord, slot: number, outcome: Parked) => Effect.Effect<boolean>
  /** Whether something is on its way: nothing behind it can be committed. */
  readonly isOpen: () => boolean
  /** Returns when nothing is on its way. */
  readonly idle: Effect.Effect<void>
}

const most = { records: 1_000, bytes: 4 * 1024 * 1024 }

/** `onFinished` is told of every slot that became free. */
export const make = Effect.fnUntraced(function* (
  handling: Handling<unknown>,
  partition: Partition,
  onFinished: () => void = () => {}
): Effect.fn.Return<Outstanding, never, Scope.Scope> {
  const fibers = yield* FiberSet.make<void>()
  const room = Latch.makeUnsafe(true)
  const inOrder = handling.definition.orderingMode === "STRICT"
  const { listenerType, ackMode } = handling.definition
  let records = 0
  let bytes = 0

  const publish = (record: ConsumerRecord, slot: number, outcome: Parked): Effect.Effect<boolean> =>
    Effect.map(outcome.acknowledged, (acknowledged) => {
      const settlement = acknowledged ? outcome.settlement : "Unfinished"
      settled(handling, partition, record, { ...outcome, settlement })
      if (!acknowledged) return false
      partition.tracker.finish(slot)
      onFinished()
      // A batch is acknowledged as a whole, by who handles it.
      if (listenerType === "SINGLE" && ackMode === "MANUAL_IMMEDIATE") handling.committer.hasten(partition)
      else if (listenerType === "SINGLE") handling.committer.mark(partition)
      return true
    })

  const leave = (size: number) => {
    records--
    bytes -= size
    if (records < most.records && bytes < most.bytes) room.openUnsafe()
  }

  return {
    add: (record, slot, outcome) => {
      if (inOrder) return publish(record, slot, outcome)
      const size = (record.value?.length ?? 0) + (record.key?.length ?? 0)
      records++
      bytes += size
      const published = Effect.onExit(publish(record, slot, outcome), () => Effect.sync(() => leave(size)))
      return Effect.flatMap(FiberSet.run(fibers, Effect.asVoid(published)), () => {
        if (records < most.records && bytes < most.bytes) return Effect.succeed(true)
        room.closeUnsafe()
        return Effect.as(partition.until(room.await), true)
      })
    },
    isOpen: () => records > 0,
    idle: FiberSet.awaitEmpty(fibers)
  }
})
