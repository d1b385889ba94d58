/**
 * The parked keys of one unit, and what of their followers is in memory.
 */
import * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { ParkedKeys } from "../partition/commitMetadata.ts"
import type { Partition } from "../partition/partition.ts"
import type { Entry } from "./entry.ts"
import { KeyIndex } from "./keyIndex.ts"
import type { ParkedRoom } from "./parkedRoom.ts"
import type { Bodies } from "./unitOptions.ts"

/** Bodies that a key may hold while it drains, whatever the others hold. */
const leastBytes = 256 * 1024

interface KeyTableOptions {
  readonly main: Partition
  readonly bodies: Bodies
  /** The keys of all units of the consumer. Where they are too many, no record of the main topic starts. */
  readonly parkedRoom: ParkedRoom
}

/** Followers of a key that the source does not have any more. */
export interface Missing {
  readonly entry: Entry
  readonly records: number
  /** None of them is below this offset. */
  readonly from: bigint
}

export class KeyTable {
  /** Records that wait behind parked keys, as far as they are known: those of a former owner are counted when they are read. */
  followers = 0
  /** Behind the last record that is done of a key that is free. */
  freedTo = 0n
  /** Keys with followers that are in the source alone. */
  readonly evicted = new Set<Entry>()
  /** Followers that were not found again in the source, until somebody reports them. */
  readonly missing: Array<Missing> = []
  readonly #options: KeyTableOptions
  readonly #entries = new KeyIndex()
  /** Free keys that the main topic has not passed yet. They do not count. */
  readonly #gone = new Set<Entry>()
  /** How many keys of this unit the room counts. */
  #counted = 0
  /** Followers below this offset of the source are of a former owner's time. */
  readonly #beganAt: bigint
  #hasEnded = false

  constructor(options: KeyTableOptions) {
    this.#options = options
    this.#beganAt = options.main.position()
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: Uint8Array): Entry | undefined {
    return this.#entries.get(key)
  }

  values(): IterableIterator<Entry> {
    return this.#entries.values()
  }

  /** Behind the last record of the main topic that a scheduler has begun. */
  get mainPosition(): bigint {
    const { tracker } = this.#options.main
    return tracker.begunTo() ?? tracker.position()
  }

  /** Followers below this offset were seen by a former owner, and are counted when they are read. */
  isOfFormerOwner(offset: bigint): boolean {
    return offset < this.#beganAt
  }

  /** The keys that have a lock in a retry topic, or one on its way. */
  get parked(): ParkedKeys | undefined {
    let keys = 0
    let from: bigint | undefined
    for (const { kind, isGone, offset } of this.#entries.values()) {
      if (kind === undefined || isGone) continue
      keys++
      if (from === undefined || offset < from) from = offset
    }
    return from === undefined ? undefined : { keys, from }
  }

  get hasRoom(): boolean {
    return this.#options.parkedRoom.isOpen
  }

  readonly room: Effect.Effect<void> = Effect.suspend(() => this.#options.parkedRoom.open)

  /** The unit has ended: its keys and the bodies of their followers take no room any more. */
  end(): void {
    const { bodies, parkedRoom } = this.#options
    const counted = this.#counted
    this.#counted = 0
    this.#hasEnded = true
    for (const { followers } of this.#entries.values()) bodies.bytes -= followers.bytes
    // Last: a record that waits for room may begin at once, fail, and park its key here.
    parkedRoom.add(-counted)
  }

  add(entry: Entry): void {
    this.#entries.add(entry)
    this.#changed()
  }

  #changed(): void {
    if (this.#hasEnded) return
    const counted = this.#entries.size - this.#gone.size
    const more = counted - this.#counted
    this.#counted = counted
    this.#options.parkedRoom.add(more)
  }

  /** The key is free. It stands here until the main topic has passed what is done. */
  free(entry: Entry): void {
    entry.isGone = true
    if (entry.doneTo > this.freedTo) this.freedTo = entry.doneTo
    this.#gone.add(entry)
    if (entry.from <= this.mainPosition) this.forget(entry)
    else this.#changed()
  }

  /** Forgets free keys that the main topic has passed with this record. Mostly there are none, and the record is not asked for its offset. */
  forgetPassed(record: ConsumerRecord): void {
    if (this.#gone.size === 0) return
    const { offset } = record
    for (const entry of this.#gone) if (entry.from <= offset) this.forget(entry)
  }

  forget(entry: Entry): void {
    this.#gone.delete(entry)
    this.evicted.delete(entry)
    this.#entries.delete(entry)
    this.#changed()
  }

  // Followers

  /** Keeps a follower in memory while there is room. A key that drains has always room for some. False when the follower is in the source alone. */
  remember(entry: Entry, record: ConsumerRecord): boolean {
    const { bodies } = this.#options
    const { followers } = entry
    const hasRoom = entry.isDraining && followers.bytes < leastBytes
    const bytes = followers.add(record, hasRoom ? Number.POSITIVE_INFINITY : bodies.most - bodies.bytes)
    if (bytes === undefined) this.evict(entry, record.offset, record.timestamp)
    else this.#hold(bytes)
    return bytes !== undefined
  }

  /** A follower was read from the source again. False when there is no room for it. */
  remembered(entry: Entry, record: ConsumerRecord): boolean {
    if (!this.remember(entry, record)) return false
    if (this.isOfFormerOwner(record.offset)) this.followers++
    else if (entry.evictedRecords > 0) entry.evictedRecords--
    return true
  }

  /** This record is handled in front of all followers. */
  addFirst(entry: Entry, record: ConsumerRecord): void {
    this.#hold(entry.followers.addFirst(record))
    this.followers++
  }

  /** From this offset on, followers are in the source alone. `timestamp`: that of the record there, where it is known. */
  evict(entry: Entry, from: bigint, timestamp?: number): void {
    entry.evictedFrom = from
    entry.evictedMillis = timestamp
    entry.unreadFrom ??= from
    this.evicted.add(entry)
  }

  /** Followers are in memory up to this offset of the source. */
  readTo(entry: Entry, offset: bigint): void {
    entry.evictedFrom = offset >= this.mainPosition ? undefined : offset
    entry.evictedMillis = undefined
    if (entry.evictedFrom === undefined) this.#noneEvicted(entry)
  }

  /** The source was read to the end: records that were seen there before, and are not there any more, do not come again. */
  #noneEvicted(entry: Entry): void {
    this.evicted.delete(entry)
    const { evictedRecords: records, unreadFrom: from = entry.offset } = entry
    entry.unreadFrom = undefined
    if (records === 0) return
    entry.evictedRecords = 0
    this.followers = Math.max(0, this.followers - records)
    this.missing.push({ entry, records, from })
  }

  /** The first follower in memory is dealt with. */
  shift(entry: Entry): void {
    this.#hold(-entry.followers.drop())
  }

  /** A unit that has ended has given its bytes back. */
  #hold(bytes: number): void {
    if (!this.#hasEnded) this.#options.bodies.bytes += bytes
  }

  /** The followers from an offset on are read from the source again. */
  forgetFollowers(entry: Entry, from: bigint): void {
    for (let first = entry.followers.firstAt; first !== undefined; first = entry.followers.firstAt) {
      // A record of a former owner's time is counted again when it is read again.
      if (this.isOfFormerOwner(first.offset)) this.followers--
      else entry.evictedRecords++
      this.shift(entry)
    }
    this.evict(entry, from)
  }
}
