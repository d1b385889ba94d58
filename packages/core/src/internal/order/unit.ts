/**
 * The protocol of one unit: a source partition and the same partition of each of its retry topics, which one member owns together.
 *
 * A key whose record leaves for a retry topic is *parked*: the copy is its lock, which says that everything of the key below it is done. Records of the key behind it (its
 * followers) are finished in the source without being handled, since the lock covers them; once the head is done, the key *drains*: its followers are handled in order, beside
 * the loops of the partitions. The key is free when nothing follows. No step yields between a decision and its effect on the table.
 *
 * `docs/invariants.md` has the invariants under "Order per key"; the numbers of the steps are those of `docs/decisions/order-per-key.md`.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { OrderedPart } from "../partition/orderedPart.ts"
import type { Partition } from "../partition/partition.ts"
import type { Copy } from "../record/copy.ts"
import type { ResultWithCopy } from "../record/deliveryResult.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import { Claims } from "./claims.ts"
import { Entry, type LockTarget, type Move, type Slot, textOf } from "./entry.ts"
import { bytesOf } from "./followers.ts"
import * as LockCopies from "./lockCopies.ts"
import type { UnitOptions } from "./unitOptions.ts"

/** A lock moves on at the latest after so many followers, or after so long, so that a crash repeats no more than that. */
const rollAfter = { followers: 500, millis: 5_000 }

/** Bodies that a key may hold while it drains, whatever the others hold. */
const leastBytes = 256 * 1024

/** A slot that is held for a key. */
interface HeldSlot {
  readonly entry: Entry
  /** Set when a lock is on its way that takes the slot's place. */
  move: Move | undefined
}

interface Tier {
  readonly partition: Partition
  readonly claims: Claims
}

export class Unit {
  readonly options: UnitOptions
  /** By key: all that are parked. */
  readonly table = new Map<string, Entry>()
  /** The parts of the unit; 0 is the main topic. */
  readonly parts: ReadonlyArray<Part>
  /** Records that wait behind parked keys, as far as they are known: those of a former owner are counted when they are read. */
  followers = 0
  /** Followers below this offset of the source are of a former owner's time. */
  readonly #beganAt: bigint
  /** Takes a key whose followers are to be handled. Set by the scheduler of the followers. */
  onDrain: (entry: Entry) => void = () => {}
  /** Hears that somebody needs followers from the source, or that a key is parked. */
  onWork: () => void = () => {}
  /** Runs an effect beside the loops of the partitions. */
  onBeside: (effect: Effect.Effect<unknown>) => void = () => {}
  readonly #tiers: ReadonlyArray<Tier>
  /** By part and sequence. */
  readonly #slots: ReadonlyArray<Map<number, HeldSlot>>
  /** Keys with followers that are in the source alone. */
  readonly evicted = new Set<Entry>()
  readonly #room = Latch.makeUnsafe(true)
  /** Open once everything is said that is done. Undefined until the unit is given up. */
  #givenUp: Latch.Latch | undefined
  /** Behind the last record that is done of a key that is free. */
  freedTo = 0n
  /** Free keys that the main topic has not passed yet. They do not count. */
  readonly #gone = new Set<Entry>()

  constructor(options: UnitOptions, epochs: ReadonlyArray<number>) {
    this.options = options
    this.#beganAt = options.main.position()
    this.#tiers = options.tiers.map((partition, index) => ({ partition, claims: new Claims(epochs[index] ?? 0) }))
    this.#slots = [options.main, ...options.tiers].map(() => new Map())
    this.parts = [options.main, ...options.tiers].map((_, index) => new Part(this, index))
  }

  /** A claim of a retry topic, by the part. */
  claim(part: number, at: bigint, epoch: number): void {
    this.#tiers[part - 1]!.claims.add(at, epoch)
  }

  claimsOf(part: number): Claims {
    return this.#tiers[part - 1]!.claims
  }

  partitionOf(part: number): Partition {
    return part === 0 ? this.options.main : this.#tiers[part - 1]!.partition
  }

  /** Whether the unit is being given up. */
  get stopping(): boolean {
    return this.options.main.stopping
  }

  /** Behind the last record of the main topic that a scheduler has begun. */
  get mainPosition(): bigint {
    const { tracker } = this.options.main
    return tracker.begunTo() ?? tracker.position()
  }

  /** Parked keys, without those that are free already. */
  get parked(): number {
    return this.table.size - this.#gone.size
  }

  get hasRoom(): boolean {
    return this.parked < this.options.definition.perKey.maxParkedKeys
  }

  readonly room: Effect.Effect<void> = Effect.suspend(() => this.#room.await)

  #tableChanged(): void {
    if (this.hasRoom) this.#room.openUnsafe()
    else this.#room.closeUnsafe()
  }

  /** A key that a former owner has parked, at the beginning. */
  adopt(entry: Entry): void {
    this.table.set(entry.key, entry)
    this.#tableChanged()
  }

  /** Begins to work: keys whose lock has no record drain at once. */
  start(): void {
    for (const entry of this.table.values()) if (entry.kind === "next") this.drain(entry)
    if (this.table.size > 0) this.onWork()
  }

  // Records of the main topic

  /** True for a follower, and for a record that is done already. */
  takeMain(record: ConsumerRecord, sequence: number): boolean {
    if (record.key === null || this.table.size === 0) return false
    if (this.#gone.size > 0) this.#forgetPassed(record.offset)
    const entry = this.table.get(textOf(record.key))
    if (entry === undefined || (entry.isGone && record.offset >= entry.from)) {
      if (entry !== undefined) this.#forget(entry)
      return false
    }
    if (record.offset >= entry.from) this.#follow(entry, record)
    this.finishSlot({ part: 0, sequence })
    return true
  }

  #follow(entry: Entry, record: ConsumerRecord): void {
    this.followers++
    if (entry.evictedFrom === undefined) this.remember(entry, record)
    if (!entry.isIdle) return
    entry.isIdle = false
    this.drain(entry)
  }

  /** Keeps a follower in memory while there is room. A key that drains has always room for some. False when the follower is in the source alone. */
  remember(entry: Entry, record: ConsumerRecord): boolean {
    const { bodies } = this.options
    const bytes = bytesOf(record)
    const hasRoom = bodies.bytes + bytes <= bodies.most
    if (!hasRoom && !(entry.isDraining && entry.followers.bytes < leastBytes)) {
      this.evict(entry, record.offset)
      return false
    }
    bodies.bytes += bytes
    entry.followers.add(record)
    return true
  }

  /** From this offset on, followers are in the source alone. */
  evict(entry: Entry, from: bigint): void {
    entry.evictedFrom = from
    this.evicted.add(entry)
  }

  /** A follower was read from the source again. False when there is no room for it. */
  remembered(entry: Entry, record: ConsumerRecord): boolean {
    if (!this.remember(entry, record)) return false
    if (record.offset < this.#beganAt) this.followers++
    return true
  }

  /** Followers are in memory up to this offset of the source. */
  readTo(entry: Entry, offset: bigint): void {
    entry.evictedFrom = offset >= this.mainPosition ? undefined : offset
    if (entry.evictedFrom === undefined) this.evicted.delete(entry)
  }

  /** The first follower in memory is dealt with. */
  shift(entry: Entry): void {
    this.options.bodies.bytes -= entry.followers.drop()
  }

  /** Free keys stand in the table until the main topic has passed what is done. */
  #forgetPassed(position: bigint): void {
    for (const entry of this.#gone) if (entry.from <= position) this.#forget(entry)
  }

  #forget(entry: Entry): void {
    this.#gone.delete(entry)
    this.evicted.delete(entry)
    if (this.table.get(entry.key) === entry) this.table.delete(entry.key)
    this.#tableChanged()
  }

  // Records that fail

  /** Parks the key of a record that leaves for a retry topic or the dead letter topic, or moves its lock. Answers what is published. */
  park(part: number, record: ConsumerRecord, sequence: number, result: ResultWithCopy): ResultWithCopy {
    const known = this.#slots[part]!.get(sequence)?.entry
    // A copy without order goes on without, and so does a record without a key.
    if (known === undefined && (part > 0 || record.key === null || !this.options.parks)) return result
    const entry = known ?? this.#enter(record, { part, sequence })
    return this.moveOn(entry, entry.offset, result)
  }

  #enter(record: ConsumerRecord, slot: Slot): Entry {
    const { epoch, clock } = this.options
    const key = textOf(record.key!)
    const entry = new Entry(key, record.key!, record.offset, epoch, this.parts.length, clock.currentTimeMillisUnsafe())
    this.table.set(key, entry)
    this.#tableChanged()
    this.hold(entry, slot)
    this.onWork()
    return entry
  }

  /** The result with what makes its copy the lock of the key; a dead letter stays one, unless the binding holds it. */
  moveOn(entry: Entry, offset: bigint, result: ResultWithCopy): ResultWithCopy {
    const { definition } = this.options
    if (result.settlement === "Routed") {
      const part = definition.tiers.topics.findIndex(({ topic }) => topic === result.copy.topic) + 1
      return { ...result, copy: this.#lockCopy(entry, { kind: "retry", offset, part }, result.copy) }
    }
    if (definition.perKey.onDeadLetter === "hold" && offset >= entry.blockedTo) {
      const part = definition.tiers.topics.length
      const copy = LockCopies.held(this.options, result.copy)
      const { topic, last: tier } = definition.tiers.topics[part - 1]!
      return {
        ...{ ...result, settlement: "Routed" },
        target: { topic, tier, attempt: definition.tiers.deliveries(tier) },
        copy: this.#lockCopy(entry, { kind: "held", offset, part }, copy)
      }
    }
    entry.awaitsLetter = true
    return result
  }

  /** Makes this the key's lock, in this step. It counts once it is acknowledged. */
  #lockCopy(entry: Entry, to: LockTarget, copy: Copy): Copy {
    const next = entry.followers.first?.offset ?? entry.evictedFrom ?? this.#firstBehind(entry, to)
    this.#move(entry, to)
    const { offset, hop, epoch } = entry
    const lock = { kind: to.kind, offset, hop, epoch, next }
    const { onStored } = copy
    return {
      ...copy,
      headers: [...copy.headers, ...OrderHeaders.ofLock(this.options.bond, lock)],
      toPartition: this.options.main.partition,
      onStored: (stored) => {
        onStored?.(stored)
        if (stored.offset > entry.copies[to.part]!) entry.copies[to.part] = stored.offset
      }
    }
  }

  /** A record that has just failed in the main topic may have followers that no scheduler has asked about. */
  #firstBehind(entry: Entry, { kind, offset }: LockTarget): bigint {
    const least = kind === "next" ? offset : offset + 1n
    if (entry.hop === 0 && entry.kind === undefined) return least
    return this.mainPosition > least ? this.mainPosition : least
  }

  #move(entry: Entry, { kind, offset, part }: LockTarget): void {
    const move: Move = { slots: [] }
    if (entry.slot !== undefined) {
      move.slots.push(entry.slot)
      this.#slots[entry.slot.part]!.get(entry.slot.sequence)!.move = move
      entry.slot = undefined
    }
    entry.hop = offset === entry.offset ? entry.hop + 1 : 1
    entry.offset = offset
    entry.kind = kind
    entry.epoch = this.options.epoch
    entry.from = kind === "next" ? offset : offset + 1n
    entry.doneTo = offset
    entry.part = part
    entry.adopted = false
    entry.awaitsLetter = false
    entry.isIdle = false
    entry.held = undefined
    entry.move = move
    entry.lockedMillis = this.options.clock.currentTimeMillisUnsafe()
    entry.handledSince = 0
    entry.stuckSinceMillis = undefined
    this.options.counts.locks[kind]++
  }

  /** The lock is acknowledged: what held the key before is finished. */
  acknowledged(entry: Entry, move: Move): void {
    if (entry.move === move) entry.move = undefined
    for (const slot of move.slots) this.finishSlot(slot)
    this.release()
  }

  // Slots

  /** The slot is finished once the key is free, or a higher lock is acknowledged. */
  hold(entry: Entry, slot: Slot): void {
    entry.slot = slot
    this.#slots[slot.part]!.set(slot.sequence, { entry, move: undefined })
  }

  /** The slot's record is finished: its offset may be committed. */
  finishSlot({ part, sequence }: Slot): void {
    const partition = this.partitionOf(part)
    this.#slots[part]!.delete(sequence)
    partition.tracker.finish(sequence)
    this.options.committer.mark(partition)
  }

  /** A scheduler is done with a record. */
  finish(part: number, sequence: number): void {
    const held = this.#slots[part]!.get(sequence)
    if (held === undefined) {
      this.partitionOf(part).tracker.finish(sequence)
      if (part > 0) this.release()
      return
    }
    const { entry, move } = held
    if (move !== undefined) this.acknowledged(entry, move)
    else {
      entry.awaitsLetter = false
      entry.doneTo = entry.offset + 1n
      this.drain(entry)
    }
  }

  // Records of a retry topic

  /** False for the key's lock where its record is due, and for a copy without order: they are delivered. */
  takeTier(part: number, record: ConsumerRecord, sequence: number): boolean {
    const read = OrderHeaders.read(record, this.options.bond)
    const slot = { part, sequence }
    if (read === undefined || read.kind === "stranger") {
      if (!OrderHeaders.isForNoHandler(record)) return false
      this.#pass(slot)
      return true
    }
    if (read.kind === "claim") {
      this.claim(part, record.offset, read.epoch)
      this.#pass(slot)
      return true
    }
    const entry = this.table.get(textOf(record.key!))
    if (!OrderHeaders.isLock(read)) {
      if (entry !== undefined) this.command(entry, read)
      this.#pass(slot)
      return true
    }
    if (entry === undefined || !isLockOf(entry, read)) {
      this.#superseded(entry, slot)
      return true
    }
    entry.adopted = true
    this.hold(entry, slot)
    if (read.kind === "retry") return false
    if (read.kind === "held") {
      entry.held = record
      this.#decide(entry)
    }
    this.release()
    return true
  }

  #pass(slot: Slot): void {
    this.finishSlot(slot)
    this.release()
  }

  /** A copy that is no lock any more is done with, but not before the one that replaced it is acknowledged. */
  #superseded(entry: Entry | undefined, slot: Slot): void {
    if (entry?.move !== undefined) entry.move.slots.push(slot)
    else this.#pass(slot)
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
      if (entry.slot?.part === 0 && this.#isFree(entry)) this.#free(entry)
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
    if (entry.followers.first === record) this.shift(entry)
    if (this.followers > 0) this.followers--
    // Nothing is left to decide about it.
    entry.held = undefined
    entry.doneTo = record.offset + 1n
    entry.handledSince++
  }

  /** Whether the lock is to be moved to what is done. */
  mustRoll(entry: Entry): boolean {
    if (this.stopping || entry.move !== undefined || !entry.hasFollowers) return false
    const sinceMillis = this.options.clock.currentTimeMillisUnsafe() - entry.lockedMillis
    return entry.handledSince >= rollAfter.followers || (entry.handledSince > 0 && sinceMillis >= rollAfter.millis)
  }

  /** Publishes a lock at what is done, and finishes the one before when it is acknowledged. */
  roll(entry: Entry): Effect.Effect<boolean> {
    return this.#publishLock(entry, { kind: "next", offset: entry.doneTo, part: 1 })
  }

  /** Publishes a lock by itself: also while the unit is given up. */
  #publishLock(entry: Entry, to: LockTarget): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const record = to.kind === "held" ? entry.held : undefined
      const copy = this.#lockCopy(entry, to, LockCopies.make(this.options, entry, to, record))
      const move = entry.move!
      return Effect.map(LockCopies.publish(this.options, copy), (isAcknowledged) => {
        if (isAcknowledged) this.acknowledged(entry, move)
        return isAcknowledged
      })
    })
  }

  // Release

  /** Sets keys free that have nothing left to do, from the front of each retry topic: the lock is gone in the step in which the key is free. */
  release(): void {
    for (let again = true; again; ) {
      again = false
      for (let part = 1; part < this.parts.length; part++) {
        const front = this.#front(part)
        if (front !== undefined && this.#isFree(front)) {
          this.#free(front)
          again = true
        }
      }
    }
  }

  /** The key whose slot is the first unfinished one of a part. */
  #front(part: number): Entry | undefined {
    const held = this.#slots[part]!.get(this.partitionOf(part).tracker.firstSequence())
    return held?.move === undefined ? held?.entry : undefined
  }

  #isFree(entry: Entry): boolean {
    const { slot } = entry
    if (!entry.isIdle || entry.isGone || entry.move !== undefined || slot === undefined || entry.hasFollowers)
      return false
    return this.#tiers.every(({ partition }, index) => this.#isCovered(entry, slot, partition, index + 1))
  }

  /** No copy of the key may lie above its tier's position: the next owner would take it for the key's lock. */
  #isCovered(entry: Entry, slot: Slot, partition: Partition, part: number): boolean {
    const copy = entry.copies[part]!
    if (slot.part !== part) return copy < partition.tracker.position()
    const own = partition.tracker.oldest()
    return own !== undefined && slot.sequence === partition.tracker.firstSequence() && copy <= own.offset
  }

  #free(entry: Entry): void {
    const { slot } = entry
    entry.isGone = true
    if (entry.doneTo > this.freedTo) this.freedTo = entry.doneTo
    entry.slot = undefined
    this.#gone.add(entry)
    if (slot !== undefined) this.finishSlot(slot)
    if (entry.from <= this.mainPosition) this.#forget(entry)
    else this.#tableChanged()
  }

  // From time to time

  /** Keys that stand in front of a retry topic and cannot leave let those behind them go: their locks move to the end. */
  unblock(): ReadonlyArray<Effect.Effect<boolean>> {
    const nowMillis = this.options.clock.currentTimeMillisUnsafe()
    return this.#tiers.flatMap(({ partition }, index) => {
      const front = this.#front(index + 1)
      if (front === undefined || front.move !== undefined || front.isDraining || this.stopping) return []
      const isHeld = front.held !== undefined && partition.tracker.span() > 1
      if (!isHeld && !front.isIdle) return []
      front.stuckSinceMillis ??= nowMillis
      if (nowMillis - Math.max(front.stuckSinceMillis, front.lockedMillis) < rollAfter.millis) return []
      return [Effect.tap(this.#renew(front), () => Effect.sync(() => isHeld || this.drain(front)))]
    })
  }

  /** Locks that retention took before they were read: their keys get new ones while their owner still knows them. */
  relock(part: number, from: bigint): ReadonlyArray<Effect.Effect<boolean>> {
    return Array.from(this.table.values())
      .filter((entry) => entry.part === part && !entry.adopted && !entry.isGone && entry.move === undefined)
      .filter((entry) => entry.copies[part]! < from && !this.stopping)
      .map((entry) => {
        this.forgetFollowers(entry, entry.doneTo)
        return Effect.tap(this.roll(entry), () => Effect.sync(() => this.drain(entry)))
      })
  }

  /** The followers from an offset on are read from the source again. */
  forgetFollowers(entry: Entry, from: bigint): void {
    while (entry.followers.length > 0) this.shift(entry)
    this.evict(entry, from)
    this.onWork()
  }

  // An operator's decision about a held record

  /** Takes a decision about the record that a key is held by. While its lock is on its way, or not read yet, the decision waits for it. False when the key is not held at this offset. */
  command(entry: Entry, { kind, offset }: OrderHeaders.Command): boolean {
    if (!entry.isHeld || entry.offset !== offset || this.stopping) return false
    entry.decision = kind
    this.#decide(entry)
    return true
  }

  #decide(entry: Entry): void {
    const { decision } = entry
    if (decision === undefined || entry.held === undefined) return
    entry.decision = undefined
    if (decision === "skip-held") this.giveUpHeld(entry, entry.offset)
    else this.#reopen(entry)
  }

  /** The held record becomes a dead letter, and so does what follows below an offset. The main topic may not have come to the held record again. */
  giveUpHeld(entry: Entry, to: bigint): void {
    const behind = entry.offset + 1n
    entry.blockedTo = to > behind ? to : behind
    this.#reopen(entry)
  }

  /** The held record is the first of those that follow. */
  #reopen(entry: Entry): void {
    if (entry.held === undefined) return
    const head = LockCopies.headOf(this.options, entry.offset, entry.held)
    entry.followers.addFirst(head)
    this.options.bodies.bytes += bytesOf(head)
    this.followers++
    this.drain(entry)
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
        (entry.doneTo > entry.offset || this.#holdsBack(entry))
    )
    const moved = Effect.forEach(moving, (entry) => this.#renew(entry), { concurrency: "unbounded", discard: true })
    return Effect.ensuring(
      moved,
      Effect.sync(() => givenUp.openUnsafe())
    )
  })

  /** Whether a lock that waits for no delivery keeps what is finished behind it from being committed. */
  #holdsBack({ slot, kind }: Entry): boolean {
    if (slot === undefined || slot.part === 0 || kind === "retry") return false
    const { tracker } = this.partitionOf(slot.part)
    return tracker.span() > tracker.inFlight()
  }

  /** Moves the lock of a key that does not drain to the end of a retry topic, as it is. */
  #renew(entry: Entry): Effect.Effect<boolean> {
    const { held, offset, part } = entry
    return held === undefined ? this.roll(entry) : this.#publishLock(entry, { kind: "held", offset, part })
  }
}

/** A part of the unit, as its partition knows it. */
class Part implements OrderedPart {
  readonly #unit: Unit
  readonly #part: number
  readonly room: Effect.Effect<void>

  constructor(unit: Unit, part: number) {
    this.#unit = unit
    this.#part = part
    this.room = part === 0 ? unit.room : Effect.void
  }

  get isQuiet(): boolean {
    return this.#part === 0 && this.#unit.table.size === 0
  }

  get followers(): number {
    return this.#part === 0 ? this.#unit.followers : 0
  }

  get freedTo(): bigint {
    return this.#part === 0 ? this.#unit.freedTo : 0n
  }

  get hasRoom(): boolean {
    return this.#part > 0 || this.#unit.hasRoom
  }

  take(record: ConsumerRecord, sequence: number): boolean {
    return this.#part === 0 ? this.#unit.takeMain(record, sequence) : this.#unit.takeTier(this.#part, record, sequence)
  }

  park(record: ConsumerRecord, sequence: number, result: ResultWithCopy): ResultWithCopy {
    return this.#unit.park(this.#part, record, sequence, result)
  }

  finish(sequence: number): void {
    this.#unit.finish(this.#part, sequence)
  }

  lost(below: bigint): void {
    if (this.#part > 0) for (const relocked of this.#unit.relock(this.#part, below)) this.#unit.onBeside(relocked)
  }

  epochAt(offset: bigint): number | undefined {
    return this.#part === 0 ? undefined : this.#unit.claimsOf(this.#part).at(offset)
  }
}

const isLockOf = (entry: Entry, { offset, hop, epoch }: OrderHeaders.Lock): boolean =>
  !entry.isGone && !entry.adopted && entry.offset === offset && entry.hop === hop && entry.epoch === epoch
