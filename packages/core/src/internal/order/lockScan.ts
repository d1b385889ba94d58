/**
 * Reads the locks of one retry partition, from the group's position on. The new owner of a unit finds the parked keys so, and so does a list of them, from outside.
 *
 * A lock is believed under the epoch that is in force where it lies: behind a claim, those of a lower epoch are void, since a former owner may publish them late. A claim may be false,
 * and a commit may have lost its epoch. So a void lock still counts where its key has no other one and the main topic has passed its record: it can only repeat then.
 */
import * as Effect from "effect/Effect"
import type { Reader } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"
import * as BigInts from "../base/bigInts.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import * as Detached from "./detached.ts"
import { textOf } from "./entry.ts"

export interface LockScanOptions {
  /** The retry partition. */
  readonly at: TopicPartition
  /** Its part in the unit. */
  readonly part: number
  /** The group's position, and the epoch in force there. */
  readonly from: bigint
  readonly epoch: number
  readonly groups: CopyOwner.Groups
  readonly bond: OrderHeaders.Bond
  /** Whether the source does not have the offset of a lock: the lock is of another log. */
  readonly isLost: (lock: OrderHeaders.Lock) => boolean
  /** The position in the retry partition of a former name of the group, which is done with what lies below. Undefined where it has none. */
  readonly formerPosition: (groupId: string) => bigint | undefined
}

/** A key's lock as it was found, and where. */
export interface Found {
  readonly lock: OrderHeaders.Lock
  /** Without its value: there may be as many locks as keys, and nobody asks for their bodies. */
  readonly record: ConsumerRecord
  readonly part: number
}

/** A lock of another incarnation of the source, of another cluster, or of a former name of the group. */
export interface Stranded extends Found {
  readonly bond: string
}

export class LockScan {
  readonly part: number
  /** The highest epoch that was seen. */
  highest: number
  /** The highest lock of each key. */
  readonly best = new Map<string, Found>()
  /** By key: the offset of its last lock. */
  readonly last = new Map<string, bigint>()
  /** The highest void lock of each key, of the highest epoch that it has void locks of. */
  readonly bestVoid = new Map<string, Found>()
  /** By key: the offset of its last void lock. */
  readonly lastVoid = new Map<string, bigint>()
  readonly claims: Array<{ readonly at: bigint; readonly epoch: number }> = []
  /** By bond and key: the highest lock whose offset does not lead to the records that it keeps back. */
  readonly strangers = new Map<string, Stranded>()
  /** Where those lie whose offset the source does not have. */
  readonly lost = new Set<bigint>()
  /** Operators have accepted the loss behind strangers that lie below this offset. */
  acceptedTo = 0n
  readonly #options: LockScanOptions
  #inForce: number
  #next: bigint

  constructor(options: LockScanOptions) {
    this.#options = options
    this.part = options.part
    this.#inForce = options.epoch
    this.highest = this.#inForce
    this.#next = options.from
  }

  /** How far it has read. */
  get end(): bigint {
    return this.#next
  }

  /** Reads on, up to an offset. It passes over records that are gone or cannot be read: the partition itself reports them. */
  readTo(reader: Reader, end: bigint): Effect.Effect<void, BrokerError> {
    return Effect.suspend(() => {
      if (this.#next >= end) return Effect.void
      const { topic, partition } = this.#options.at
      return Effect.flatMap(reader.read({ topic, partition, offset: this.#next }), (found) => {
        const before = this.#next
        if (found._tag === "Unreadable") this.#next = found.lastOffset + 1n
        else if (found._tag === "OutOfRange") this.#next = found.logStart > before ? found.logStart : end
        else {
          for (const record of found.chunk.records) if (record.offset < end) this.#take(record)
          this.#next = found.chunk.nextOffset < end ? found.chunk.nextOffset : end
        }
        const isWaiting = this.#next === before
        return Effect.andThen(isWaiting ? Effect.sleep("100 millis") : Effect.void, this.readTo(reader, end))
      })
    })
  }

  #take(record: ConsumerRecord): void {
    const { groups, bond, isLost } = this.#options
    if (CopyOwner.foreign(record, groups) !== undefined) return
    const read = OrderHeaders.read(record, bond)
    if (read === undefined) return
    if (read.kind === "stranger") {
      this.#takeStranger(record, read)
      return
    }
    if (read.kind === "accept-loss") {
      // It covers nothing that lies behind itself.
      this.acceptedTo = BigInts.max(this.acceptedTo, BigInts.min(read.offset, record.offset))
      return
    }
    if (read.kind === "claim") {
      this.#inForce = Math.max(this.#inForce, read.epoch)
      this.highest = Math.max(this.highest, read.epoch)
      this.claims.push({ at: record.offset, epoch: read.epoch })
      return
    }
    if (!OrderHeaders.isLock(read)) return
    const key = textOf(record.key!)
    if (isLost(read)) {
      const bond = `offset ${read.offset}, which the source does not have`
      keepHigher(this.strangers, `lost ${key}`, { lock: read, record, part: this.part, bond })
      this.lost.add(record.offset)
      return
    }
    const found = { lock: read, record: Detached.withoutValue(record), part: this.part }
    if (read.epoch === this.#inForce) {
      this.last.set(key, record.offset)
      keepHigher(this.best, key, found)
    } else {
      this.highest = Math.max(this.highest, read.epoch)
      this.lastVoid.set(key, record.offset)
      keepLater(this.bestVoid, key, found)
    }
  }

  #takeStranger(record: ConsumerRecord, { bond, lock, formerGroupId }: OrderHeaders.Stranger): void {
    if (lock === undefined) return
    const done = formerGroupId === undefined ? undefined : this.#options.formerPosition(formerGroupId)
    if (done !== undefined && record.offset < done) return
    keepHigher(this.strangers, `${bond} ${textOf(record.key!)}`, { lock, record, part: this.part, bond })
  }
}

/** The highest stranger of each bond and key over the retry partitions of a unit. */
export const strangersOf = (scans: ReadonlyArray<LockScan>): ReadonlyArray<Stranded> => {
  const highest = new Map<string, Stranded>()
  for (const scan of scans) for (const [name, found] of scan.strangers) keepHigher(highest, name, found)
  return Array.from(highest.values())
}

/** Whether an operator has accepted the loss behind a stranger. */
export const isAccepted = (scans: ReadonlyArray<LockScan>, { part, record }: Stranded): boolean =>
  scans.some((scan) => scan.part === part && record.offset < scan.acceptedTo)

/** The lock of each key over the retry partitions of a unit: the highest one. `mainPosition`: the group's position in the source. */
export const highestOf = (scans: ReadonlyArray<LockScan>, mainPosition: bigint): ReadonlyMap<string, Found> => {
  const best = new Map<string, Found>()
  for (const scan of scans) for (const [key, found] of scan.best) keepHigher(best, key, found)
  const others = new Map<string, Found>()
  for (const scan of scans) {
    for (const [key, found] of scan.bestVoid) {
      if (!best.has(key) && found.lock.offset < mainPosition) keepLater(others, key, found)
    }
  }
  for (const [key, found] of others) best.set(key, found)
  return best
}

/** Where the last copy of a key lies in the retry partition that was read; -1 where there is none. A void one counts: an owner that finds no other takes it for the key's lock. */
export const lastCopy = ({ last, lastVoid }: LockScan, key: string): bigint =>
  BigInts.max(last.get(key) ?? -1n, lastVoid.get(key) ?? -1n)

const keepHigher = <A extends Found>(best: Map<string, A>, key: string, found: A): void => {
  const known = best.get(key)
  if (known === undefined || isHigher(found.lock, known.lock)) best.set(key, found)
}

/** A later owner knows more than the one before. */
const keepLater = (best: Map<string, Found>, key: string, found: Found): void => {
  const epoch = best.get(key)?.lock.epoch ?? -1
  if (found.lock.epoch > epoch) best.set(key, found)
  else if (found.lock.epoch === epoch) keepHigher(best, key, found)
}

const isHigher = (one: OrderHeaders.Lock, other: OrderHeaders.Lock): boolean =>
  one.offset > other.offset || (one.offset === other.offset && one.hop > other.hop)
