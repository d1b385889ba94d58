/**
 * Which aggregate buckets this node may deliver from. Each bucket has one owner at a time, an epoch that grows with every change of
 * owner, and an expiry on the database's clock; nodes announce themselves, and each aims for its equal share.
 *
 * Owns the set of held buckets. A node that misses its renewals stops by itself, on its monotonic clock, before its lease has run
 * out in the database.
 */
import { Clock, Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { OutboxStoreError } from "../../OutboxError.ts"
import type { Shape as Store } from "../../OutboxStore.ts"
import { bucketCount } from "../base/bucketOf.ts"

/** A bucket while this node holds it. A new acquisition is a new object: late results of the old one have nothing to act on. */
export interface BucketLease {
  readonly bucket: number
  readonly epoch: number
  /** On the monotonic clock. Past it, nothing of this bucket may be started. */
  validUntilNanos: bigint
  /** Nothing more is started: the bucket is given up as soon as what is under way has ended. Never taken back. */
  stopped: boolean
  /** No longer ours. */
  lost: boolean
}

export interface LeaseOptions {
  /** Unique per running process, 1 to 128 characters. */
  readonly owner: string
  /** How long a node's buckets stay with it after it stopped answering. Default 20 seconds. */
  readonly lease: Duration.Input
}

export interface BucketLeases {
  readonly held: () => ReadonlyArray<BucketLease>
  /**
   * One round: announce, renew, give up what exceeds the share, take what is free. Returns milliseconds until the next round is
   * useful. A bucket is given up once `isIdle` says that nothing of it is under way; until then its lease is kept.
   */
  readonly round: (isIdle: (tenure: BucketLease) => boolean) => Effect.Effect<number, OutboxStoreError>
  /** Gives everything back, so that other nodes need not wait for the expiry. */
  readonly leave: Effect.Effect<void, OutboxStoreError>
}

type Row = Record<string, unknown>

/** While a bucket to give up still has events under way. */
const drainingPauseMillis = 20

/** What node number `rank` of `nodes` should hold. */
export const fairShare = (rank: number, nodes: number): number =>
  Math.floor(bucketCount / nodes) + (rank < bucketCount % nodes ? 1 : 0)

export const make = Effect.fnUntraced(function* (store: Store, options: LeaseOptions) {
  const sql = yield* SqlClient.SqlClient
  const clock = yield* Clock.Clock
  const { dialect, names } = store
  const lease = Duration.fromInputUnsafe(options.lease)
  const leaseMillis = Duration.toMillis(lease)
  const me = dialect.param(1)
  const until = dialect.plusMillis(dialect.now, String(leaseMillis))
  const held = new Map<number, BucketLease>()

  /** A statement whose only parameter, if it has one, is this node's name. */
  const run = (operation: string, text: string) =>
    Effect.mapError(
      sql.unsafe<Row>(text, text.includes(me) ? [options.owner] : []).withoutTransform,
      (cause) => new OutboxStoreError({ operation, retryable: cause.isRetryable, cause })
    )
  const inList = (buckets: Iterable<number>) => `bucket IN (${[...buckets].join(", ")})`

  const ignoreDuplicates = dialect.name === "mysql" ? ["INSERT IGNORE", ""] : ["INSERT", " ON CONFLICT DO NOTHING"]
  const rows = Array.from({ length: bucketCount }, (_, bucket) => `(${bucket}, 0)`).join(", ")
  yield* run(
    "create buckets",
    `${ignoreDuplicates[0]} INTO ${names.bucket} (bucket, epoch) VALUES ${rows}${ignoreDuplicates[1]}`
  )

  const upsert =
    dialect.name === "mysql"
      ? "ON DUPLICATE KEY UPDATE expires_at = VALUES(expires_at)"
      : "ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at"
  const announce = run(
    "announce node",
    `INSERT INTO ${names.node} (owner, expires_at) VALUES (${me}, ${until}) ${upsert}`
  )

  const liveNodes = Effect.map(
    run("list nodes", `SELECT owner FROM ${names.node} WHERE expires_at > ${dialect.now} ORDER BY owner`),
    (found) => found.map((row) => String(row.owner))
  )
  const forgetDeadNodes = run(
    "forget nodes",
    `DELETE FROM ${names.node} WHERE expires_at <= ${dialect.minusMillis(dialect.now, String(10 * leaseMillis))}`
  )

  const lose = (tenure: BucketLease) => {
    tenure.lost = true
    held.delete(tenure.bucket)
  }
  const expiry = () => clock.monotonicTimeNanosUnsafe() + Duration.toNanosUnsafe(lease)

  const giveUp = (tenures: ReadonlyArray<BucketLease>) => {
    for (const tenure of tenures) lose(tenure)
    const where = `owner = ${me} AND ${inList(tenures.map((t) => t.bucket))}`
    return tenures.length === 0
      ? Effect.void
      : run("release buckets", `UPDATE ${names.bucket} SET owner = NULL, expires_at = NULL WHERE ${where}`)
  }

  const renew = Effect.gen(function* () {
    // A lease that ran out here stays lost, even if nobody took it: events behind one that was not started any more must not go ahead.
    yield* giveUp([...held.values()].filter((t) => t.lost || clock.monotonicTimeNanosUnsafe() >= t.validUntilNanos))
    if (held.size === 0) return
    const validUntilNanos = expiry()
    const mine = `owner = ${me} AND ${inList(held.keys())}`
    yield* run("renew buckets", `UPDATE ${names.bucket} SET expires_at = ${until} WHERE ${mine}`)
    const still = yield* run("renew buckets", `SELECT bucket, epoch FROM ${names.bucket} WHERE ${mine}`)
    const epochs = new Map(still.map((row) => [Number(row.bucket), Number(row.epoch)]))
    for (const tenure of [...held.values()]) {
      if (epochs.get(tenure.bucket) === tenure.epoch) tenure.validUntilNanos = validUntilNanos
      else lose(tenure)
    }
  })

  const free = `(owner IS NULL OR expires_at <= ${dialect.now})`
  const takeRows = (count: number) =>
    Effect.gen(function* () {
      const choose = `SELECT bucket FROM ${names.bucket} WHERE ${free} ORDER BY bucket LIMIT ${count} ${dialect.skipLocked}`
      const chosen = (yield* run("find free buckets", choose)).map((row) => Number(row.bucket))
      if (chosen.length === 0) return []
      const set = `owner = ${me}, epoch = epoch + 1, expires_at = ${until}`
      yield* run("take buckets", `UPDATE ${names.bucket} SET ${set} WHERE ${inList(chosen)}`)
      return yield* run("take buckets", `SELECT bucket, epoch FROM ${names.bucket} WHERE ${inList(chosen)}`)
    })

  const take = (count: number) =>
    Effect.gen(function* () {
      const validUntilNanos = expiry()
      const taken = yield* sql
        .withTransaction(takeRows(count))
        .pipe(
          Effect.mapError((cause) =>
            cause._tag === "OutboxStoreError"
              ? cause
              : new OutboxStoreError({ operation: "take buckets", retryable: cause.isRetryable, cause })
          )
        )
      for (const row of taken) {
        const bucket = Number(row.bucket)
        held.set(bucket, { bucket, epoch: Number(row.epoch), validUntilNanos, stopped: false, lost: false })
      }
    })

  /** Nothing is free now: when is the next expiry of another node's bucket? */
  const nextExpiry = Effect.map(
    run(
      "find next expiry",
      `SELECT MIN(${dialect.micros("expires_at")}) - ${dialect.micros(dialect.now)} AS ahead FROM ${names.bucket} WHERE owner <> ${me}`
    ),
    ([row]) =>
      row?.ahead === null || row?.ahead === undefined ? leaseMillis : Math.max(0, Number(row.ahead) / 1000) + 20
  )

  /** Stops what exceeds the share, and gives up what has come to rest. Returns whether something is still under way. */
  const shrink = Effect.fnUntraced(function* (share: number, isIdle: (tenure: BucketLease) => boolean) {
    const going = [...held.values()].filter((tenure) => !tenure.stopped)
    for (const tenure of going.slice(share)) tenure.stopped = true
    const stopped = [...held.values()].filter((tenure) => tenure.stopped)
    const idle = stopped.filter(isIdle)
    yield* giveUp(idle)
    return idle.length < stopped.length
  })

  const round: BucketLeases["round"] = Effect.fnUntraced(function* (isIdle) {
    yield* announce
    yield* renew
    const nodes = yield* liveNodes
    const share = fairShare(Math.max(0, nodes.indexOf(options.owner)), Math.max(1, nodes.length))
    const draining = yield* shrink(share, isIdle)
    if (held.size < share) {
      yield* forgetDeadNodes
      yield* take(share - held.size)
    }
    const usual = leaseMillis / 3
    if (draining) return Math.min(usual, drainingPauseMillis)
    return held.size < share ? Math.min(usual, yield* nextExpiry) : usual
  })

  const leave = Effect.gen(function* () {
    yield* giveUp([...held.values()])
    yield* run("leave", `DELETE FROM ${names.node} WHERE owner = ${me}`)
  })

  const leases: BucketLeases = { held: () => [...held.values()], round, leave }
  return leases
})
