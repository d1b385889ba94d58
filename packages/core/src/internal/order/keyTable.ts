/**
 * The parked keys of one unit, and what of their followers is in memory.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import type { Entry } from "./entry.ts"
import { bytesOf } from "./followers.ts"
import type { Bodies } from "./unitOptions.ts"

/** Bodies that a key may hold while it drains, whatever the others hold. */
const leastBytes = 256 * 1024

interface KeyTableOptions {
  readonly main: Partition
  readonly bodies: Bodies
  /** With so many keys, no record of the main topic starts. */
  readonly most: number
}

export class KeyTable {
  /** Records that wait behind parked keys, as far as they are known: those of a former owner are counted when they are read. */
  followers = 0
  /** Behind the last record that is done of a key that is free. */
  freedTo = 0n
  /** Keys with followers that are in the source alone. */
  readonly evicted = new Set<Entry>()
  readonly #options: KeyTableOptions
  readonly #entries = new Map<string, Entry>()
  /** Free keys that the main topic has not passed yet. They do not count. */
  readonly #gone = new Set<Entry>()
  readonly #room = Latch.makeUnsafe(true)
  /** Followers below this offset of the source are of a former owner's time. */
  readonly #beganAt: bigint

  constructor(options: KeyTableOptions) {
    this.#options = options
    this.#beganAt = options.main.position()
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Entry | undefined {
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

  get hasRoom(): boolean {
    return this.#entries.size - this.#gone.size < this.#options.most
  }

  readonly room: Effect.Effect<void> = Effect.suspend(() => this.#room.await)

  add(entry: Entry): void {
    this.#entries.set(entry.key, entry)
    this.#changed()
  }

  #changed(): void {
    if (this.hasRoom) this.#room.openUnsafe()
    else this.#room.closeUnsafe()
  }

  /** The key is free. It stands here until the main topic has passed what is done. */
  free(entry: Entry): void {
    entry.isGone = true
    if (entry.doneTo > this.freedTo) this.freedTo = entry.doneTo
    this.#gone.add(entry)
    if (entry.from <= this.mainPosition) this.forget(entry)
    else this.#changed()
  }

  /** Forgets free keys that the main topic has passed. */
  forgetPassed(position: bigint): void {
    for (const entry of this.#gone) if (entry.from <= position) this.forget(entry)
  }

  forget(entry: Entry): void {
    this.#gone.delete(entry)
    this.evicted.delete(entry)
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key)
    this.#changed()
  }

  // Followers

  /** Keeps a follower in memory while there is room. A key that drains has always room for some. False when the follower is in the source alone. */
  remember(entry: Entry, record: ConsumerRecord): boolean {
    const { bodies } = this.#options
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

  /** A follower was read from the source again. False when there is no room for it. */
  remembered(entry: Entry, record: ConsumerRecord): boolean {
    if (!this.remember(entry, record)) return false
    if (record.offset < this.#beganAt) this.followers++
    return true
  }

  /** This record is handled in front of all followers. */
  addFirst(entry: Entry, record: ConsumerRecord): void {
    entry.followers.addFirst(record)
    this.#options.bodies.bytes += bytesOf(record)
    this.followers++
  }

  /** From this offset on, followers are in the source alone. */
  evict(entry: Entry, from: bigint): void {
    entry.evictedFrom = from
    this.evicted.add(entry)
  }

  /** Followers are in memory up to this offset of the source. */
  readTo(entry: Entry, offset: bigint): void {
    entry.evictedFrom = offset >= this.mainPosition ? undefined : offset
    if (entry.evictedFrom === undefined) this.evicted.delete(entry)
  }

  /** The first follower in memory is dealt with. */
  shift(entry: Entry): void {
    this.#options.bodies.bytes -= entry.followers.drop()
  }

  /** The followers from an offset on are read from the source again. */
  forgetFollowers(entry: Entry, from: bigint): void {
    while (entry.followers.length > 0) this.shift(entry)
    this.evict(entry, from)
  }
}
