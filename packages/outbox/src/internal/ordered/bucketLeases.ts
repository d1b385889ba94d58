/**
 * The leases of aggregate buckets. Each bucket has one owner at a time, an epoch that grows with every change of owner, and an expiry
 * on the database's clock. Nodes announce themselves, and each node aims for an equal share of the buckets.
 *
 * A node that misses its renewals stops by itself, on its monotonic clock, before its lease has expired in the database.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { bucketCount } from "../base/bucketOf.ts"
import type { StoreShape } from "../store/contract.ts"
import { type LeaseStatements, makeLeaseStatements } from "./leaseStatements.ts"

/** A bucket while this node holds it. Every acquisition is a new object, so late results of an earlier one change nothing. */
export interface BucketLease {
  readonly bucket: number
  readonly epoch: number
  /** On the monotonic clock. Past it, no event of this bucket may be started. */
  validUntilNanos: bigint
  /** No event of this bucket is started any more, and the bucket is released or handed over as soon as possible. Never reset. */
  stopped: boolean
  /** This node holds the bucket no longer. */
  lost: boolean
}

/** Settings of the leases that nodes share buckets by. */
export interface LeaseOptions {
  /** The node's name. Unique per running process, 1 to 120 characters. */
  readonly owner: string
  /** After this long without renewal, other nodes may take the node's buckets. Above 0. */
  readonly lease: Duration.Input
}

/** The events in flight, as the leases see them. */
interface InFlight {
  /** Whether nothing of this lease is in flight. */
  readonly isIdle: (lease: BucketLease) => boolean
  /** From now on the events in flight under these leases are marked under their row locks. Returns their ids. */
  readonly beginHandover: (leases: ReadonlyArray<BucketLease>) => ReadonlyArray<string>
}

/**
 * The end of the name of a node that respects row locks of a handover. A node of the first version does not; while one is alive, buckets
 * are drained instead of handed over.
 */
const handoverSuffix = "~2"

/** The pause before the next round while a bucket that is to be released still has events in flight. */
const drainingPauseMillis = 20

/** Added to another lease's expiry, so that the round comes after it. */
const afterExpiryMillis = 20

/** The number of buckets that node number `rank` of `nodes` should hold. */
const fairShare = (rank: number, nodes: number): number =>
  Math.floor(bucketCount / nodes) + (rank < bucketCount % nodes ? 1 : 0)

export class BucketLeases {
  readonly #statements: LeaseStatements
  readonly #clock: Clock.Clock
  /** The node's name in the table. */
  readonly owner: string
  readonly #lease: Duration.Duration
  readonly #leases = new Map<number, BucketLease>()

  constructor(statements: LeaseStatements, clock: Clock.Clock, owner: string, lease: Duration.Duration) {
    this.#statements = statements
    this.#clock = clock
    this.owner = owner
    this.#lease = lease
  }

  /** The buckets that this node holds now. */
  current(): ReadonlyArray<BucketLease> {
    return [...this.#leases.values()]
  }

  /**
   * One round: announces the node, renews its leases, releases what exceeds its share, and acquires what is free. Returns milliseconds
   * until the next round is useful. A bucket with events in flight is handed over when all nodes know how, and drained otherwise.
   */
  readonly round = Effect.fnUntraced({ self: this as BucketLeases }, function* (inFlight: InFlight): Effect.fn.Return<
    number,
    OutboxStoreError
  > {
    yield* this.#statements.announceNode
    yield* this.#renew
    const nodes = yield* this.#statements.liveNodes
    const share = fairShare(Math.max(0, nodes.indexOf(this.owner)), Math.max(1, nodes.length))
    const mayHandOver = nodes.every((node) => node.endsWith(handoverSuffix))
    const isDraining = yield* this.#releaseExcess(share, inFlight, mayHandOver)
    if (this.#leases.size < share) {
      yield* this.#statements.deleteDeadNodes
      yield* this.#acquire(share - this.#leases.size)
    }
    const usual = Duration.toMillis(this.#lease) / 3
    if (isDraining) return Math.min(usual, drainingPauseMillis)
    return this.#leases.size < share ? Math.min(usual, yield* this.#untilNextExpiry) : usual
  })

  /** Releases all buckets, so that other nodes need not wait for the expiry. */
  readonly leave: Effect.Effect<void, OutboxStoreError> = Effect.suspend(() =>
    Effect.andThen(this.#release(this.current()), Effect.asVoid(this.#statements.deleteThisNode))
  )

  #drop(lease: BucketLease): void {
    lease.lost = true
    this.#leases.delete(lease.bucket)
  }

  #expiry(): bigint {
    return this.#clock.monotonicTimeNanosUnsafe() + Duration.toNanosUnsafe(this.#lease)
  }

  #release(leases: ReadonlyArray<BucketLease>): Effect.Effect<void, OutboxStoreError> {
    for (const lease of leases) this.#drop(lease)
    return leases.length === 0
      ? Effect.void
      : Effect.asVoid(this.#statements.release(leases.map((lease) => lease.bucket)))
  }

  readonly #renew: Effect.Effect<void, OutboxStoreError> = Effect.gen({ self: this }, function* () {
    // A lease that expired here stays lost even when no node took it: events behind one that was not started in time must not go ahead.
    const now = this.#clock.monotonicTimeNanosUnsafe()
    yield* this.#release(this.current().filter((lease) => lease.lost || now >= lease.validUntilNanos))
    if (this.#leases.size === 0) return
    const validUntilNanos = this.#expiry()
    const stillHeld = yield* this.#statements.renew(this.#leases.keys())
    const epochs = new Map(stillHeld.map(({ bucket, epoch }) => [bucket, epoch]))
    for (const lease of this.current()) {
      if (epochs.get(lease.bucket) === lease.epoch) lease.validUntilNanos = validUntilNanos
      else this.#drop(lease)
    }
  })

  #acquire(count: number): Effect.Effect<void, OutboxStoreError> {
    return Effect.suspend(() => {
      const validUntilNanos = this.#expiry()
      return Effect.map(this.#statements.acquire(count), (acquired) => {
        for (const { bucket, epoch } of acquired) {
          this.#leases.set(bucket, { bucket, epoch, validUntilNanos, stopped: false, lost: false })
        }
      })
    })
  }

  readonly #untilNextExpiry: Effect.Effect<number, OutboxStoreError> = Effect.suspend(() =>
    Effect.map(this.#statements.nextExpiry, (millis) =>
      millis === undefined ? Duration.toMillis(this.#lease) : millis + afterExpiryMillis
    )
  )

  /** Stops what exceeds the share, idle buckets first, and releases or hands over what is stopped. Returns whether some are draining. */
  readonly #releaseExcess = Effect.fnUntraced(
    { self: this as BucketLeases },
    function* (share: number, inFlight: InFlight, mayHandOver: boolean): Effect.fn.Return<boolean, OutboxStoreError> {
      const running = this.current().filter((lease) => !lease.stopped)
      const idleFirst = [...running.filter(inFlight.isIdle), ...running.filter((lease) => !inFlight.isIdle(lease))]
      for (const lease of idleFirst.slice(0, Math.max(0, running.length - share))) lease.stopped = true
      const stopped = this.current().filter((lease) => lease.stopped)
      const busy = stopped.filter((lease) => !inFlight.isIdle(lease))
      yield* this.#release(stopped.filter(inFlight.isIdle))
      if (busy.length === 0 || !mayHandOver) return busy.length > 0
      yield* this.#statements.handOver(
        busy.map((lease) => lease.bucket),
        inFlight.beginHandover(busy)
      )
      for (const lease of busy) this.#drop(lease)
      return false
    }
  )
}

/** The name of a node in the table, from the name that the user gave it. */
export const nodeNameOf = (owner: string): string => `${owner}${handoverSuffix}`

/** The leases of this node. Inserts the bucket rows that are not there yet. */
export const makeBucketLeases = Effect.fnUntraced(function* (
  store: Pick<StoreShape, "dialect" | "names">,
  options: LeaseOptions
): Effect.fn.Return<BucketLeases, OutboxStoreError, SqlClient.SqlClient> {
  const lease = Duration.fromInputUnsafe(options.lease)
  const sql = yield* SqlClient.SqlClient
  const owner = nodeNameOf(options.owner)
  const statements = makeLeaseStatements({ sql, store, owner, leaseMillis: Duration.toMillis(lease) })
  yield* statements.createBuckets
  return new BucketLeases(statements, yield* Clock.Clock, owner, lease)
})
