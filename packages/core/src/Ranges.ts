/**
 * The range of every setting that is a number, once (ruling 84). Code (`Binding.make`, `RetryPolicy`, `CircuitBreaker`, `DeadLetter`, the Kafka adapter) and files
 * (`@eventbus/config`) both read them here, so that both refuse the same numbers. Durations are in milliseconds, sizes in bytes.
 *
 * Kafka's protocol has 32 bits for milliseconds, counts and sizes. Waits that the connector does by itself may be longer.
 */
import { type ConfigurationIssue, ConfigurationValidation } from "./EventBusError.ts"
import { toMillis } from "./internal/base/durations.ts"
import { isObject, read } from "./internal/base/properties.ts"
import { shown } from "./internal/base/shown.ts"

/** The milliseconds of a duration in any of its forms. NaN for what is no duration, NaN and `{}` included, and beyond 2^53 - 1. */
export { toMillis as millisOf } from "./internal/base/durations.ts"

/** The numbers that a setting may have. */
export interface Range {
  /** The smallest number that is allowed. */
  readonly minimum: number
  /** The largest number that is allowed. */
  readonly maximum: number
  /** `whole`: a whole number. `duration`: a duration of whole milliseconds. `decimal`: a number that may have a fraction. */
  readonly kind: "whole" | "duration" | "decimal"
  /** True when the minimum itself is refused. */
  readonly above?: boolean
}

const int32 = 2_147_483_647

const whole = (minimum: number, maximum = int32): Range => ({ minimum, maximum, kind: "whole" })

/** A duration that goes to the broker, or to a timer of the process. */
const wire = (minimum: number): Range => ({ minimum, maximum: int32, kind: "duration" })

/** A duration that only the connector waits. */
const wait = (minimum: number): Range => ({ minimum, maximum: Number.MAX_SAFE_INTEGER, kind: "duration" })

const factor: Range = { minimum: 1, maximum: Number.MAX_VALUE, kind: "decimal" }
const percent: Range = { minimum: 0, maximum: 100, kind: "decimal", above: true }
const calls = whole(1, 1_000_000)

/** Settings of a binding, which `BindingOptions.Settings` explains. */
export const binding = {
  commitInterval: wire(0),
  concurrency: whole(1),
  maxPollRecords: whole(1),
  maxPollInterval: wait(1),
  sessionTimeout: wire(1_000),
  heartbeatInterval: wire(100),
  rebalanceTimeout: wire(1),
  fetchMaxWait: wire(0),
  maxPartitionFetchBytes: whole(1),
  maxInFlight: whole(1),
  maxBufferedRecords: whole(1),
  maxBufferedBytes: whole(1, Number.MAX_SAFE_INTEGER),
  shutdownTimeout: wire(0)
} as const

/** Settings of the order per key, which `BindingOptions.PerKey` explains. */
export const perKey = {
  holdFor: wait(1),
  maxParkedKeys: whole(1),
  maxParkedBytes: whole(1, Number.MAX_SAFE_INTEGER)
} as const

/** Settings of the retry policy, which `RetryPolicy` explains. */
export const retry = {
  /** Attempts in place. */
  blocking: {
    maxAttempts: whole(1),
    initialBackoff: wait(0),
    multiplier: factor,
    maxBackoff: wait(0),
    jitter: { minimum: 0, maximum: 1, kind: "decimal" } as Range
  },
  /** One retry tier. */
  tier: { delay: wait(0), multiplier: factor, maxDelay: wait(0), maxAttempts: whole(1), concurrency: whole(1) },
  maxElapsedTime: wait(1),
  partitions: whole(1),
  /** Kafka's protocol has 16 bits for it. */
  replicationFactor: whole(1, 32_767)
} as const

/** Settings of the circuit breaker, which `CircuitBreaker.Options` explains. */
export const circuitBreaker = {
  failureRateThreshold: percent,
  slowCallRateThreshold: percent,
  slowCallDuration: wait(0),
  waitDurationInOpenState: wait(1),
  slidingWindowSize: calls,
  minimumNumberOfCalls: calls,
  permittedNumberOfCallsInHalfOpenState: calls,
  openBackoff: { multiplier: factor, maxWaitDuration: wait(1) },
  probeTimeout: wire(1),
  giveUpAfter: wait(1)
} as const

/** Settings of dead letters, which `DeadLetter` explains. */
export const deadLetter = {
  alertTimeout: wire(1),
  cooldown: wait(0),
  maxReplays: whole(0),
  batchSize: whole(1)
} as const

/** Settings of a run over dead letters, which `ReplayPlan.PlanRequest` explains. */
export const run = {
  rate: whole(1, 100_000),
  canary: whole(0, 1_000_000),
  canaryWait: wire(0),
  stopAbove: { minimum: 0, maximum: 100, kind: "decimal" } as Range
} as const

/** Settings of idempotency, which `IdempotencyStore.Options` explains. */
export const idempotency = { lease: wait(1_000), retention: wait(1) } as const

/** Settings of the connection to a cluster, which `KafkaJs.Options` explains. */
export const cluster = {
  connectionTimeout: wire(100),
  requestTimeout: wire(100),
  retries: whole(0),
  metadataMaxAge: wire(1)
} as const

/** Settings of the connector itself, in milliseconds. */
export const connector = { lagPollInterval: wire(1) } as const

/** Settings of a fleet, which `Fleet.Settings` explains. */
export const fleet = { controlTimeout: wire(1) } as const

/** Settings of the audit log, which `Audit.Settings` explains. */
export const audit = { timeout: wire(1) } as const

/** Settings of a command to a fleet, which `FleetView.CommandRequest` explains. */
export const fleetCommand = {
  expiresAfter: { minimum: 1, maximum: 604_800_000, kind: "duration" } as Range,
  wait: wire(0)
} as const

/** Settings of stores and clients outside of Kafka: Redis, a schema registry, exporters, `IdempotencyStore.layerMemory`. */
export const clients = {
  port: whole(1, 65_535),
  database: whole(0),
  connectTimeout: wire(1),
  requestTimeout: wire(1),
  metricsInterval: wire(1),
  shutdownTimeout: wire(0),
  capacity: whole(1)
} as const

/** Settings of a reader of the port, which `Broker.FetchOptions` explains. */
export const reader = {
  maxPartitionFetchBytes: whole(1),
  maxRecordBytes: whole(1, Number.MAX_SAFE_INTEGER)
} as const

/** Settings of a session of the port, which `Broker.ConsumerOptions` explains. A binding's own ranges are narrower. */
export const consumer = {
  ...reader,
  sessionTimeout: wire(1),
  rebalanceTimeout: wire(1),
  heartbeatInterval: wire(1),
  fetchMaxWait: wire(0)
} as const

/** Settings of a producer, which `Broker.ProducerOptions` explains. */
export const producer = {
  linger: wire(0),
  maxBatchRecords: whole(1),
  maxBatchBytes: whole(1),
  deliveryTimeout: wire(1),
  closeTimeout: wire(0),
  transactionTimeout: wire(1)
} as const

/** The range in words: "a whole number, 1 to 2147483647". `example` is what a duration may look like. */
export const inWords = ({ minimum, maximum, kind, above }: Range, example = '"10 seconds"'): string => {
  if (kind === "duration") {
    return `a duration such as ${example}, or a whole number of ms, ${minimum} ms to ${maximum} ms`
  }
  if (above === true) return `a number above ${minimum}, at most ${maximum}`
  const name = kind === "whole" ? "a whole number" : "a finite number"
  return maximum === Number.MAX_VALUE ? `${name}, ${minimum} or more` : `${name}, ${minimum} to ${maximum}`
}

/** Whether the number lies in the range; milliseconds for a duration. */
export const contains = ({ minimum, maximum, kind, above }: Range, value: unknown): boolean =>
  (kind === "decimal" ? Number.isFinite(value) : Number.isSafeInteger(value)) &&
  (value as number) >= minimum &&
  (value as number) <= maximum &&
  !(above === true && value === minimum)

/** The problem of a setting as a user wrote it, a duration in any of its forms. Empty when it is allowed, or absent (undefined). */
export const problems = (path: string, found: unknown, range: Range): ReadonlyArray<ConfigurationIssue> =>
  found === undefined || contains(range, range.kind === "duration" ? toMillis(found) : found)
    ? []
    : [{ path, found: shown(found), allowed: inWords(range) }]

/** The problems of a value at a path; empty when it is allowed. `Kinds` has those of values that are no numbers. */
export type Kind = (path: string, found: unknown) => ReadonlyArray<ConfigurationIssue>

/**
 * The problems of settings as a user wrote them, by their names: for all ranges and kinds that stand in the table itself. An absent (undefined) setting has none. `prefix`
 * stands before each path. Never throws, whatever it is given.
 */
export const problemsOfAll = (
  given: unknown,
  table: Readonly<Record<string, unknown>>,
  prefix = ""
): ReadonlyArray<ConfigurationIssue> => {
  if (!isObject(given)) {
    return [{ path: prefix.slice(0, -1) || "options", found: shown(given), allowed: "an object of settings" }]
  }
  return Object.entries(table).flatMap(([name, entry]) => {
    const [path, found] = [`${prefix}${name}`, read(given, name)]
    if (found === undefined) return []
    return isRange(entry) ? problems(path, found, entry) : isKind(entry) ? entry(path, found) : []
  })
}

/** Throws `ConfigurationValidation` with the problems of the settings of this part, such as `LagPollInterval`. For settings that no binding owns. */
export const check = (part: string, given: unknown, table: Readonly<Record<string, unknown>>): void => {
  const issues = problemsOfAll(given, table, `${part}.`)
  if (issues.length > 0) throw new ConfigurationValidation({ issues })
}

const isRange = (value: unknown): value is Range => typeof value === "object" && value !== null && "kind" in value
const isKind = (value: unknown): value is Kind => typeof value === "function"
