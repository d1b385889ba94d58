/**
 * The default of every setting of a binding, once. Code (`Binding.make`, `RetryPolicy`, `CircuitBreaker`, `DeadLetter`) and files (`@eventbus/config`) both read them
 * here. They are the seed's, where it names one (connector seed §4.1). Durations are in milliseconds, sizes in bytes.
 */

/** Settings of a binding, which `BindingOptions.Settings` explains. */
export const binding = {
  cluster: "default",
  listenerType: "SINGLE",
  batchFailureStrategy: "SEEK_TO_FAILED",
  ackMode: "MANUAL_IMMEDIATE",
  commitIntervalMillis: 200,
  concurrency: 1,
  /** By `listenerType`. */
  maxPollRecords: { SINGLE: 50, BATCH: 200 },
  maxPollIntervalMillis: 600_000,
  sessionTimeoutMillis: 45_000,
  heartbeatIntervalMillis: 10_000,
  rebalanceTimeoutMillis: 60_000,
  fetchMaxWaitMillis: 100,
  maxPartitionFetchBytes: 1_048_576,
  groupProtocol: "classic",
  staticMembership: false,
  partitionAssignmentStrategy: ["eventbus-cooperative-sticky"],
  autoOffsetReset: "earliest",
  isolationLevel: "read_committed",
  processingOrder: "partition",
  /** By `processingOrder`. Infinity: no limit beside one record per partition. */
  maxInFlight: { partition: Number.POSITIVE_INFINITY, key: 16, unordered: 16 },
  maxBufferedRecords: 50_000,
  maxBufferedBytes: 16_777_216,
  copyCompression: "source",
  orderingMode: "RELAXED_IN_RETRY",
  onExhausted: "dead-letter",
  missingTopics: "create",
  logKeys: false,
  shutdownTimeoutMillis: 30_000,
  autoStartup: true
} as const

/** Settings of the order per key, which `BindingOptions.PerKey` explains. */
export const perKey = {
  onDeadLetter: "continue",
  holdForMillis: 43_200_000,
  maxParkedKeys: 50_000,
  maxParkedBytes: 16_777_216
} as const

/** Settings of the retry policy, which `RetryPolicy` explains. */
export const retry = {
  /** Attempts in place of one delivery: tier 0 of the seed. */
  blocking: { maxAttempts: 3, initialBackoffMillis: 100, multiplier: 2, maxBackoffMillis: 2_000, jitter: 0.2 },
  /** One retry tier, beside its delay. */
  tier: { multiplier: 1, maxAttempts: 3, concurrency: 1 },
  /** Delays of the tiers of a binding that names none, by `orderingMode`. `STRICT` forbids tiers. */
  tierDelaysMillis: {
    RELAXED_IN_RETRY: [10_000, 60_000, 300_000],
    STRICT: [],
    PER_KEY: [10_000, 60_000, 300_000]
  },
  equalDelays: "refuse",
  consumer: "shared"
} as const

/** Settings of the circuit breaker, which `CircuitBreaker.Options` explains. A binding in code has a breaker only with the option `circuitBreaker`, one in a file with `enabled`. */
export const circuitBreaker = {
  enabled: false,
  failureRateThreshold: 50,
  slowCallRateThreshold: 80,
  slowCallDurationMillis: 5_000,
  waitDurationInOpenStateMillis: 60_000,
  slidingWindowSize: 100,
  slidingWindowType: "count",
  minimumNumberOfCalls: 10,
  permittedNumberOfCallsInHalfOpenState: 5,
  automaticPauseOnOpen: true,
  probeTimeoutMillis: 10_000
} as const

/** Settings of dead letters, which `DeadLetter` explains: the strategy, the time for one alert, and the limits of a replay. */
export const deadLetter = {
  strategy: "STORE_ONLY",
  alertTimeoutMillis: 30_000,
  cooldownMillis: 3_600_000,
  maxReplays: 3,
  batchSize: 100
} as const

/** Settings of a run over dead letters, which `ReplayPlan.PlanRequest` explains. */
export const run = { rate: 50, canary: 20, canaryWaitMillis: 60_000, stopAbove: 5 } as const

/** Settings of idempotency, which `IdempotencyStore.Options` explains. */
export const idempotency = { leaseMillis: 60_000, retentionMillis: 86_400_000 } as const

/** Settings of a fleet, which `Fleet.Settings` explains, and of its commands. */
export const fleet = {
  controlTopic: "__eventbus.control",
  fleetTopic: "__eventbus.fleet",
  onControlUnavailable: "run",
  controlTimeoutMillis: 10_000,
  expiresAfterMillis: 60_000,
  waitMillis: 10_000
} as const

/** Settings of the audit log, which `Audit.Settings` explains. */
export const audit = { topic: "__eventbus.audit", whenUnwritable: "refuse", timeoutMillis: 5_000 } as const
