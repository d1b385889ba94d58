/**
 * The protocol of one unit: a source partition and the same partition of each of its retry topics, which one member owns together.
 *
 * A key whose record leaves for a retry topic is *parked*: the copy is its lock, which says that everything of the key below it is done. Records of the key behind it (its
 * followers) are finished in the source without being handled, since the lock covers them; once the head is done, the key *drains*: its followers are handled in order, beside
 * the loops of the partitions. The key is free when nothing follows. No step yields between a decision and its effect on the table.
 *
 * `docs/invariants.md` has the invariants under "Order per key"; `docs/decisions/order-per-key.md` has the steps.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { OrderedPart } from "../partition/orderedPart.ts"
import type { ResultWithCopy } from "../record/deliveryResult.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import { Claims } from "./claims.ts"
import { Entry, type Slot, textOf } from "./entry.ts"
import { HeldKeys } from "./heldKeys.ts"
import * as HeldReading from "./heldReading.ts"
import { KeyTable } from "./keyTable.ts"
import { Locks, rollAfter } from "./locks.ts"
import { Slots } from "./slots.ts"
import type { UnitOptions } from "./unitOptions.ts"
import { MainPart, RetryPart } from "./unitPart.ts"

export class Unit {
  readonly options: UnitOptions
  readonly table: KeyTable
  readonly locks: Locks
  readonly heldKeys: HeldKeys
  /** The parts of the unit; 0 is the main topic. */
  readonly parts: ReadonlyArray<OrderedPart>
  /** Of each retry topic. */
  readonly claims: ReadonlyArray<Claims>
  /** Takes a key whose followers are to be handled. Set by the scheduler of the followers. */
  onDrain: (entry: Entry) => void = () => {}
  /** Hears that somebody needs followers from the source, or that a key is parked. */
  onWork: () => void = () => {}
  /** Runs an effect beside the loops of the partitions. */
  onBeside: (effect: Effect.Effect<unknown>) => void = () => {}
  readonly #slots: Slots
  readonly #lost: ReadonlyArray<ReadonlySet<bigint>>
  /** Open once everything is said that is done. Undefined until the unit is given up. */
  #givenUp: Latch.Latch | undefined

  /** `lost`: of each retry topic, the locks whose offset the source does not have. An operator has accepted that: their records are retried without order. */
  constructor(options: UnitOptions, epochs: ReadonlyArray<number>, lost: ReadonlyArray<ReadonlySet<bigint>> = []) {
    const { main, tiers, bodies, parkedRoom, committer } = options
    this.options = options
    this.#lost = lost
    this.claims = tiers.map((_, index) => new Claims(epochs[index] ?? 0))
    this.table = new KeyTable({ main, bodies, parkedRoom })
    this.#slots = new Slots([main, ...tiers], committer)
    this.locks = new Locks(options, this.table, this.#slots, {
      onFinished: () => this.release(),
      onHeld: (entry, record) => this.heldKeys.hold(entry, record)
    })
    this.heldKeys = new HeldKeys(this)
    this.parts = [new MainPart(this), ...tiers.map((_, index) => new RetryPart(this, index + 1))]
  }

  get stopping(): boolean {
    return this.options.main.stopping
  }

  /** Begins to work: keys whose lock has no record drain at once, and so do those whose record a retry topic has delivered before anybody took their followers. */
  start(): void {
    for (const entry of this.table.values()) {
      if (entry.isDraining) this.onDrain(entry)
      else if (entry.kind === "next") this.drain(entry)
    }
    if (this.table.size > 0) this.onWork()
  }

  // Records of the main topic

  /** True for a follower, and for a record that is done already. */
  takeMain(record: ConsumerRecord, sequence: number): boolean {
    const { table } = this
    if (record.key === null || table.size === 0) return false
    table.forgetPassed(record)
    const entry = table.get(record.key)
    if (entry === undefined) return false
    if (entry.isGone && record.offset >= entry.from) {
      table.forget(entry)
      return false
    }
    if (record.offset >= entry.from) this.#follow(entry, record)
    this.#slots.finish({ part: 0, sequence })
    return true
  }

  #follow(entry: Entry, record: ConsumerRecord): void {
    this.table.followers++
    if (entry.evictedFrom !== undefined || !this.table.remember(entry, record)) entry.evictedRecords++
    if (!entry.isIdle) return
    entry.isIdle = false
    this.drain(entry)
  }

  /** Parks the key of a record that leaves for a retry topic or the dead letter topic, or moves its lock. Answers what is published. */
  park(part: number, record: ConsumerRecord, sequence: number, result: ResultWithCopy): ResultWithCopy {
    const known = this.#slots.at(part, sequence)?.entry
    // A copy without order goes on without, and so does a record without a key.
    if (known === undefined && (part > 0 || record.key === null || !this.options.parks)) return result
    const entry = known ?? this.#enter(record, { part, sequence })
    return this.locks.moveOn(entry, entry.offset, result)
  }

  #enter(record: ConsumerRecord, slot: Slot): Entry {
    const { epoch, clock } = this.options
    const key = textOf(record.key!)
    const entry = new Entry(key, record.key!, record.offset, epoch, this.parts.length, clock.currentTimeMillisUnsafe())
    this.table.add(entry)
    this.#slots.hold(entry, slot)
    this.onWork()
    return entry
  }

  /** A scheduler is done with a record. */
  finish(part: number, sequence: number): void {
    const held = this.#slots.at(part, sequence)
    if (held === undefined) {
      this.#slots.finishUnheld(part, sequence)
      if (part > 0) this.release()
    } else if (held.move !== undefined) this.locks.acknowledged(held.entry, held.move)
    else {
      held.entry.awaitsLetter = false
      held.entry.doneTo = held.entry.offset + 1n
      this.drain(held.entry)
    }
  }

  /** False for the key's lock where its record is due, and for a copy without order: they are delivered. */
  takeTier(part: number, record: ConsumerRecord, sequence: number): boolean {
    const read = OrderHeaders.read(record, this.options.bond)
    const slot = { part, sequence }
    const isLost = this.#lost[part - 1]?.has(record.offset) === true
    if (read === undefined || read.kind === "stranger" || isLost) {
      const isLock = isLost || (read?.kind === "stranger" && read.lock !== undefined)
      const isDone = isLock && record.offset < this.options.strangersTo[part - 1]!
      return (isDone || OrderHeaders.isForNoHandler(record)) && this.#pass(slot)
    }
    if (read.kind === "accept-loss") return this.#pass(slot)
    if (read.kind === "claim") {
      this.claims[part - 1]!.add(record.offset, read.epoch)
      return this.#pass(slot)
    }
    const entry = this.table.get(record.key!)
    if (!OrderHeaders.isLock(read)) {
      if (entry !== undefined) this.heldKeys.command(entry, read)
      return this.#pass(slot)
    }
    if (entry === undefined || !isLockOf(entry, read)) return this.#superseded(entry, slot)
    entry.adopted = true
    this.#slots.hold(entry, slot)
    if (read.kind === "retry") return false
    if (read.kind === "held") this.heldKeys.hold(entry, record)
    this.release()
    return true
  }

  #pass(slot: Slot): true {
    this.#slots.finish(slot)
    this.release()
    return true
  }

  /** A copy that is no lock any more is done with, but not before the one that replaced it is acknowledged. */
  #superseded(entry: Entry | undefined, slot: Slot): true {
    if (entry?.move === undefined) return this.#pass(slot)
    entry.move.slots.push(slot)
    return true
  }

  // The drain

  /** Handles what follows, or finds the key idle. */
  drain(entry: Entry): void {
    if (entry.isDraining || this.stopping) return
    if (entry.hasFollowers) {
      entry.isDraining = true
      this.onDrain(entry)
    } else {
      entry.isIdle = true
      // The slot of a dead letter in the main topic has no lock in front of it.
      if (entry.slot?.part === 0 && this.#slots.isFree(entry)) this.#free(entry)
      this.release()
    }
  }

  /** Its followers are handled, as far as they are known: the key is idle, or drains again. */
  drained(entry: Entry): void {
    entry.isDraining = false
    this.drain(entry)
  }

  /** A follower is done with. */
  handled(entry: Entry, record: ConsumerRecord): void {
    const { table } = this
    if (entry.followers.first === record) table.shift(entry)
    if (table.followers > 0) table.followers--
    entry.held = undefined
    entry.awaitsHead = false
    entry.doneTo = record.offset + 1n
    entry.handledSince++
  }

  // Release

  /** Sets keys free that have nothing left to do, from the front of each retry topic: the lock is gone in the step in which the key is free. */
  release(): void {
    for (let again = true; again; ) {
      again = false
      for (let part = 1; part < this.parts.length; part++) {
        const front = this.#slots.front(part)
        if (front === undefined || !this.#slots.isFree(front)) continue
        this.#free(front)
        again = true
      }
    }
  }

  #free(entry: Entry): void {
    const { slot } = entry
    entry.slot = undefined
    entry.isGone = true
    if (slot !== undefined) this.#slots.finish(slot)
    this.table.free(entry)
  }

  /** Keys that stand in front of a retry topic and cannot leave let those behind them go: their locks move to the end. */
  unblock(): ReadonlyArray<Effect.Effect<unknown>> {
    const nowMillis = this.options.elapsedMillis()
    return this.options.tiers.flatMap((_, index) => {
      const front = this.#slots.front(index + 1)
      if (front === undefined || front.move !== undefined || front.isDraining || this.stopping) return []
      const isHeld = front.held !== undefined
      const moving = isHeld ? this.#slots.heldFront(index + 1) : front.isIdle ? [front] : []
      if (moving.length === 0) return []
      front.stuckSinceMillis ??= nowMillis
      if (nowMillis - Math.max(front.stuckSinceMillis, front.lockedMillis) < rollAfter.millis) return []
      if (!isHeld) return [Effect.tap(this.locks.renew(front), () => Effect.sync(() => this.drain(front)))]
      // The next look comes after as much time again, whether they have moved by then or not.
      front.stuckSinceMillis = nowMillis
      return [this.#renewHeld(moving)]
    })
  }

  /** Moves the locks of held keys to the ends of their topics, except where somebody decides about a record before it is read again. */
  #renewHeld(entries: ReadonlyArray<Entry>): Effect.Effect<void> {
    return HeldReading.each(this.options, entries, (entry, record) => {
      if (entry.move !== undefined || (entry.isDraining && !this.stopping)) return Effect.void
      if (record !== undefined) return this.locks.renew(entry, record)
      this.heldKeys.lost(entry)
      return Effect.tap(this.locks.roll(entry), () => Effect.sync(() => this.drain(entry)))
    })
  }

  /** Locks that retention took before they were read: their keys get new ones while their owner still knows them. */
  relock(part: number, from: bigint): ReadonlyArray<Effect.Effect<boolean>> {
    return Array.from(this.table.values())
      .filter((entry) => entry.part === part && !entry.adopted && !entry.isGone && entry.move === undefined)
      .filter((entry) => entry.copies[part]! < from && !this.stopping)
      .map((entry) => {
        this.table.forgetFollowers(entry, entry.doneTo)
        this.onWork()
        return Effect.tap(this.locks.roll(entry), () => Effect.sync(() => this.drain(entry)))
      })
  }

  // Given up
  /** Says what is done, so that the next owner repeats nothing: the locks of keys move that are done beyond them, or hold others back (the exception to ruling 17). */
  readonly giveUp: Effect.Effect<void> = Effect.suspend(() => {
    // A stop and a revocation may give it up at once: neither ends before the locks are answered.
    if (this.#givenUp !== undefined) return this.#givenUp.await
    const givenUp = Latch.makeUnsafe(false)
    this.#givenUp = givenUp
    this.release()
    const moving = Array.from(this.table.values()).filter(
      (entry) =>
        !entry.isGone &&
        entry.move === undefined &&
        !entry.awaitsLetter &&
        (entry.doneTo > entry.offset || this.#slots.holdsBack(entry))
    )
    const [held, others] = [moving.filter((entry) => entry.held), moving.filter((entry) => !entry.held)]
    const rolled = Effect.forEach(others, (entry) => this.locks.renew(entry), {
      concurrency: "unbounded",
      discard: true
    })
    return Effect.ensuring(
      Effect.all([rolled, this.#renewHeld(held)], { concurrency: "unbounded", discard: true }),
      Effect.sync(() => givenUp.openUnsafe())
    )
  })
}

const isLockOf = (entry: Entry, { offset, hop, epoch }: OrderHeaders.Lock): boolean =>
  !entry.isGone && !entry.adopted && entry.offset === offset && entry.hop === hop && entry.epoch === epoch
