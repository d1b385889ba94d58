/** The reading half of ordered delivery: which buckets to read, from where, how many rows, and when to read again. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { logText } from "../base/failureText.ts"
import { logError, logFatal } from "../base/log.ts"
import { makeSignal } from "../base/signal.ts"
import type { DeliveryTools } from "../delivery/deliveryTools.ts"
import type { StoreShape } from "../store/contract.ts"
import { type PolledEvent, separateUndecodable, type UndecodableEvent } from "../store/rows.ts"
import type { BucketLease } from "./bucketLeases.ts"
import type { BucketReads } from "./bucketReads.ts"
import type { OrderedDelivery } from "./orderedDelivery.ts"
import type { ReadPositions } from "./readPositions.ts"

interface ReadingSettings {
  readonly interval: Duration.Input
  readonly batchSize: number
  readonly maxInMemory: number
  /** `aggregate`: insertion order per aggregate. `all`: one insertion order over all aggregates, for one worker. */
  readonly order: "aggregate" | "all"
}

interface Parts {
  readonly store: StoreShape
  readonly tools: DeliveryTools
  readonly reads: BucketReads
  readonly positions: ReadPositions
  readonly delivery: OrderedDelivery
  readonly currentLeases: () => ReadonlyArray<BucketLease>
}

type NextRead = "now" | "soon" | "later"

/** The most delays at once. Beyond that, nothing new is read until retries succeed. */
const maxDelayed = 100_000
/** All buckets are read from the start this often, because other software may make rows pending behind the positions. */
const rescanNanos = 30_000_000_000n
/** The waits while transactions with lower numbers are open. Most transactions end within milliseconds, so the waits begin short. */
const soonMillis = { first: 1, last: 200 }

export class OrderedReading {
  readonly signal = makeSignal()
  readonly #parts: Parts
  readonly #settings: ReadingSettings
  readonly #knownLeases = new Set<BucketLease>()
  #backlogged: ReadonlySet<number> = new Set()
  #rescanWanted = false
  #lastRescan: bigint
  #lastStableSeq = -1
  #mayHaveUnread = true
  #soonMillis = soonMillis.first

  constructor(parts: Parts, settings: ReadingSettings) {
    this.#parts = parts
    this.#settings = settings
    this.#lastRescan = parts.delivery.now()
  }

  /** Reads all buckets from the start, soon. */
  rescan(): void {
    this.#rescanWanted = true
    this.signal.raise()
  }

  /** Reads and waits in turn, for as long as it runs. */
  readonly loop: Effect.Effect<never> = Effect.suspend(() =>
    Effect.forever(
      this.#parts.delivery.whileReading(this.#read).pipe(
        Effect.flatMap((next) => this.#wait(next)),
        Effect.catchCause((cause) =>
          Effect.andThen(logError(`outbox: reading buckets failed: ${logText(cause)}`), Effect.sleep("1 second"))
        )
      )
    )
  )

  #wait(next: NextRead): Effect.Effect<unknown> {
    if (next === "soon") {
      const wait = this.#soonMillis
      this.#soonMillis = Math.min(soonMillis.last, wait * 2)
      return Effect.sleep(wait)
    }
    this.#soonMillis = soonMillis.first
    return next === "now" ? Effect.yieldNow : this.#pause
  }

  readonly #pause = Effect.suspend(() => {
    const due = this.#parts.positions.nextDue()
    const interval = Duration.toMillis(Duration.fromInputUnsafe(this.#settings.interval))
    const untilDue = due === undefined ? interval : Number(due - this.#parts.delivery.now()) / 1e6
    return Effect.timeoutOption(this.signal.await, Math.max(1, Math.min(interval, Math.ceil(untilDue))))
  })

  readonly #read: Effect.Effect<NextRead, OutboxStoreError> = Effect.gen({ self: this }, function* () {
    const { delivery, positions, reads, currentLeases } = this.#parts
    const leases = currentLeases().filter((lease) => delivery.isValid(lease))
    const reasons = [this.#followLeases(leases), positions.resumeDue(delivery.now()), this.#rescanIfWanted(leases)]
    if (reasons.includes(true)) this.#mayHaveUnread = true
    const capacity = this.#settings.maxInMemory - delivery.size
    const isFull = capacity < this.#settings.maxInMemory / 2 || positions.delayedCount() >= maxDelayed
    if (leases.length === 0 || isFull) return "later"
    const { seq, hasOpenTransactions } = yield* reads.stableSeq
    if (!this.#mayHaveUnread && seq === this.#lastStableSeq) return hasOpenTransactions ? "soon" : "later"
    const { full, truncated } = yield* this.#readGroups(leases, seq)
    this.#lastStableSeq = seq
    this.#mayHaveUnread = full.size > 0 || truncated
    return full.size > 0 ? "now" : truncated || hasOpenTransactions ? "soon" : "later"
  })

  readonly #readGroups = Effect.fnUntraced(
    { self: this as OrderedReading },
    function* (leases: ReadonlyArray<BucketLease>, stableSeq: number) {
      const { positions, reads } = this.#parts
      const full = new Set<number>()
      let truncated = false
      for (const group of this.#plan(leases)) {
        const cursors = positions.cursors(group.leases.map((lease) => lease.bucket))
        const found = yield* reads.read(cursors, stableSeq, group.limit)
        for (const bucket of fullBuckets(found.rows, group.limit)) full.add(bucket)
        truncated ||= found.truncated
        yield* this.#acceptRows(found.rows, group.limit, new Map(group.leases.map((lease) => [lease.bucket, lease])))
      }
      // With one order over all buckets, every read has to compare them all.
      this.#backlogged = this.#settings.order === "all" ? new Set() : full
      return { full, truncated }
    }
  )

  /** Divides the free memory: three quarters for buckets with a backlog, the rest for the others. */
  #plan(leases: ReadonlyArray<BucketLease>) {
    const capacity = this.#settings.maxInMemory - this.#parts.delivery.size
    const busy = leases.filter((lease) => this.#backlogged.has(lease.bucket))
    const quiet = leases.filter((lease) => !this.#backlogged.has(lease.bucket))
    const [busyShare, quietShare] = busy.length === 0 ? [0, 1] : quiet.length === 0 ? [1, 0] : [0.75, 0.25]
    const limit = (share: number, among: number) =>
      Math.min(this.#settings.batchSize, Math.max(1, Math.floor((capacity * share) / Math.max(1, among))))
    return [
      { leases: busy, limit: limit(busyShare, busy.length) },
      { leases: quiet, limit: limit(quietShare, quiet.length) }
    ].filter((group) => group.leases.length > 0)
  }

  /** Starts new buckets from the beginning, and forgets those whose lease has ended. Returns whether there are new ones. */
  #followLeases(leases: ReadonlyArray<BucketLease>): boolean {
    const { delivery, positions } = this.#parts
    const ended = [...this.#knownLeases].filter((lease) => !leases.includes(lease))
    const begun = leases.filter((lease) => !this.#knownLeases.has(lease))
    delivery.leasesEnded(ended)
    for (const lease of ended) {
      this.#knownLeases.delete(lease)
      positions.forget(lease.bucket)
    }
    for (const lease of begun) {
      this.#knownLeases.add(lease)
      positions.rewind(lease.bucket)
    }
    return begun.length > 0
  }

  #rescanIfWanted(leases: ReadonlyArray<BucketLease>): boolean {
    const now = this.#parts.delivery.now()
    if (!this.#rescanWanted && now - this.#lastRescan < rescanNanos) return false
    this.#rescanWanted = false
    this.#lastRescan = now
    for (const { bucket } of leases) this.#parts.positions.rewind(bucket)
    return true
  }

  #acceptRows(rows: ReadonlyArray<PolledEvent>, limit: number, byBucket: ReadonlyMap<number, BucketLease>) {
    const { events, undecodable } = separateUndecodable(this.#settings.order === "all" ? inOneOrder(rows, limit) : rows)
    return Effect.andThen(
      Effect.forEach(undecodable, (row) => this.#markUndecodable(row), { discard: true }),
      Effect.sync(() => {
        for (const event of events) {
          const lease = byBucket.get(event.bucket)
          if (lease !== undefined) this.#parts.delivery.accept(event, lease)
        }
      })
    )
  }

  #markUndecodable(row: UndecodableEvent) {
    return Effect.andThen(
      logFatal(`outbox: ${row.eventId} cannot be decoded and is DEAD: ${row.envelope.message}`),
      this.#parts.store.markDead(row.eventId, row.envelope.message)
    ).pipe(
      Effect.tap((changed) =>
        changed > 0 ? Effect.sync(this.#parts.tools.metrics.incrementDispatchDead) : Effect.void
      )
    )
  }
}

/** Buckets that may have more rows than were asked for. */
const fullBuckets = (rows: ReadonlyArray<PolledEvent>, limit: number): ReadonlyArray<number> => {
  const counts = new Map<number, number>()
  for (const { bucket } of rows) counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
  return [...counts].filter(([, count]) => count >= limit).map(([bucket]) => bucket)
}

/** Rows in order over all buckets, up to the last row of the first bucket that may have more. */
const inOneOrder = (rows: ReadonlyArray<PolledEvent>, limit: number): ReadonlyArray<PolledEvent> => {
  const lastOf = new Map(rows.toSorted((a, b) => a.seq - b.seq).map((row) => [row.bucket, row.seq]))
  const upTo = Math.min(...fullBuckets(rows, limit).map((bucket) => lastOf.get(bucket) ?? 0))
  return rows.filter((row) => row.seq <= upTo).toSorted((a, b) => a.seq - b.seq)
}
