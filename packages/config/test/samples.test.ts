import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Effect } from "effect"

const sample = (name: string) => new URL(`../../examples/config/${name}`, import.meta.url).pathname

const tier = (n: number, delayMs: number) => ({
  delayMs,
  maxAttempts: 3,
  topicSuffix: `retry-${n}`,
  concurrency: 1
})

describe("the samples of connector seed appendix", () => {
  it.effect("CFG-01, CFG-04, CFG-05, CFG-08 the full sample loads, and every value of it is found", () =>
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
        replay: { maxReplays: 3, cooldownMs: 3_600_000, batchSize: 100 }
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
