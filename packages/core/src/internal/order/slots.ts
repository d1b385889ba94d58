/**
 * The records of a unit's parts that are held for a key: begun, and not finished while the key needs them.
 */
import type { Committer } from "../partition/committer.ts"
import type { Partition } from "../partition/partition.ts"
import type { Entry, Move, Slot } from "./entry.ts"

/** The locks of held keys move to the end of their topic when so many stand there for each other record, and so many at once. */
const heldPerOther = 8
const mostMoving = 500

/** A slot that is held for a key. */
interface HeldSlot {
  readonly entry: Entry
  /** Set when a lock is on its way that takes the slot's place. */
  move: Move | undefined
}

export class Slots {
  readonly #parts: ReadonlyArray<Partition>
  readonly #committer: Committer
  /** By part and sequence. */
  readonly #held: ReadonlyArray<Map<number, HeldSlot>>

  constructor(parts: ReadonlyArray<Partition>, committer: Committer) {
    this.#parts = parts
    this.#committer = committer
    this.#held = parts.map(() => new Map())
  }

  at(part: number, sequence: number): Readonly<HeldSlot> | undefined {
    return this.#held[part]!.get(sequence)
  }

  /** The slot is finished once the key is free, or a higher lock is acknowledged. */
  hold(entry: Entry, slot: Slot): void {
    entry.slot = slot
    this.#held[slot.part]!.set(slot.sequence, { entry, move: undefined })
  }

  /** A lock is on its way that takes the place of the key's slot. */
  leaveTo(entry: Entry, move: Move): void {
    if (entry.slot === undefined) return
    move.slots.push(entry.slot)
    this.#held[entry.slot.part]!.get(entry.slot.sequence)!.move = move
    entry.slot = undefined
  }

  /** The slot's record is finished: its offset may be committed. */
  finish({ part, sequence }: Slot): void {
    const partition = this.#parts[part]!
    this.#held[part]!.delete(sequence)
    partition.tracker.finish(sequence)
    this.#committer.mark(partition)
    partition.onFinishedBeside()
  }

  /** A record that no key holds is finished, by a scheduler that tells the committer itself. */
  finishUnheld(part: number, sequence: number): void {
    this.#parts[part]!.tracker.finish(sequence)
  }

  /** The key whose slot is the first unfinished one of a part; undefined where there is none, or a lock takes its place. */
  front(part: number): Entry | undefined {
    const held = this.#held[part]!.get(this.#parts[part]!.tracker.firstSequence())
    return held?.move === undefined ? held?.entry : undefined
  }

  /**
   * The held keys whose locks stand in front of a part, where those locks keep others from leaving: they go to its end. Many locks move only for many others, so that they are not
   * written again and again; and none for nothing.
   */
  heldFront(part: number): ReadonlyArray<Entry> {
    const { tracker } = this.#parts[part]!
    const slots = this.#held[part]!
    let held = 0
    for (const { entry } of slots.values()) if (waits(entry)) held++
    const others = tracker.span() - held
    if (others === 0 || others * heldPerOther < held) return []
    const front: Array<Entry> = []
    for (let sequence = tracker.firstSequence(); front.length < mostMoving; sequence++) {
      const slot = slots.get(sequence)
      if (slot === undefined || slot.move !== undefined || !waits(slot.entry)) break
      front.push(slot.entry)
    }
    return front
  }

  /** Whether a lock that waits for no delivery keeps what is finished behind it from being committed. */
  holdsBack({ slot, kind }: Entry): boolean {
    if (slot === undefined || slot.part === 0 || kind === "retry") return false
    const { tracker } = this.#parts[slot.part]!
    return tracker.span() > tracker.inFlight()
  }

  /** Whether the key has nothing left to do, and no copy of it lies above a retry position: the next owner would take that for the key's lock. */
  isFree(entry: Entry): boolean {
    const { slot } = entry
    if (!entry.isIdle || entry.isGone || entry.move !== undefined || slot === undefined || entry.hasFollowers)
      return false
    return this.#parts.every((partition, part) => part === 0 || isCovered(entry, slot, partition, part))
  }
}

const waits = ({ held, isDraining }: Entry): boolean => held !== undefined && !isDraining

const isCovered = (entry: Entry, slot: Slot, { tracker }: Partition, part: number): boolean => {
  const copy = entry.copies[part]!
  if (slot.part !== part) return copy < tracker.position()
  const own = tracker.oldest()
  return own !== undefined && slot.sequence === tracker.firstSequence() && copy <= own.offset
}
