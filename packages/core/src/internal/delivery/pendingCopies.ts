/**
 * Copies of one partition that are on their way to a retry topic or the dead letter topic. The next record does not wait for their acknowledgement, the
 * commit does: each keeps its slot until then. What is outstanding is bounded, in records and in bytes. What fails before the partition's loop lets go of
 * the event loop is published together.
 */
import { Effect, FiberSet, Latch, type Scope } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import type { Parked } from "../record/deliveryResult.ts"
import { type Handling, settled } from "./consumerContext.ts"

export interface Outstanding {
  /**
   * Takes a record over, to publish its copy. Returns when there is room for another, or, where order is kept, when it is acknowledged; false
   * when it is not going to be, since the partition stopped.
   */
  readonly add: (record: ConsumerRecord, slot: number, outcome: Parked) => Effect.Effect<boolean>
  /** Whether something is on its way: nothing behind it can be committed. */
  readonly isOpen: () => boolean
  /** Returns when nothing is on its way. */
  readonly idle: Effect.Effect<void>
}

interface Entry {
  readonly record: ConsumerRecord
  readonly bytes: number
  readonly slot: number
  readonly outcome: Parked
}

const most = { records: 1_000, bytes: 4 * 1024 * 1024 }

/** What becomes of the slots that `add` takes over. */
export interface Listener {
  /** One became free. */
  readonly onFinished: () => void
  /** One stays unfinished: the partition stops, and no copy takes the record's place. */
  readonly onGivenUp: (slot: number) => void
}

const nobody: Listener = { onFinished: () => {}, onGivenUp: () => {} }

export const make = Effect.fnUntraced(function* (
  handling: Handling<unknown>,
  partition: Partition,
  { onFinished, onGivenUp }: Listener = nobody
): Effect.fn.Return<Outstanding, never, Scope.Scope> {
  const fibers = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(fibers)()
  const room = Latch.makeUnsafe(true)
  const inOrder = handling.definition.orderingMode === "STRICT"
  const { listenerType, ackMode } = handling.definition
  /** What the next flight takes along. */
  let boarding: Array<Entry> = []
  let records = 0
  let bytes = 0
  let opening = false

  const hasRoom = () => records < most.records && bytes < most.bytes
  /** After all that one answer of the broker makes room for: what goes on then fails together, too. */
  const open = Effect.map(Effect.yieldNow, () => {
    opening = false
    if (hasRoom()) room.openUnsafe()
  })

  const finish = ({ record, slot, outcome }: Entry, acknowledged: boolean): boolean => {
    settled(handling, partition, record, acknowledged ? outcome : { ...outcome, settlement: "Unfinished" })
    if (!acknowledged) {
      onGivenUp(slot)
      return false
    }
    partition.tracker.finish(slot)
    onFinished()
    // A batch is acknowledged as a whole, by who handles it.
    if (listenerType === "SINGLE" && ackMode === "MANUAL_IMMEDIATE") handling.committer.hasten(partition)
    else if (listenerType === "SINGLE") handling.committer.mark(partition)
    return true
  }

  const land = (entry: Entry, acknowledged: boolean): void => {
    finish(entry, acknowledged)
    records--
    bytes -= entry.bytes
    if (opening || Latch.isOpen(room) || !hasRoom()) return
    opening = true
    fork(open)
  }

  /** Starts once the partition's loop has let go of the event loop. */
  const take = (entries: ReadonlyArray<Entry>): Effect.Effect<void> =>
    Effect.flatMap(Effect.yieldNow, () => {
      if (boarding === entries) boarding = []
      // Another owner may have the records by now.
      if (!partition.owned())
        return Effect.sync(() => {
          for (const entry of entries) land(entry, false)
        })
      return handling.parking.publishEach(
        entries.map(({ outcome }) => outcome.copy),
        (index, answer) => {
          const entry = entries[index]!
          if (typeof answer === "boolean") land(entry, answer)
          else fork(Effect.map(answer, (acknowledged) => land(entry, acknowledged)))
        }
      )
    })

  /** Copies keep their order: one for another topic begins another flight. */
  const board = (entry: Entry): void => {
    const last = boarding.at(-1)
    if (last !== undefined && last.outcome.copy.topic === entry.outcome.copy.topic) {
      boarding.push(entry)
      return
    }
    boarding = [entry]
    fork(take(boarding))
  }

  return {
    add: (record, slot, outcome) => {
      const entry = { record, bytes: sizeOf(record), slot, outcome }
      if (inOrder)
        return Effect.map(handling.parking.publish(outcome.copy), (acknowledged) => finish(entry, acknowledged))
      // A stop never leads to a copy (ruling 17). One that was taken over before it is published: more may be handled behind it.
      if (partition.stopping) return Effect.sync(() => finish(entry, false))
      records++
      bytes += entry.bytes
      board(entry)
      if (hasRoom()) return accepted
      room.closeUnsafe()
      return Effect.as(partition.until(room.await), true)
    },
    isOpen: () => records > 0,
    idle: FiberSet.awaitEmpty(fibers)
  }
})

const accepted = Effect.succeed(true)

const sizeOf = ({ key, value }: ConsumerRecord): number => (key?.length ?? 0) + (value?.length ?? 0)
