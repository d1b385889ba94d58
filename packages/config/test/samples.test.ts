import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handler, Handlers } from "@eventbus/config"
import { type Binding, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { load } from "js-yaml"

const sample = (name: string) => new URL(`../../examples/config/${name}`, import.meta.url).pathname

const tier = (n: number, delayMs: number) => ({
  delayMs,
  multiplier: 1,
  maxAttempts: 3,
  topicSuffix: `retry-${n}`,
  concurrency: 1
})

type Definition = Binding.Binding<unknown>["definition"]

/** Each value of the full sample as connector seed appendix writes it, and where the binding has it. */
const ofOrders: ReadonlyArray<readonly [path: string, value: unknown, of: (definition: Definition) => unknown]> = [
  ["topic", "orders.events", ({ topic }) => topic],
  ["group-id", "order-processing-group", ({ groupId }) => groupId],
  ["listener-type", "BATCH", ({ listenerType }) => listenerType],
  ["ack-mode", "MANUAL_IMMEDIATE", ({ ackMode }) => ackMode],
  ["concurrency", 3, ({ concurrency }) => concurrency],
  ["max-poll-records", 200, ({ maxPollRecords }) => maxPollRecords],
  ["max-poll-interval-ms", 600_000, ({ maxPollIntervalMillis }) => maxPollIntervalMillis],
  ["session-timeout-ms", 45_000, ({ sessionTimeoutMillis }) => sessionTimeoutMillis],
  ["heartbeat-interval-ms", 10_000, ({ heartbeatIntervalMillis }) => heartbeatIntervalMillis],
  ["auto-startup", true, ({ autoStartup }) => autoStartup],
  ["static-membership", true, ({ staticMembership }) => staticMembership],
  ["batch-failure-strategy", "SEEK_TO_FAILED", ({ batchFailureStrategy }) => batchFailureStrategy],
  ["ordering-mode", "RELAXED_IN_RETRY", ({ orderingMode }) => orderingMode],
  ["retry.tier0.max-attempts", 3, ({ retry }) => retry.blocking.maxAttempts],
  ["retry.tier0.initial-backoff-ms", 100, ({ retry }) => retry.blocking.initialBackoffMillis],
  ["retry.tier0.multiplier", 2, ({ retry }) => retry.blocking.multiplier],
  ["retry.tier0.max-backoff-ms", 2_000, ({ retry }) => retry.blocking.maxBackoffMillis],
  ...[10_000, 60_000, 300_000].flatMap((delay, index) => {
    const path = `retry.tiers.${index}`
    return [
      [`${path}.delay-ms`, delay, ({ tiers }: Definition) => tiers.topicOf(index + 1).longestMillis],
      [`${path}.max-attempts`, 3, ({ tiers }: Definition) => tiers.deliveries(index + 1)],
      [
        `${path}.topic-suffix`,
        `retry-${index + 1}`,
        ({ tiers, topic }: Definition) => tiers.topicOf(index + 1).topic.replace(`${topic}.`, "")
      ],
      [`${path}.concurrency`, 1, ({ tiers }: Definition) => tiers.topicOf(index + 1).concurrency]
    ] as const
  }),
  ...[
    "java.net.SocketTimeoutException",
    "org.springframework.dao.OptimisticLockingFailureException",
    "org.springframework.dao.TransientDataAccessException"
  ].map(
    (name, index) =>
      [
        `retry.retryable-exceptions.${index}`,
        name,
        ({ retry }: Definition) => retry.retryableExceptions?.[index]
      ] as const
  ),
  ...["com.enterprise.schema.SchemaValidationException", "com.enterprise.domain.BusinessRuleViolationException"].map(
    (name, index) =>
      [
        `retry.non-retryable-exceptions.${index}`,
        name,
        ({ retry }: Definition) => retry.nonRetryableExceptions?.[index]
      ] as const
  ),
  [
    "retry.skip-to-tier-mapping.javax.ws.rs.ServiceUnavailableException",
    2,
    ({ retry }) =>
      retry.skipToTierMapping instanceof Map
        ? retry.skipToTierMapping.get("javax.ws.rs.ServiceUnavailableException")
        : undefined
  ],
  ["circuit-breaker.enabled", true, ({ circuitBreaker }) => circuitBreaker !== undefined],
  ["circuit-breaker.failure-rate-threshold", 50, ({ circuitBreaker }) => circuitBreaker?.failureRateThreshold],
  ["circuit-breaker.slow-call-rate-threshold", 80, ({ circuitBreaker }) => circuitBreaker?.slowCallRateThreshold],
  ["circuit-breaker.slow-call-duration-ms", 5_000, ({ circuitBreaker }) => circuitBreaker?.slowCallDuration],
  [
    "circuit-breaker.wait-duration-in-open-state-ms",
    60_000,
    ({ circuitBreaker }) => circuitBreaker?.waitDurationInOpenState
  ],
  ["circuit-breaker.sliding-window-size", 100, ({ circuitBreaker }) => circuitBreaker?.slidingWindowSize],
  ["circuit-breaker.minimum-number-of-calls", 10, ({ circuitBreaker }) => circuitBreaker?.minimumNumberOfCalls],
  [
    "circuit-breaker.permitted-number-of-calls-in-half-open-state",
    5,
    ({ circuitBreaker }) => circuitBreaker?.permittedNumberOfCallsInHalfOpenState
  ],
  ["circuit-breaker.automatic-pause-on-open", true, ({ circuitBreaker }) => circuitBreaker?.automaticPauseOnOpen],
  ["dlt.topic-suffix", "DLT", ({ deadLetterTopic, topic }) => deadLetterTopic.replace(`${topic}.`, "")],
  ["dlt.strategy", "ALERT_AND_STORE", ({ deadLetter }) => strategies[deadLetter._tag]]
]

const ofPayments: typeof ofOrders = [
  ["topic", "payments.events", ({ topic }) => topic],
  ["group-id", "payment-processing-group", ({ groupId }) => groupId],
  ["listener-type", "SINGLE", ({ listenerType }) => listenerType],
  ["ack-mode", "MANUAL_IMMEDIATE", ({ ackMode }) => ackMode],
  ["concurrency", 2, ({ concurrency }) => concurrency],
  ["ordering-mode", "STRICT", ({ orderingMode }) => orderingMode],
  ["retry.tier0.max-attempts", 5, ({ retry }) => retry.blocking.maxAttempts],
  ["retry.tier0.initial-backoff-ms", 200, ({ retry }) => retry.blocking.initialBackoffMillis],
  ["retry.tier0.multiplier", 2, ({ retry }) => retry.blocking.multiplier],
  ["circuit-breaker.enabled", true, ({ circuitBreaker }) => circuitBreaker !== undefined],
  ["circuit-breaker.failure-rate-threshold", 30, ({ circuitBreaker }) => circuitBreaker?.failureRateThreshold],
  ["circuit-breaker.automatic-pause-on-open", true, ({ circuitBreaker }) => circuitBreaker?.automaticPauseOnOpen],
  ["dlt.strategy", "STORE_ONLY", ({ deadLetter }) => strategies[deadLetter._tag]]
]

/** Limits of replays: the settings hold them for the strategy SCHEDULED_REPLAY, and a binding with another strategy has no use for them. */
const replayLimits = [
  ["dlt.replay.max-replays", 3],
  ["dlt.replay.cooldown-ms", 3_600_000],
  ["dlt.replay.batch-size", 100]
] as const

const strategies = {
  StoreOnly: "STORE_ONLY",
  AlertAndStore: "ALERT_AND_STORE",
  ScheduledReplay: "SCHEDULED_REPLAY",
  Custom: "CUSTOM"
} as const

/** Every value of a YAML tree with its path. */
const valuesOf = (tree: unknown, path = ""): ReadonlyArray<readonly [string, unknown]> =>
  typeof tree === "object" && tree !== null
    ? Object.entries(tree).flatMap(([key, value]) => valuesOf(value, path === "" ? key : `${path}.${key}`))
    : [[path, tree]]

const byPath = (values: ReadonlyArray<readonly [string, unknown, ...ReadonlyArray<unknown>]>) =>
  Object.fromEntries(values.map(([path, value]) => [path, value]))

describe("the samples of connector seed appendix", () => {
  it.effect("CFG-08 the full sample is that of the seed, and every value of it is in the resulting binding", () =>
    Effect.gen(function* () {
      const file = readFileSync(sample("application.yml"), "utf8")
      const { eventbus } = load(file) as { readonly eventbus: { readonly bindings: Readonly<Record<string, unknown>> } }
      assert.deepStrictEqual(Object.keys(eventbus.bindings), ["orders", "payments"])
      assert.deepStrictEqual(byPath(valuesOf(eventbus.bindings["orders"])), byPath([...ofOrders, ...replayLimits]))
      assert.deepStrictEqual(byPath(valuesOf(eventbus.bindings["payments"])), byPath(ofPayments))

      const configuration = yield* Configuration.load(sample("application.yml"), { env: {} })
      const handlers = Handlers.make({
        orders: Handler.make({ value: Serde.bytes, handler: () => Effect.void, onDeadLetter: () => Effect.void }),
        payments: () => Effect.void
      })
      const [orders, payments] = yield* Configuration.bindings(configuration, handlers)
      for (const [binding, values] of [
        [orders, ofOrders],
        [payments, ofPayments]
      ] as const) {
        const found = values.map(([path, , of]) => [path, of(binding!.definition)] as const)
        assert.deepStrictEqual(byPath(found), byPath(values))
      }
      assert.deepStrictEqual(payments!.definition.tiers.topics, [])
      const { maxReplays, cooldownMs, batchSize } = configuration.bindings[0]!.deadLetter.replay
      assert.deepStrictEqual(
        [maxReplays, cooldownMs, batchSize],
        replayLimits.map(([, value]) => value)
      )
    })
  )

  it.effect("CFG-01, CFG-04, CFG-05 the settings of the full sample are complete", () =>
    Effect.gen(function* () {
      const { bindings, clusters } = yield* Configuration.load(sample("application.yml"), { env: {} })
      assert.deepStrictEqual(clusters, [])
      assert.deepStrictEqual(
        bindings.map(({ name }) => name),
        ["orders", "payments"]
      )
      const [orders, payments] = bindings
      assert.deepInclude(orders, {
        topic: "orders.events",
        groupId: "order-processing-group",
        listenerType: "BATCH",
        ackMode: "MANUAL_IMMEDIATE",
        concurrency: 3,
        maxPollRecords: 200,
        maxPollIntervalMs: 600_000,
        sessionTimeoutMs: 45_000,
        heartbeatIntervalMs: 10_000,
        autoStartup: true,
        staticMembership: true,
        batchFailureStrategy: "SEEK_TO_FAILED",
        orderingMode: "RELAXED_IN_RETRY"
      })
      assert.deepInclude(orders!.retry, {
        blocking: { maxAttempts: 3, initialBackoffMs: 100, multiplier: 2, maxBackoffMs: 2000, jitter: 0.2 },
        tiers: [tier(1, 10_000), tier(2, 60_000), tier(3, 300_000)],
        retryableExceptions: [
          "java.net.SocketTimeoutException",
          "org.springframework.dao.OptimisticLockingFailureException",
          "org.springframework.dao.TransientDataAccessException"
        ],
        nonRetryableExceptions: [
          "com.enterprise.schema.SchemaValidationException",
          "com.enterprise.domain.BusinessRuleViolationException"
        ],
        skipToTierMapping: { "javax.ws.rs.ServiceUnavailableException": 2 }
      })
      assert.deepInclude(orders!.circuitBreaker, {
        enabled: true,
        failureRateThreshold: 50,
        slowCallRateThreshold: 80,
        slowCallDurationMs: 5_000,
        waitDurationInOpenStateMs: 60_000,
        slidingWindowSize: 100,
        minimumNumberOfCalls: 10,
        permittedNumberOfCallsInHalfOpenState: 5,
        automaticPauseOnOpen: true
      })
      assert.deepInclude(orders!.deadLetter, {
        topicSuffix: "DLT",
        strategy: "ALERT_AND_STORE",
        replay: { maxReplays: 3, cooldownMs: 3_600_000, batchSize: 100, origins: [] }
      })
      assert.deepInclude(payments, {
        topic: "payments.events",
        groupId: "payment-processing-group",
        listenerType: "SINGLE",
        concurrency: 2,
        orderingMode: "STRICT"
      })
      assert.deepInclude(payments!.retry.blocking, { maxAttempts: 5, initialBackoffMs: 200, multiplier: 2 })
      assert.deepInclude(payments!.circuitBreaker, { enabled: true, failureRateThreshold: 30 })
      assert.strictEqual(payments!.deadLetter.strategy, "STORE_ONLY")
    })
  )

  it.effect("CFG-19 STRICT without tier settings gets no default tiers", () =>
    Effect.gen(function* () {
      const { bindings } = yield* Configuration.load(sample("application.yml"), { env: {} })
      assert.deepStrictEqual(bindings[1]!.retry.tiers, [])
    })
  )

  it.effect("CFG-03, CFG-05, CFG-07, RTY-20 the minimal sample means the defaults", () =>
    Effect.gen(function* () {
      const { bindings } = yield* Configuration.load(sample("minimal.yml"), { env: {} })
      const [notifications] = bindings
      assert.deepInclude(notifications, {
        name: "notifications",
        handler: "notifications",
        topic: "notification.events",
        groupId: "notification-group",
        listenerType: "SINGLE",
        ackMode: "MANUAL_IMMEDIATE",
        concurrency: 1,
        maxPollRecords: 50,
        maxPollIntervalMs: 600_000,
        sessionTimeoutMs: 45_000,
        heartbeatIntervalMs: 10_000,
        autoStartup: true,
        staticMembership: false,
        cluster: "default",
        batchFailureStrategy: "SEEK_TO_FAILED",
        orderingMode: "RELAXED_IN_RETRY"
      })
      assert.deepStrictEqual(
        notifications!.retry.tiers.map(({ delayMs, maxAttempts, concurrency }) => [delayMs, maxAttempts, concurrency]),
        [
          [10_000, 3, 1],
          [60_000, 3, 1],
          [300_000, 3, 1]
        ]
      )
      assert.isFalse(notifications!.circuitBreaker.enabled)
      assert.strictEqual(notifications!.deadLetter.strategy, "STORE_ONLY")
      const definition = Configuration.withoutHandlers({ clusters: [], bindings })[0]!.definition
      assert.strictEqual(definition.deadLetterTopic, "notification.events.DLT")
      assert.deepStrictEqual(
        definition.tiers.topics.map(({ topic }) => topic),
        [1, 2, 3].map((n) => `notification.events.retry-${n}`)
      )
      assert.isUndefined(definition.circuitBreaker)
    })
  )

  it.effect("CFG-24 a loaded configuration cannot be changed", () =>
    Effect.gen(function* () {
      const configuration = yield* Configuration.load(sample("application.yml"), { env: {} })
      const orders = configuration.bindings[0]! as unknown as { concurrency: number; retry: { tiers: Array<unknown> } }
      assert.throws(() => {
        orders.concurrency = 7
      }, TypeError)
      assert.throws(() => orders.retry.tiers.pop(), TypeError)
      assert.throws(() => (configuration.bindings as Array<unknown>).pop(), TypeError)
    })
  )
})
