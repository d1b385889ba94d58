/**
 * The reading half of ordered delivery: which buckets, from where, how much, and when to look again.
 */
import { Duration, Effect } from "effect"
import type { MetricsExporter } from "../../MetricsExporter.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { makeSignal } from "../base/signal.ts"
import type { StoreShape } from "../store/contract.ts"
import { type PolledEvent, separateUndecodable } from "../store/rows.ts"
import type { BucketLease } from "./bucketLeases.ts"
import type { BucketReads } from "./bucketReads.ts"
import type { OrderedDelivery } from "./delivery.ts"
import type { ReadPositions } from "./readPositions.ts"

export interface ReadingSettings {
  readonly interval: Duration.Input
  readonly batchSize: number
  readonly maxInMemory: number
  /** `all`: one insertion order over all aggregates, for one worker. */
  readonly order: "aggregate" | "all"
}

interface Parts {
  readonly store: StoreShape
  readonly metrics: MetricsExporter
  readonly reads: BucketReads
  readonly reader: ReadPositions
  readonly delivery: OrderedDelivery
  readonly tenures: () => ReadonlyArray<BucketLease>
}

type Next = "now" | "soon" | "later"

/** Aggregates that may be held back at once; beyond that nothing new is read until retries succeed. */
const maxWaiting = 20_000
/** Every so often all buckets are read from the start: rows may have become pending behind the cursors by other hands. */
const rescanNanos = 30_000_000_000n
/** Numbers are given out whose transactions still run: most end within milliseconds, so the waits begin short. */
const soonMillis = { first: 1, last: 200 }

export class OrderedReading {
  readonly signal = makeSignal()
  readonly #parts: Parts
  readonly #settings: ReadingSettings
  readonly #known = new Set<BucketLease>()
  #backlogged: ReadonlySet<number> = new Set()
  #rescanWanted = false
  #lastRescan: bigint
  #lastHorizon = -1
  #unread = true
  #soonMillis = soonMillis.first

  constructor(parts: Parts, settings: ReadingSettings) {
    this.#parts = parts
    this.#settings = settings
    this.#lastRescan = parts.delivery.now()
  }

  rescan(): void {
    this.#rescanWanted = true
    this.signal.raise()
  }

  /** Reads and waits in turn, for as long as it runs. */
  readonly loop: Effect.Effect<never> = Effect.suspend(() =>
    Effect.forever(
      this.#parts.delivery.whileReading(this.#read).pipe(
        Effect.flatMap((next) => this.#after(next)),
        Effect.catchCause((cause) =>
          Effect.andThen(Effect.logError("outbox: reading buckets failed", cause), Effect.sleep("1 second"))
        )
      )
    )
  )

  #after(next: Next): Effect.Effect<unknown> {
    if (next === "soon") {
      const wait = this.#soonMillis
      this.#soonMillis = Math.min(soonMillis.last, wait * 2)
      return Effect.sleep(wait)
    }
    this.#soonMillis = soonMillis.first
    return next === "now" ? Effect.yieldNow : this.#pause
  }

  readonly #pause = Effect.suspend(() => {
    const due = this.#parts.reader.nextDue()
    const interval = Duration.toMillis(Duration.fromInputUnsafe(this.#settings.interval))
    const untilDue = due === undefined ? interval : Number(due - this.#parts.delivery.now()) / 1e6
    return Effect.timeoutOption(this.signal.await, Math.max(1, Math.min(interval, Math.ceil(untilDue))))
  })

  readonly #read: Effect.Effect<Next, OutboxStoreError> = Effect.gen({ self: this }, function* () {
    const { delivery, reader, reads, tenures } = this.#parts
    const current = tenures().filter((tenure) => delivery.isValid(tenure))
    const reasons = [this.#follow(current), reader.wakeDue(delivery.now()), this.#rescanIfWanted(current)]
    if (reasons.includes(true)) this.#unread = true
    const room = this.#settings.maxInMemory - delivery.size
    const crowded = room < this.#settings.maxInMemory / 2 || reader.waitingCount() >= maxWaiting
    if (current.length === 0 || crowded) return "later"
    const horizon = yield* reads.stableSeq
    if (!this.#unread && horizon.seq === this.#lastHorizon) return horizon.hasOpenTransactions ? "soon" : "later"
    const { full, cut } = yield* this.#readGroups(current, horizon.seq)
    this.#lastHorizon = horizon.seq
    this.#unread = full.size > 0 || cut
    return full.size > 0 ? "now" : cut || horizon.hasOpenTransactions ? "soon" : "later"
  })

  readonly #readGroups = Effect.fnUntraced(
    { self: this as OrderedReading },
    function* (current: ReadonlyArray<BucketLease>, horizon: number) {
      const { delivery, metrics, reader, reads } = this.#parts
      const full = new Set<number>()
      let cut = false
      for (const { tenures, limit } of this.#plan(current)) {
        const found = yield* reads.read(reader.cursors(tenures.map((t) => t.bucket)), horizon, limit)
        for (const bucket of fullBuckets(found.rows, limit)) full.add(bucket)
        cut ||= found.cut
        if (found.rows.length > 0) metrics.recordOldestLagMs(Math.max(...found.rows.map((row) => row.ageMillis)))
        yield* this.#takeIn(found.rows, limit, new Map(tenures.map((t) => [t.bucket, t])))
      }
      // In one order over all buckets, every read has to compare them all.
      this.#backlogged = this.#settings.order === "all" ? new Set() : full
      metrics.recordQueueDepths(0, delivery.size)
      return { full, cut }
    }
  )

  /** Buckets with a backlog get three quarters of the free memory, the others share the rest. */
  #plan(current: ReadonlyArray<BucketLease>) {
    const room = this.#settings.maxInMemory - this.#parts.delivery.size
    const busy = current.filter((t) => this.#backlogged.has(t.bucket))
    const quiet = current.filter((t) => !this.#backlogged.has(t.bucket))
    const [busyShare, quietShare] = busy.length === 0 ? [0, 1] : quiet.length === 0 ? [1, 0] : [0.75, 0.25]
    const limit = (share: number, among: number) =>
      Math.min(this.#settings.batchSize, Math.max(1, Math.floor((room * share) / Math.max(1, among))))
    return [
      { tenures: busy, limit: limit(busyShare, busy.length) },
      { tenures: quiet, limit: limit(quietShare, quiet.length) }
    ].filter((group) => group.tenures.length > 0)
  }

  /** Buckets that came new start from the beginning; those that went are forgotten. */
  #follow(current: ReadonlyArray<BucketLease>): boolean {
    const { delivery, reader } = this.#parts
    const gone = [...this.#known].filter((tenure) => !current.includes(tenure))
    const come = current.filter((tenure) => !this.#known.has(tenure))
    delivery.leasesEnded(gone)
    for (const tenure of gone) {
      this.#known.delete(tenure)
      reader.forget(tenure.bucket)
    }
    for (const tenure of come) {
      this.#known.add(tenure)
      reader.rewind(tenure.bucket)
    }
    return come.length > 0
  }

  #rescanIfWanted(current: ReadonlyArray<BucketLease>): boolean {
    const now = this.#parts.delivery.now()
    if (!this.#rescanWanted && now - this.#lastRescan < rescanNanos) return false
    this.#rescanWanted = false
    this.#lastRescan = now
    for (const { bucket } of current) this.#parts.reader.rewind(bucket)
    return true
  }

  #takeIn(rows: ReadonlyArray<PolledEvent>, limit: number, byBucket: ReadonlyMap<number, BucketLease>) {
    const { events, undecodable } = separateUndecodable(this.#settings.order === "all" ? inOneOrder(rows, limit) : rows)
    return Effect.andThen(
      Effect.forEach(undecodable, (row) => this.#bury(row), { discard: true }),
      Effect.sync(() => {
        for (const event of events) {
          const tenure = byBucket.get(event.bucket)
          if (tenure !== undefined) this.#parts.delivery.accept(event, tenure)
        }
      })
    )
  }

  #bury(row: { readonly eventId: string; readonly envelope: Error }) {
    return Effect.andThen(
      Effect.logFatal(`outbox: ${row.eventId} cannot be decoded and is DEAD: ${row.envelope.message}`),
      this.#parts.store.markDead(row.eventId, row.envelope.message)
    )
  }
}

/** Buckets that may have more rows than were asked for. */
const fullBuckets = (rows: ReadonlyArray<PolledEvent>, limit: number): ReadonlyArray<number> => {
  const counts = new Map<number, number>()
  for (const { bucket } of rows) counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
  return [...counts].filter(([, count]) => count >= limit).map(([bucket]) => bucket)
}

/** Rows in order over all buckets, none behind the last row of a bucket that may have more. */
const inOneOrder = (rows: ReadonlyArray<PolledEvent>, limit: number): ReadonlyArray<PolledEvent> => {
  const lastOf = new Map(rows.toSorted((a, b) => a.seq - b.seq).map((row) => [row.bucket, row.seq]))
  const upTo = Math.min(...fullBuckets(rows, limit).map((bucket) => lastOf.get(bucket) ?? 0))
  return rows.filter((row) => row.seq <= upTo).toSorted((a, b) => a.seq - b.seq)
}
