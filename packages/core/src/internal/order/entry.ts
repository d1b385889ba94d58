/**
 * A parked key: its lock, what is done, and what follows.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { LockKind, Verb } from "../record/orderHeaders.ts"
import * as Detached from "./detached.ts"
import { Followers } from "./followers.ts"

/** A record that has begun in a part of the unit, and is not finished while its key needs it. */
export interface Slot {
  /** 0 is the main topic, then the retry topics in the order of the tiers. */
  readonly part: number
  readonly sequence: number
}

/** Where a lock goes, and what it says. */
export interface LockTarget {
  readonly kind: LockKind
  readonly offset: bigint
  readonly part: number
}

/** Where a held record lies in the retry topic of its lock. Its body is not in memory before somebody has decided about it. */
export interface HeldRecord {
  readonly offset: bigint
  /** Since when it is held, epoch milliseconds. */
  readonly sinceMillis: number
  /** The record with the story of its failure, while its key drains. */
  record: ConsumerRecord | undefined
}

/** A lock that is on its way to its topic. */
export interface Move {
  /** Finished when it is acknowledged: the slot of the lock before, and superseded locks that were read meanwhile. */
  readonly slots: Array<Slot>
}

export class Entry {
  readonly key: string
  readonly keyBytes: Uint8Array
  /** Everything of the key below this offset of the source is done. With `hop`, it tells the key's lock from all others. */
  offset: bigint
  hop: number
  /** Undefined until the first lock: the dead letter of the head is on its way, or acknowledged. */
  kind: LockKind | undefined = undefined
  epoch: number
  /** The part that the lock lies in. */
  part = 0
  /** The first offset of a follower, at the earliest. A record below it that comes again is done. */
  from: bigint
  /** Everything of the key below it is done. */
  doneTo: bigint
  /** Followers in memory, the next one in front. */
  readonly followers: Followers
  /** From this offset on followers are in the source alone; undefined when all are in memory. */
  evictedFrom: bigint | undefined = undefined
  /** The timestamp of the record at `evictedFrom`; undefined while that record is not known. */
  evictedMillis: number | undefined = undefined
  /** From this offset on followers were in the source alone; undefined once the source has been read to its end. */
  unreadFrom: bigint | undefined = undefined
  /** How many followers are in the source alone, of those that were seen since the unit began. */
  evictedRecords = 0
  /** Finished when the key is free, or when a higher lock is acknowledged. */
  slot: Slot | undefined = undefined
  /** Set while a lock is on its way. */
  move: Move | undefined = undefined
  /** Whether a dead letter of the head is on its way. */
  awaitsLetter = false
  /** By part: the highest offset of a lock of this key; -1 without one. */
  readonly copies: Array<bigint>
  /** Whether the lock has been read, and its slot is ours. */
  adopted = false
  /** Whether its followers are handled now, or wait for their turn to be. */
  isDraining = false
  /** Whether nothing is left to do, as far as is known. */
  isIdle = false
  /** The key is free, and stands here only until the main topic has passed what is done. */
  isGone = false
  /** Followers below this offset are dead-lettered, reason `KEY_BLOCKED`. */
  blockedTo = 0n
  /** The held record, once its place is known. */
  held: HeldRecord | undefined = undefined
  /** Whether the held record is the first of what follows, and is to be read again. */
  awaitsHead = false
  /** An operator's decision about the held record, which waits until its place is known. */
  decision: Verb | undefined = undefined
  /** Since when the key is parked, epoch milliseconds. */
  readonly sinceMillis: number
  /** Called when followers have been read, or when there are none left to read. */
  onRead: () => void = () => {}
  /** When its last lock was made, in milliseconds since the unit began. */
  lockedMillis = 0
  /** Followers that were handled since the last lock. */
  handledSince = 0
  /** Since when its lock stands in front of its tier and cannot leave, in milliseconds since the unit began. */
  stuckSinceMillis: number | undefined = undefined

  constructor(key: string, keyBytes: Uint8Array, offset: bigint, epoch: number, parts: number, nowMillis: number) {
    this.key = key
    this.keyBytes = Detached.bytes(keyBytes)
    this.followers = new Followers(this.keyBytes)
    this.offset = offset
    this.hop = 0
    this.epoch = epoch
    this.from = offset + 1n
    this.doneTo = offset
    this.copies = new Array<bigint>(parts).fill(-1n)
    this.sinceMillis = nowMillis
  }

  /** Whether its record waits for an operator who has not decided yet. */
  get isHeld(): boolean {
    return this.kind === "held" && this.doneTo <= this.offset && !this.isDraining && this.decision === undefined
  }

  /** The first follower, as far as it is known. */
  get firstFollower(): { readonly offset: bigint; readonly timestamp: number } | undefined {
    const first = this.followers.firstAt
    if (first !== undefined) return first
    const { evictedFrom: offset, evictedMillis: timestamp } = this
    return offset === undefined || timestamp === undefined ? undefined : { offset, timestamp }
  }

  get hasFollowers(): boolean {
    return this.followers.length > 0 || this.evictedFrom !== undefined || this.awaitsHead
  }
}

const latin1 = new TextDecoder("latin1")

/** A key as text, one character for each byte. */
export const textOf = (key: Uint8Array): string => latin1.decode(key)
