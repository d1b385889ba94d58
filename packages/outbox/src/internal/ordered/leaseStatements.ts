/** The SQL of bucket leases and of the nodes that share them. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { bucketCount } from "../base/bucketOf.ts"
import { failed, parameters, pending, storeError } from "../store/context.ts"
import type { StoreShape } from "../store/contract.ts"

type Row = Record<string, unknown>

/** A bucket and its epoch, as stored. */
export interface LeasedBucket {
  readonly bucket: number
  readonly epoch: number
}

/** The most rows of one locking statement. */
const lockBatch = 500

/** The input of all statements of one node. */
interface LeaseContext {
  readonly sql: SqlClient.SqlClient
  readonly store: Pick<StoreShape, "dialect" | "names">
  /** The node's unique name. */
  readonly owner: string
  readonly leaseMillis: number
}

/** Runs statements whose only parameter, if they have one, is this node's name. */
const makeRunner = ({ sql, store, owner }: LeaseContext) => {
  const me = store.dialect.param(1)
  const run = (operation: string, text: string) =>
    Effect.catch(sql.unsafe<Row>(text, text.includes(me) ? [owner] : []).withoutTransform, failed(sql, operation))
  const leasedBuckets = (operation: string, text: string) =>
    Effect.map(run(operation, text), (rows) =>
      rows.map((row): LeasedBucket => ({ bucket: Number(row.bucket), epoch: Number(row.epoch) }))
    )
  return { me, run, leasedBuckets }
}

const inList = (buckets: Iterable<number>) => `bucket IN (${[...buckets].join(", ")})`

/** The statements about the nodes that share the buckets. */
const makeNodeStatements = (context: LeaseContext) => {
  const { dialect, names } = context.store
  const { me, run } = makeRunner(context)
  const until = dialect.plusMillis(dialect.now, String(context.leaseMillis))
  const longDead = dialect.minusMillis(dialect.now, String(10 * context.leaseMillis))
  const upsert =
    dialect.name === "mysql"
      ? "ON DUPLICATE KEY UPDATE expires_at = VALUES(expires_at)"
      : "ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at"
  return {
    /** Says that this node is alive, for the length of a lease. */
    announceNode: run(
      "announce node",
      `INSERT INTO ${names.node} (owner, expires_at) VALUES (${me}, ${until}) ${upsert}`
    ),
    /** The names of all live nodes, in order. */
    liveNodes: Effect.map(
      run("list nodes", `SELECT owner FROM ${names.node} WHERE expires_at > ${dialect.now} ORDER BY owner`),
      (rows) => rows.map((row) => String(row.owner))
    ),
    /** Deletes nodes that have been dead for ten leases. */
    deleteDeadNodes: run("delete dead nodes", `DELETE FROM ${names.node} WHERE expires_at <= ${longDead}`),
    deleteThisNode: run("delete node", `DELETE FROM ${names.node} WHERE owner = ${me}`)
  }
}

/** The statements about buckets. */
const makeBucketStatements = (context: LeaseContext) => {
  const { sql, store, leaseMillis } = context
  const { dialect, names } = store
  const { me, run, leasedBuckets } = makeRunner(context)
  const until = dialect.plusMillis(dialect.now, String(leaseMillis))
  const isFree = `(owner IS NULL OR expires_at <= ${dialect.now})`
  const [insert, ignore] = dialect.name === "mysql" ? ["INSERT IGNORE", ""] : ["INSERT", " ON CONFLICT DO NOTHING"]
  const rows = Array.from({ length: bucketCount }, (_, bucket) => `(${bucket}, 0)`).join(", ")

  const acquireInTransaction = (count: number) =>
    Effect.gen(function* () {
      const choose = `SELECT bucket FROM ${names.bucket} WHERE ${isFree} ORDER BY bucket LIMIT ${count} ${dialect.skipLocked}`
      const chosen = (yield* run("find free buckets", choose)).map((row) => Number(row.bucket))
      if (chosen.length === 0) return []
      const set = `owner = ${me}, epoch = epoch + 1, expires_at = ${until}`
      yield* run("acquire buckets", `UPDATE ${names.bucket} SET ${set} WHERE ${inList(chosen)}`)
      return yield* leasedBuckets(
        "acquire buckets",
        `SELECT bucket, epoch FROM ${names.bucket} WHERE ${inList(chosen)}`
      )
    })

  const release = (buckets: Iterable<number>) =>
    run(
      "release buckets",
      `UPDATE ${names.bucket} SET owner = NULL, expires_at = NULL WHERE owner = ${me} AND ${inList(buckets)}`
    )

  const lockRows = (eventIds: ReadonlyArray<string>) => {
    const chunks = Array.from({ length: Math.ceil(eventIds.length / lockBatch) }, (_, i) =>
      eventIds.slice(i * lockBatch, (i + 1) * lockBatch)
    )
    return Effect.forEach(
      chunks,
      (chunk) => {
        const p = parameters(dialect)
        const set = `locked_by = ${p.bind(context.owner)}, locked_at = ${dialect.now}`
        const text = `UPDATE ${names.table} SET ${set} WHERE ${p.oneOf("event_id", chunk)} AND ${pending}`
        return Effect.catch(sql.unsafe(text, p.values).raw, failed(sql, "lock events in flight"))
      },
      { discard: true }
    )
  }

  return {
    /** Inserts the rows of all buckets that are not there yet. */
    createBuckets: run("create buckets", `${insert} INTO ${names.bucket} (bucket, epoch) VALUES ${rows}${ignore}`),
    /** Renews leases; returns the buckets that this node still holds. */
    renew: (buckets: Iterable<number>) => {
      const mine = `owner = ${me} AND ${inList(buckets)}`
      return Effect.andThen(
        run("renew buckets", `UPDATE ${names.bucket} SET expires_at = ${until} WHERE ${mine}`),
        leasedBuckets("renew buckets", `SELECT bucket, epoch FROM ${names.bucket} WHERE ${mine}`)
      )
    },
    release,
    /**
     * Releases buckets while events of them are in flight: in one transaction it locks the rows of those events under this node's name.
     * The next owner passes over their aggregates until the rows are marked, or until the locks are older than a lease.
     */
    handOver: (buckets: ReadonlyArray<number>, eventIds: ReadonlyArray<string>) =>
      Effect.mapError(sql.withTransaction(Effect.andThen(lockRows(eventIds), release(buckets))), (cause) =>
        cause._tag === "OutboxStoreError" ? cause : storeError("hand buckets over")(cause)
      ),
    /** Takes at most `count` free or expired buckets in a transaction of its own; returns them with their new epochs. */
    acquire: (count: number) =>
      Effect.mapError(sql.withTransaction(acquireInTransaction(count)), (cause) =>
        cause._tag === "OutboxStoreError" ? cause : storeError("acquire buckets")(cause)
      ),
    /** Milliseconds until the next lease of another node expires; undefined when no other node holds a bucket. */
    nextExpiry: Effect.map(
      run(
        "find next expiry",
        `SELECT MIN(${dialect.micros("expires_at")}) - ${dialect.micros(dialect.now)} AS ahead FROM ${names.bucket} WHERE owner <> ${me}`
      ),
      ([row]) => (row?.ahead === null || row?.ahead === undefined ? undefined : Math.max(0, Number(row.ahead) / 1000))
    )
  }
}

/** All statements of one node. */
export const makeLeaseStatements = (context: LeaseContext) => ({
  ...makeNodeStatements(context),
  ...makeBucketStatements(context)
})

export type LeaseStatements = ReturnType<typeof makeLeaseStatements>
