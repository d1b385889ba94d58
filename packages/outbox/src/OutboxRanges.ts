/**
 * The range of every setting of the outbox that is a number, once (ruling 84). Durations are in milliseconds. `InvalidOutboxConfig` names the setting, what was found
 * and the range.
 */
import { Ranges } from "@eventbus/core"

const whole = (minimum: number, maximum: number): Ranges.Range => ({ minimum, maximum, kind: "whole" })

const tenYears = 315_360_000_000

/** Every database can subtract it from its present time. */
const time = (minimum: number): Ranges.Range => ({ minimum, maximum: tenYears, kind: "duration" })

/** Settings of `OutboxDispatcher`. */
export const dispatcher = {
  maxAttempts: whole(1, 1_000_000),
  workerCount: whole(1, 10_000),
  hotQueueCapacity: whole(1, 1_000_000),
  coldQueueCapacity: whole(1, 1_000_000),
  drainTimeout: time(1),
  listenerTimeout: time(1)
} as const

/** Settings of `OutboxPoller`. `maxBatchSize` is never below `batchSize`. */
export const poller = {
  batchSize: whole(1, 100_000),
  maxBatchSize: whole(1, 100_000),
  interval: time(1),
  skipRecent: time(0)
} as const

/** Settings of `OrderedRelay`. */
export const relay = {
  workerCount: whole(1, 10_000),
  maxAttempts: whole(1, 1_000_000),
  batchSize: whole(1, 10_000),
  maxInMemory: whole(1, 1_000_000),
  pipelining: whole(1, 10_000),
  interval: time(1),
  drainTimeout: time(1),
  listenerTimeout: time(1)
} as const

/** How long a claim of rows, or a lease of buckets, lasts without renewal. */
export const claims = { lockTimeout: time(1), lease: time(1) } as const

/** Settings of `PurgeScheduler`, of `Inbox.purge`, and of `SqlIdempotencyStore`. */
export const purge = {
  retention: time(1),
  batchSize: whole(1, 100_000),
  interval: time(1),
  batchTimeout: time(1),
  purgeInterval: time(1),
  limit: whole(0, 2_147_483_647)
} as const

/** Arguments of `DeadEventManager`. */
export const deadEvents = { limit: whole(0, 2_147_483_647), batchSize: whole(1, 100_000) } as const

/** Arguments of `DeadEventOperator`. */
export const deadEventOperator = {
  limit: whole(1, 500),
  statementTimeout: time(1),
  rate: Ranges.run.rate,
  canary: Ranges.run.canary,
  canaryWait: Ranges.run.canaryWait,
  stopAbove: Ranges.run.stopAbove
} as const

/** Settings of `OutboxHealth`, of `InFlightTracker`, and of the drivers. */
export const others = {
  maxAge: time(0),
  ttl: time(0),
  busyTimeout: { minimum: 0, maximum: 2_147_483_647, kind: "duration" } as Ranges.Range,
  statementCacheSize: whole(1, 2_147_483_647),
  connectTimeout: { minimum: 1, maximum: 2_147_483_647, kind: "duration" } as Ranges.Range,
  maxConnections: whole(1, 2_147_483_647)
} as const

/** Arguments of `EventRetryPolicy`. */
export const retryPolicy: Ranges.Range = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, kind: "duration" }
