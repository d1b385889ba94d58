/**
 * The beginning of a unit: nothing of it is handled before its table is whole.
 *
 * The new owner writes a claim into each retry topic and reads from the committed offset to the claim: whatever a former owner publishes behind it is void. The highest lock of
 * each key is the key's. A lock is believed only under the epoch that is in force where it lies.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Broker, Reader } from "../../Broker.ts"
import { type BrokerError, UnexpectedBrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"
import * as BigInts from "../base/bigInts.ts"
import type { Partition } from "../partition/partition.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import * as Claims from "./claims.ts"
import { Entry, textOf } from "./entry.ts"
import * as LockCopies from "./lockCopies.ts"
import { Unit } from "./unit.ts"
import type { UnitOptions } from "./unitOptions.ts"

export interface BeginOptions extends Omit<UnitOptions, "epoch"> {
  readonly broker: Broker["Service"]
  readonly generation: number
  /** The unit cannot begin yet, and why. It is tried again. */
  readonly onProblem: (problem: string) => void
}

/** Waits between two attempts to begin: 100 ms doubling up to 5 s. */
const again = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("5 seconds")])

/** Begins a unit, however long that takes. */
export const begin = (options: BeginOptions): Effect.Effect<Unit> =>
  Effect.scoped(attempt(options)).pipe(
    Effect.tapError((error) => Effect.sync(() => options.onProblem(error.message))),
    Effect.retry(again),
    Effect.orDie
  )

const attempt = Effect.fnUntraced(function* (options: BeginOptions) {
  const { broker, generation, main, tiers } = options
  const reader = yield* broker.reader({ isolationLevel: "read_uncommitted" })
  const scans = tiers.map((partition, index) => new Scan(options, partition, index + 1))
  yield* Effect.forEach(scans, (scan) => scan.readTo(reader, scan.partition.log.end), { concurrency: "unbounded" })
  const epoch = Claims.epochAfter(Math.max(0, ...scans.map((scan) => scan.highest)), generation)
  const unitOptions: UnitOptions = { ...options, epoch }
  yield* Effect.forEach(
    scans,
    (scan) => Effect.flatMap(claim(unitOptions, scan), (at) => scan.readTo(reader, at + 1n)),
    { concurrency: "unbounded" }
  )
  const strangers = scans.flatMap((scan) => scan.strangers)
  if (strangers.length > 0) return yield* ofAnotherTopic(main, strangers)
  return tableOf(unitOptions, scans)
})

/** Answers the offset of the claim. */
const claim = Effect.fnUntraced(function* (options: UnitOptions, { part, partition }: Scan) {
  let at: bigint | undefined
  const copy = LockCopies.claim(options, part, options.epoch, (offset) => {
    at = offset
  })
  const isStored = yield* LockCopies.publish(options, copy)
  if (!isStored || at === undefined) {
    return yield* new UnexpectedBrokerError({
      operation: `Claiming ${partition.topic}-${partition.partition}`,
      code: "NOT_ACKNOWLEDGED",
      detail: "the partition is being given up",
      retryable: true
    })
  }
  options.counts.locks.claim++
  return at
})

/** What the offsets of these locks say about the source, nobody knows: it is another topic, or another cluster. */
const ofAnotherTopic = (main: TopicPartition, strangers: ReadonlyArray<string>): BrokerError =>
  new UnexpectedBrokerError({
    operation: `Taking over the parked keys of ${main.topic}-${main.partition}`,
    code: "OTHER_INCARNATION",
    detail: `${strangers.length} locks belong to another incarnation of the topic, or to another cluster (${strangers[0]}). What they keep back cannot be found by their offsets`,
    retryable: true
  })

/** A key's lock as it was found, and where. */
interface Found {
  readonly lock: OrderHeaders.Lock
  readonly record: ConsumerRecord
  readonly part: number
}

/** Reads one retry partition from its position on. */
class Scan {
  readonly partition: Partition
  readonly part: number
  /** The highest epoch that was seen. */
  highest: number
  /** The highest lock of each key. */
  readonly best = new Map<string, Found>()
  /** By key: the offset of its last lock. */
  readonly last = new Map<string, bigint>()
  readonly claims: Array<{ readonly at: bigint; readonly epoch: number }> = []
  readonly strangers: Array<string> = []
  readonly #options: BeginOptions
  #inForce: number
  #next: bigint

  constructor(options: BeginOptions, partition: Partition, part: number) {
    this.#options = options
    this.partition = partition
    this.part = part
    this.#inForce = partition.epoch ?? 0
    this.highest = this.#inForce
    this.#next = partition.position()
  }

  /** Reads on, up to an offset. What is gone or cannot be read is passed over: the partition itself reports it. */
  readTo(reader: Reader, end: bigint): Effect.Effect<void, BrokerError> {
    return Effect.suspend(() => {
      if (this.#next >= end) return Effect.void
      const { topic, partition } = this.partition
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
    const { definition, bond, main } = this.#options
    if (CopyOwner.foreign(record, definition) !== undefined) return
    const read = OrderHeaders.read(record, bond)
    if (read === undefined) return
    if (read.kind === "stranger") {
      this.strangers.push(read.bond)
      return
    }
    if (read.kind === "claim") {
      this.#inForce = Math.max(this.#inForce, read.epoch)
      this.highest = Math.max(this.highest, read.epoch)
      this.claims.push({ at: record.offset, epoch: read.epoch })
      return
    }
    if (!OrderHeaders.isLock(read) || read.epoch !== this.#inForce) return
    // Nothing may come behind what is done: a lock without a record stands at the end then.
    const end = read.kind === "next" ? main.log.end + 1n : main.log.end
    if (read.offset >= end) return
    const key = textOf(record.key!)
    this.last.set(key, record.offset)
    const known = this.best.get(key)
    if (known === undefined || isHigher(read, known.lock)) this.best.set(key, { lock: read, record, part: this.part })
  }
}

const isHigher = (one: OrderHeaders.Lock, other: OrderHeaders.Lock): boolean =>
  one.offset > other.offset || (one.offset === other.offset && one.hop > other.hop)

const tableOf = (options: UnitOptions, scans: ReadonlyArray<Scan>): Unit => {
  const unit = new Unit(
    options,
    scans.map(({ partition }) => partition.epoch ?? 0)
  )
  for (const { part, claims } of scans) for (const { at, epoch } of claims) unit.claim(part, at, epoch)
  const best = new Map<string, Found>()
  for (const scan of scans) {
    for (const [key, found] of scan.best) {
      const known = best.get(key)
      if (known === undefined || isHigher(found.lock, known.lock)) best.set(key, found)
    }
  }
  for (const [key, found] of best) unit.adopt(entryOf(options, unit, key, found, scans))
  return unit
}

const entryOf = (
  { main }: UnitOptions,
  unit: Unit,
  key: string,
  { lock, record, part }: Found,
  scans: ReadonlyArray<Scan>
): Entry => {
  const entry = new Entry(key, record.key!, lock.offset, lock.epoch, unit.parts.length, record.timestamp)
  entry.hop = lock.hop
  entry.kind = lock.kind
  entry.part = part
  entry.from = lock.kind === "next" ? lock.offset : lock.offset + 1n
  for (const scan of scans) entry.copies[scan.part] = scan.last.get(key) ?? -1n
  // Nothing of the key lies between its lock and where the lock says that its first follower can be.
  const first = BigInts.max(entry.from, lock.next)
  if (first < main.position()) unit.evict(entry, first)
  return entry
}
