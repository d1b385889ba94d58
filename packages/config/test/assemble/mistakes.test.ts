import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { EventBusError } from "@eventbus/core"
import { Effect } from "effect"
import { issuesOf, withOrders } from "../issues.ts"

const paths = (text: string) =>
  Effect.map(Effect.flip(Configuration.parse(text)), ({ issues }) => issues.map(({ path }) => path))

describe("mistakes (TST-06: configuration validation)", () => {
  it.effect(
    "CFG-20, CFG-21 ten mistakes of two bindings are reported at once, with path, location, found value and allowed values",
    () =>
      Effect.gen(function* () {
        const text = [
          "eventbus:",
          "  bindings:",
          "    orders:",
          "      group-id: billing",
          "      groupId: shipping",
          "      concurency: 3",
          '      max-poll-records: "50"',
          "      listener-type: single",
          "      session-timeout: 29999",
          "      retry:",
          "        tier0: { multiplier: .nan, max-attempts: 2.5 }",
          "        tiers: [soon]",
          "    payments:",
          "      topic: payments",
          "      group-id: payments",
          "      retry: { tiers: [5m, 1m] }"
        ].join("\n")
        const error = yield* Effect.flip(Configuration.parse(text, { file: "app.yaml" }))
        assert.instanceOf(error, EventBusError.ConfigurationValidation)
        assert.deepStrictEqual(
          error.issues.map(({ path, at }) => `${path} ${at?.line}:${at?.column}`),
          [
            "eventbus.bindings.orders.topic 4:7",
            "eventbus.bindings.orders.groupId 5:7",
            "eventbus.bindings.orders.concurency 6:7",
            "eventbus.bindings.orders.maxPollRecords 7:25",
            "eventbus.bindings.orders.listenerType 8:22",
            "eventbus.bindings.orders.sessionTimeoutMs 9:24",
            "eventbus.bindings.orders.retry.blocking.multiplier 11:30",
            "eventbus.bindings.orders.retry.blocking.maxAttempts 11:50",
            "eventbus.bindings.orders.retry.tiers[0] 12:17",
            "eventbus.bindings.payments.retry.tiers[1].delayMs 16:28"
          ]
        )
        assert.include(
          error.message,
          'eventbus.bindings.orders.maxPollRecords (app.yaml:7:25): found "50", allowed is a whole number, 1 to 2147483647, without quotes'
        )
        assert.include(
          error.message,
          "eventbus.bindings.orders.concurency (app.yaml:6:7): found an unknown key, allowed is concurrency (did you mean that?)"
        )
        assert.include(error.message, 'found "single", allowed is SINGLE or BATCH; did you mean SINGLE?')
      })
  )

  it.effect(
    "a key under a former name is refused with its location and the new name, in files, data and variables",
    () =>
      Effect.gen(function* () {
        const text = `
eventbus:
  bindings:
    orders:
      topic: orders
      groupId: billing
      max-wait: 1s
      maxBytesPerPartition: 5
      isolation: read_committed`
        const env = { EVENTBUS_BINDINGS_ORDERS_MAX_WAIT_MS: "5" }
        const error = yield* Effect.flip(Configuration.parse(text, { env, file: "app.yaml" }))
        const binding = "eventbus.bindings.orders"
        assert.deepStrictEqual(error.message.split("\n").slice(1), [
          `  ${binding}.max-wait (app.yaml:7:7): found a key that was renamed, allowed is fetchMaxWaitMs, its new name`,
          `  ${binding}.maxBytesPerPartition (app.yaml:8:7): found a key that was renamed, allowed is maxPartitionFetchBytes, its new name`,
          `  ${binding}.isolation (app.yaml:9:7): found a key that was renamed, allowed is isolationLevel, its new name`,
          "  EVENTBUS_BINDINGS_ORDERS_MAX_WAIT_MS (variable EVENTBUS_BINDINGS_ORDERS_MAX_WAIT_MS): found a variable whose key was renamed, allowed is EVENTBUS_BINDINGS_ORDERS_FETCH_MAX_WAIT_MS, its new name"
        ])
        const { issues } = yield* Effect.flip(
          Configuration.decodeBinding("orders", { topic: "o", groupId: "g", isolation: "read_committed" })
        )
        assert.strictEqual(issues[0]?.allowed, "isolationLevel, its new name")
      })
  )

  for (const brokers of [
    "localhost",
    "kafka-1:abc",
    "kafka-1:70000",
    "kafka-1:0",
    "kafka://kafka-1:9092",
    "a:1, b",
    " , "
  ]) {
    it.effect(`CFG-21 '${brokers}' is not a broker address, in a text or in a list`, () =>
      Effect.gen(function* () {
        for (const [value, at] of [
          [JSON.stringify(brokers), "brokers"],
          [`["ok:9092", ${JSON.stringify(brokers)}]`, "brokers[1]"]
        ]) {
          const { issues } = yield* Effect.flip(
            Configuration.parse(`${withOrders()}\n  clusters: { default: { brokers: ${value} } }`)
          )
          assert.deepStrictEqual(
            issues.map(({ path, allowed }) => [path, allowed.split(",")[0]]),
            [[`eventbus.clusters.default.${at}`, "host:port"]]
          )
        }
      })
    )
  }

  it.effect("brokers by name, by address and by IPv6 address, in a text and in a list", () =>
    Effect.gen(function* () {
      for (const value of [
        '"kafka-1.example:9092, 10.0.0.7:1,[::1]:65535"',
        '["kafka-1.example:9092", "10.0.0.7:1,[::1]:65535"]'
      ]) {
        const { clusters } = yield* Configuration.parse(
          `${withOrders()}\n  clusters: { default: { brokers: ${value} } }`
        )
        assert.deepStrictEqual(clusters[0]!.brokers, ["kafka-1.example:9092", "10.0.0.7:1", "[::1]:65535"])
      }
    })
  )

  it.effect("CFG-20 keys that contradict each other are reported together with wrong values", () =>
    Effect.gen(function* () {
      const lines = [
        "concurrency: 0",
        "session-timeout: 20s",
        "listener-type: BATCH",
        "processing-order: key",
        "retry:",
        "  tier0: { max-attempts: 1000 }",
        "  tiers: [{ delay: 5m, concurrency: 0 }, 1m]",
        "  retryable-exceptions: [Down]",
        "  non-retryable-exceptions: [Down]",
        "circuit-breaker: { enabled: yes please, sliding-window-size: 5 }"
      ]
      const orders = (key: string) => `eventbus.bindings.orders.${key}`
      assert.deepStrictEqual(yield* paths(withOrders(...lines)), [
        orders("concurrency"),
        orders("sessionTimeoutMs"),
        orders("processingOrder"),
        orders("retry.blocking"),
        orders("retry.tiers[0].concurrency"),
        orders("retry.tiers[1].delayMs"),
        orders("retry.retryableExceptions[0]"),
        orders("circuitBreaker.enabled")
      ])
    })
  )

  it.effect("CFG-20 a rule about a key that has a mistake reports nothing", () =>
    Effect.gen(function* () {
      const orders = (key: string) => `eventbus.bindings.orders.${key}`
      for (const [lines, wrong] of [
        [["session-timeout: 20s", "heartbeat-interval: soon"], "heartbeatIntervalMs"],
        [["max-poll-interval: soon", "retry: { tier0: { max-attempts: 1000 } }"], "maxPollIntervalMs"],
        [["retry: { tiers: [5m, soon, 1m] }"], "retry.tiers[1]"],
        [["retry: { tiers: [soon], skip-to-tier-mapping: { Down: 9 } }"], "retry.tiers[0]"],
        [["retry: { tiers: [1m, 1m], equal-delays: maybe }"], "retry.equalDelays"],
        [["ordering-mode: strict", "on-exhausted: halt"], "orderingMode"],
        [["listener-type: batch", "processing-order: key"], "listenerType"],
        [["ordering-mode: per-key", "per-key: { on-dead-letter: hold }"], "orderingMode"],
        [["ordering-mode: PER_KEY", "retry: { tiers: [soon] }"], "retry.tiers[0]"],
        [["ordering-mode: PER_KEY", "per-key: { hold-for: 0 }"], "perKey.holdForMs"],
        [
          ["retry: { retryable-exceptions: [Down], non-retryable-exceptions: [Down, 1] }"],
          "retry.nonRetryableExceptions[1]"
        ],
        [["dlt: { topic-suffix: retry-1, topic: a b }"], "deadLetter.topic"],
        [
          ["circuit-breaker: { enabled: true, sliding-window-size: 5, minimum-number-of-calls: no }"],
          "circuitBreaker.minimumNumberOfCalls"
        ]
      ] as const) {
        assert.deepStrictEqual(yield* paths(withOrders(...lines)), [orders(wrong)], lines.join("; "))
      }
    })
  )

  it.effect(
    "CFG-20 NAM-06 shared names are reported together with other mistakes, except for a binding whose own names are unknown",
    () =>
      Effect.gen(function* () {
        const beside = `${withOrders("concurrency: 0")}\n    copy: { topic: orders, group-id: audit }`
        assert.deepStrictEqual(yield* paths(beside), [
          "eventbus.bindings.orders.concurrency",
          "eventbus.bindings.copy.naming"
        ])
        const unknown = `${withOrders("naming: mine")}\n    copy: { topic: orders, group-id: audit }`
        assert.deepStrictEqual(yield* paths(unknown), ["eventbus.bindings.orders.naming"])
        const nameless = "eventbus: { bindings: { orders: { group-id: billing }, copy: { group-id: audit } } }"
        assert.deepStrictEqual(yield* paths(nameless), [
          "eventbus.bindings.orders.topic",
          "eventbus.bindings.copy.topic"
        ])
      })
  )

  it.effect("CFG-02 a missing topic and a missing group are named", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* paths("eventbus: { bindings: { orders: {} } }"), [
        "eventbus.bindings.orders.topic",
        "eventbus.bindings.orders.groupId"
      ])
    })
  )

  it.effect("CFG-06, CFG-14 an enumeration accepts exactly its texts", () =>
    Effect.gen(function* () {
      for (const line of [
        "ack-mode: RECORD",
        "ordering-mode: strict",
        "dlt: { strategy: STORE }",
        "listener-type: 1"
      ]) {
        assert.lengthOf(yield* paths(withOrders(line)), 1, line)
      }
      for (const strategy of ["STORE_ONLY", "ALERT_AND_STORE", "SCHEDULED_REPLAY", "CUSTOM"]) {
        const { bindings } = yield* Configuration.parse(withOrders(`dlt: { strategy: ${strategy} }`))
        assert.strictEqual(bindings[0]!.deadLetter.strategy, strategy)
      }
      const batch = yield* Configuration.parse(
        withOrders("listener-type: BATCH", "ack-mode: MANUAL", "batch-failure-strategy: DLQ_AND_CONTINUE")
      )
      assert.deepInclude(batch.bindings[0], {
        listenerType: "BATCH",
        ackMode: "MANUAL",
        batchFailureStrategy: "DLQ_AND_CONTINUE",
        maxPollRecords: 200
      })
    })
  )

  it.effect("CFG-10 the retry budget is exact and strict, and both sides are explained", () =>
    Effect.gen(function* () {
      // One wait of 7 ms x 10 records = 70 ms; 70 % of 100 ms is 70 ms.
      const settings = (wait: number) =>
        withOrders(
          "max-poll-records: 10",
          "max-poll-interval: 100",
          `retry: { tiers: [], tier0: { max-attempts: 2, initial-backoff: ${wait}, max-backoff: ${wait}, jitter: 0 } }`
        )
      const [issue] = yield* issuesOf(Configuration.parse(settings(7)))
      assert.include(issue!, "eventbus.bindings.orders.retry.blocking: '7 ms of waits x 10 maxPollRecords = 70 ms'")
      assert.include(issue!, "less than 70 % of maxPollInterval, which is 70 ms")
      yield* Configuration.parse(settings(6))
    })
  )

  it.effect("CFG-11 a session of three heartbeats passes, one millisecond less does not", () =>
    Effect.gen(function* () {
      yield* Configuration.parse(withOrders("session-timeout-ms: 30000", "heartbeat-interval-ms: 10000"))
      assert.deepStrictEqual(yield* paths(withOrders("session-timeout-ms: 29999", "heartbeat-interval-ms: 10000")), [
        "eventbus.bindings.orders.sessionTimeoutMs"
      ])
    })
  )

  it.effect("CFG-16 equal delays of tiers are refused", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* paths(withOrders("retry: { tiers: [1m, 60s] }")), [
        "eventbus.bindings.orders.retry.tiers[1].delayMs"
      ])
      yield* Configuration.parse(withOrders("retry: { tiers: [1m, 60s], equal-delays: share }"))
    })
  )

  it.effect("CFG-17 an error in both lists, and CFG-18 a tier that does not exist, are named", () =>
    Effect.gen(function* () {
      const text = withOrders(
        "retry:",
        "  retryable-exceptions: [java.net.SocketTimeoutException, Other]",
        "  non-retryable-exceptions: [SocketTimeoutException]",
        "  skip-to-tier-mapping: { Unavailable: 4, Fine: 3 }"
      )
      const issues = yield* issuesOf(Configuration.parse(text))
      assert.lengthOf(issues, 2)
      assert.include(issues[0]!, "retry.retryableExceptions[0]: java.net.SocketTimeoutException")
      assert.include(issues[1]!, "retry.skipToTierMapping.Unavailable: 4; a retry tier, 1 to 3")
    })
  )

  it.effect("CFG-19 STRICT with tiers is refused", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* paths(withOrders("ordering-mode: STRICT", "retry: { tiers: [1m] }")), [
        "eventbus.bindings.orders.retry"
      ])
    })
  )

  it.effect("NAM-06 bindings that would share a dead letter topic are refused, with both names", () =>
    Effect.gen(function* () {
      const text = `${withOrders()}\n    copy: { topic: orders, group-id: audit }`
      const issues = yield* issuesOf(Configuration.parse(text))
      assert.lengthOf(issues, 1)
      assert.include(issues[0]!, "eventbus.bindings.copy.naming")
      assert.include(issues[0]!, "binding 'orders'")
      yield* Configuration.parse(`${withOrders()}\n    copy: { topic: orders, group-id: audit, naming: perGroup }`)
    })
  )

  it.effect("a cluster that is not in the file is refused", () =>
    Effect.gen(function* () {
      const text = `${withOrders("cluster: west")}\n  clusters: { default: { brokers: a:9092 }, east: { brokers: b:9092 } }`
      assert.deepStrictEqual(yield* issuesOf(Configuration.parse(text)), [
        'eventbus.bindings.orders.cluster: "west"; one of the clusters default, east; did you mean east?'
      ])
    })
  )

  it.effect(
    "CFG-21 NaN, Infinity, negative, fractional, missing, and collections in place of numbers are refused",
    () =>
      Effect.gen(function* () {
        for (const value of [".nan", ".inf", "-1", "0", "1.5", "9007199254740993", "~", "[]", "{}", "true", "1_000"]) {
          assert.deepStrictEqual(yield* paths(withOrders(`concurrency: ${value}`)), [
            "eventbus.bindings.orders.concurrency"
          ])
        }
      })
  )
})
