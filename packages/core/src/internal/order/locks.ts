/**
 * Makes the locks of parked keys and moves them. A lock counts in the step in which it is made, and finishes what held its key before once it is acknowledged.
 */
import * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Copy } from "../record/copy.ts"
import type { ResultWithCopy } from "../record/deliveryResult.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import type { Entry, LockTarget, Move } from "./entry.ts"
import type { KeyTable } from "./keyTable.ts"
import * as LockCopies from "./lockCopies.ts"
import type { Slots } from "./slots.ts"
import type { UnitOptions } from "./unitOptions.ts"

/** A lock moves on at the latest after so many followers, or after so long, so that a crash repeats no more than that. */
export const rollAfter = { followers: 500, millis: 5_000 }

export interface Listener {
  /** The slots that held a key before are finished. */
  readonly onFinished: () => void
  /** The key's lock is stored, and its record waits for an operator. */
  readonly onHeld: (entry: Entry, record: ConsumerRecord) => void
}

export class Locks {
  readonly #options: UnitOptions
  readonly #table: KeyTable
  readonly #slots: Slots
  readonly #listener: Listener

  constructor(options: UnitOptions, table: KeyTable, slots: Slots, listener: Listener) {
    this.#options = options
    this.#table = table
    this.#slots = slots
    this.#listener = listener
  }

  /** The result with what makes its copy the lock of the key; a dead letter stays one, unless the binding holds it. */
  moveOn(entry: Entry, offset: bigint, result: ResultWithCopy): ResultWithCopy {
    const { definition, main } = this.#options
    if (result.settlement === "Routed") {
      const part = definition.tiers.topics.findIndex(({ topic }) => topic === result.copy.topic) + 1
      return { ...result, copy: this.#lockCopy(entry, { kind: "retry", offset, part }, result.copy) }
    }
    if (definition.perKey.onDeadLetter === "hold" && offset >= entry.blockedTo) {
      const part = definition.tiers.topics.length
      const copy = LockCopies.held(this.#options, result.copy)
      const { topic, last: tier } = definition.tiers.topics[part - 1]!
      const heldAt = { topic: main.topic, partition: main.partition, offset }
      return {
        ...{ ...result, settlement: "Routed" },
        target: { topic, tier, attempt: definition.tiers.deliveries(tier), heldAt },
        copy: this.#lockCopy(entry, { kind: "held", offset, part }, copy)
      }
    }
    entry.awaitsLetter = true
    return result
  }

  /** The lock is acknowledged: what held the key before is finished. */
  acknowledged(entry: Entry, move: Move): void {
    if (entry.move === move) entry.move = undefined
    for (const slot of move.slots) this.#slots.finish(slot)
    this.#listener.onFinished()
  }

  /** Whether the lock is to be moved to what is done. */
  mustRoll(entry: Entry): boolean {
    const { main, elapsedMillis } = this.#options
    if (main.stopping || entry.move !== undefined || !entry.hasFollowers || entry.handledSince === 0) return false
    return entry.handledSince >= rollAfter.followers || elapsedMillis() - entry.lockedMillis >= rollAfter.millis
  }

  /** Publishes a lock at what is done, and finishes the one before when it is acknowledged. */
  roll(entry: Entry): Effect.Effect<boolean> {
    return this.#publish(entry, { kind: "next", offset: entry.doneTo, part: 1 })
  }

  /** Moves the lock of a key that does not drain to the end of a retry topic, as it is: with its record where that is held. */
  renew(entry: Entry, held?: ConsumerRecord): Effect.Effect<boolean> {
    const { offset, part } = entry
    return held === undefined ? this.roll(entry) : this.#publish(entry, { kind: "held", offset, part }, held)
  }

  /** Publishes a lock by itself: also while the unit is given up. */
  #publish(entry: Entry, to: LockTarget, record?: ConsumerRecord): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const copy = this.#lockCopy(entry, to, LockCopies.make(this.#options, entry, to, record))
      const move = entry.move!
      return Effect.map(LockCopies.publish(this.#options, copy), (isAcknowledged) => {
        if (isAcknowledged) this.acknowledged(entry, move)
        return isAcknowledged
      })
    })
  }

  /** Makes this the key's lock, in this step. */
  #lockCopy(entry: Entry, to: LockTarget, copy: Copy): Copy {
    const next = entry.followers.firstAt?.offset ?? entry.evictedFrom ?? this.#firstBehind(entry, to)
    this.#move(entry, to)
    const { offset, hop, epoch, move } = entry
    const lock = { kind: to.kind, offset, hop, epoch, next }
    const { onStored } = copy
    return {
      ...copy,
      headers: [...copy.headers, ...OrderHeaders.ofLock(this.#options.bond, lock)],
      toPartition: this.#options.main.partition,
      onStored: (stored) => {
        onStored?.(stored)
        if (stored.offset > entry.copies[to.part]!) entry.copies[to.part] = stored.offset
        if (to.kind === "held" && entry.move === move) this.#listener.onHeld(entry, stored)
      }
    }
  }

  /** A record that has just failed in the main topic may have followers that no scheduler has asked about. */
  #firstBehind(entry: Entry, { kind, offset }: LockTarget): bigint {
    const least = kind === "next" ? offset : offset + 1n
    if (entry.hop === 0 && entry.kind === undefined) return least
    const { mainPosition } = this.#table
    return mainPosition > least ? mainPosition : least
  }

  #move(entry: Entry, { kind, offset, part }: LockTarget): void {
    const move: Move = { slots: [] }
    this.#slots.leaveTo(entry, move)
    entry.hop = offset === entry.offset ? Math.min(OrderHeaders.maxHop, entry.hop + 1) : 1
    entry.offset = offset
    entry.kind = kind
    entry.epoch = this.#options.epoch
    entry.from = kind === "next" ? offset : offset + 1n
    entry.doneTo = offset
    entry.part = part
    entry.adopted = false
    entry.awaitsLetter = false
    entry.isIdle = false
    entry.held = undefined
    entry.awaitsHead = false
    entry.move = move
    entry.lockedMillis = this.#options.elapsedMillis()
    entry.handledSince = 0
    entry.stuckSinceMillis = undefined
    this.#options.counts.locks[kind]++
  }
}
