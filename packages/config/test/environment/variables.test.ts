import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Effect, Redacted } from "effect"
import { issuesOf, withOrders } from "../issues.ts"

const orders = (text: string, env: Configuration.Environment = {}) =>
  Effect.map(Configuration.parse(text, { env }), ({ bindings }) => bindings[0]!)

describe("variables in texts", () => {
  it.effect("a variable, its default, a default in a default, and an empty variable", () =>
    Effect.gen(function* () {
      const group = (template: string, env: Configuration.Environment) =>
        Effect.map(
          orders(`eventbus: { bindings: { orders: { topic: o, groupId: "${template}" } } }`, env),
          (binding) => binding.groupId
        )
      assert.strictEqual(yield* group("${G}", { G: "billing" }), "billing")
      assert.strictEqual(yield* group("${G:billing}", {}), "billing")
      assert.strictEqual(yield* group("${A:${B:c:d}}-${E}", { E: "e" }), "c:d-e")
      assert.strictEqual(yield* group("${A:${B:c}}", { B: "b" }), "b")
      assert.strictEqual(yield* group("${A:-c}", { A: "" }), "c")
      // The content of a variable is not interpolated again.
      assert.strictEqual(yield* group("${A}", { A: "${B}" }), "${B}")
      assert.strictEqual(yield* group("$${A}", { A: "a" }), "${A}")
      assert.strictEqual(yield* group("$$${A:b}c", {}), "$${A:b}c")
      assert.strictEqual(yield* group("a $5 }", {}), "a $5 }")
    })
  )

  it.effect("CFG-21 text is accepted as a number or a boolean only when it comes from a variable", () =>
    Effect.gen(function* () {
      const lines = [
        'concurrency: "${N}"',
        "auto-startup: ${S:false}",
        "fetch-max-wait: ${W}",
        "shutdown-timeout: ${T}"
      ]
      const binding = yield* orders(withOrders(...lines), { N: "3", W: "250", T: "10s" })
      assert.deepInclude(binding, {
        concurrency: 3,
        autoStartup: false,
        fetchMaxWaitMs: 250,
        shutdownTimeoutMs: 10_000
      })
      // A name that looks like a number stays a text.
      const named = yield* orders(withOrders("handler: ${H}", "cluster: ${C:1}"), { H: "1e3" })
      assert.deepInclude(named, { handler: "1e3", cluster: "1" })
      assert.lengthOf(yield* issuesOf(Configuration.parse(withOrders('concurrency: "3"', 'auto-startup: "false"'))), 2)
    })
  )

  it.effect("a variable that is missing, unterminated or unnamed is a mistake with its path", () =>
    Effect.gen(function* () {
      const text = withOrders('handler: "${NAME}"', 'cluster: "${OPEN"', 'concurrency: "${}"')
      const issues = yield* issuesOf(Configuration.parse(text))
      assert.lengthOf(issues, 3)
      assert.include(
        issues[0]!,
        "eventbus.bindings.orders.handler: variable NAME, which is not set; a variable that is set, or a default: ${NAME:default}"
      )
      assert.include(issues[1]!, "eventbus.bindings.orders.cluster: a variable that does not end")
      assert.include(issues[2]!, "eventbus.bindings.orders.concurrency: a variable without a name")
    })
  )

  it.effect("endless nesting of defaults ends in a mistake", () =>
    Effect.gen(function* () {
      const deep = `${"${A:".repeat(50_000)}x${"}".repeat(50_000)}`
      const issues = yield* issuesOf(Configuration.parse(withOrders(`handler: "${deep}"`)))
      assert.lengthOf(issues, 1)
      assert.include(issues[0]!, "a variable that does not end")
    })
  )

  it.effect("several brokers in one variable", () =>
    Effect.gen(function* () {
      const text = `${withOrders()}\n  clusters: { default: { brokers: ["\${B}"] } }`
      const { clusters } = yield* Configuration.parse(text, { env: { B: "a:9092, b:9092," } })
      assert.deepStrictEqual(clusters[0]!.brokers, ["a:9092", "b:9092"])
    })
  )
})

describe("keys by variable", () => {
  it.effect("CFG-22 a variable sets a key of an existing binding, of a new one, and of a list", () =>
    Effect.gen(function* () {
      const env = {
        EVENTBUS_BINDINGS_ORDERS_GROUP_ID: "shipping",
        EVENTBUS_BINDINGS_ORDERS_MAX_POLL_INTERVAL: "5 minutes",
        EVENTBUS_BINDINGS_ORDERS_RETRY_TIER0_MAX_ATTEMPTS: "4",
        EVENTBUS_BINDINGS_ORDERS_RETRY_TIERS: "1m, 2m",
        EVENTBUS_BINDINGS_ORDERS_RETRY_TIERS_1_DELAY_MS: "180000",
        EVENTBUS_BINDINGS_ORDER_EVENTS_TOPIC: "order.events",
        EVENTBUS_BINDINGS_ORDER_EVENTS_GROUP_ID: "events",
        EVENTBUS_BINDINGS_ORDER_EVENTS_CIRCUIT_BREAKER_ENABLED: "true",
        EVENTBUS_CLUSTERS_DEFAULT_BROKERS: "a:1,b:2",
        EVENTBUS_HOME: "/somewhere",
        OTHER: "7"
      }
      const { bindings, clusters } = yield* Configuration.parse(withOrders(), { env })
      assert.deepStrictEqual(clusters[0]!.brokers, ["a:1", "b:2"])
      assert.deepStrictEqual(
        bindings.map(({ name }) => name),
        ["orders", "order-events"]
      )
      assert.deepInclude(bindings[0], { groupId: "shipping", maxPollIntervalMs: 300_000 })
      assert.strictEqual(bindings[0]!.retry.blocking.maxAttempts, 4)
      assert.deepStrictEqual(
        bindings[0]!.retry.tiers.map(({ delayMs }) => delayMs),
        [60_000, 180_000]
      )
      assert.deepInclude(bindings[1], { topic: "order.events", groupId: "events" })
      assert.isTrue(bindings[1]!.circuitBreaker.enabled)
    })
  )

  it.effect("an existing name wins over a new one, whatever its spelling", () =>
    Effect.gen(function* () {
      const text = `
eventbus:
  bindings:
    Order.Events: { topic: o, groupId: g }
    order: { topic: p, groupId: h }`
      const env = { EVENTBUS_BINDINGS_ORDER_EVENTS_CONCURRENCY: "4", EVENTBUS_BINDINGS_ORDER_CONCURRENCY: "5" }
      const { bindings } = yield* Configuration.parse(text, { env })
      assert.deepStrictEqual(
        bindings.map(({ name, concurrency }) => [name, concurrency]),
        [
          ["Order.Events", 4],
          ["order", 5]
        ]
      )
    })
  )

  it.effect(
    "a variable for an unknown or foreign key, or with an invalid value, is a mistake that names it and does not show its text",
    () =>
      Effect.gen(function* () {
        const env = {
          EVENTBUS_BINDINGS_ORDERS_CONCURENCY: "3",
          EVENTBUS_BINDINGS_ORDERS_FETCH_MAX_WAIT: "1s",
          EVENTBUS_BINDINGS_ORDERS_FETCH_MAX_WAIT_MS: "2s",
          EVENTBUS_BINDINGS_ORDERS_CONCURRENCY: "hunter2"
        }
        const error = yield* Effect.flip(Configuration.parse(withOrders(), { env }))
        assert.deepStrictEqual(
          error.issues.map(({ path, at }) => `${path} at ${at?.file}`),
          [
            "EVENTBUS_BINDINGS_ORDERS_CONCURENCY at variable EVENTBUS_BINDINGS_ORDERS_CONCURENCY",
            "eventbus.bindings.orders.fetchMaxWaitMs at variable EVENTBUS_BINDINGS_ORDERS_FETCH_MAX_WAIT_MS",
            "eventbus.bindings.orders.concurrency at variable EVENTBUS_BINDINGS_ORDERS_CONCURRENCY"
          ]
        )
        assert.notInclude(error.message, "hunter2")
      })
  )
})

describe("CFG-22 one schema", () => {
  const asYaml = withOrders(
    "max-poll-interval: 5m",
    "retry: { tiers: [1m, { delay-ms: 120000, max-attempts: 2 }], skip-to-tier-mapping: { Down: 2 } }",
    "dlt: { strategy: SCHEDULED_REPLAY, replay: { cooldown: 2 hours } }"
  )
  const data = {
    eventbus: {
      bindings: {
        orders: {
          topic: "orders",
          groupId: "billing",
          maxPollIntervalMs: 300_000,
          retry: { tiers: ["1m", { delayMs: "PT2M", maxAttempts: 2 }], skipToTierMapping: { Down: 2 } },
          dlt: { strategy: "SCHEDULED_REPLAY", replay: { cooldownMs: "2h" } }
        }
      }
    }
  }

  it.effect("YAML, JSON, code, variables and the body of a request give the same binding", () =>
    Effect.gen(function* () {
      const yaml = yield* Configuration.parse(asYaml)
      assert.deepStrictEqual(yield* Configuration.parse(JSON.stringify(data), { format: "json" }), yaml)
      assert.deepStrictEqual(yield* Configuration.decode(data), yaml)
      assert.deepStrictEqual(
        yield* Configuration.decodeBinding("orders", data.eventbus.bindings.orders),
        yaml.bindings[0]
      )
      const env = {
        EVENTBUS_BINDINGS_ORDERS_TOPIC: "orders",
        EVENTBUS_BINDINGS_ORDERS_GROUP_ID: "billing",
        EVENTBUS_BINDINGS_ORDERS_MAX_POLL_INTERVAL_MS: "300000",
        EVENTBUS_BINDINGS_ORDERS_RETRY_TIERS_0: "1m",
        EVENTBUS_BINDINGS_ORDERS_RETRY_TIERS_1_DELAY: "2m",
        EVENTBUS_BINDINGS_ORDERS_RETRY_TIERS_1_MAX_ATTEMPTS: "2",
        EVENTBUS_BINDINGS_ORDERS_DLT_STRATEGY: "SCHEDULED_REPLAY",
        EVENTBUS_BINDINGS_ORDERS_DLT_REPLAY_COOLDOWN: "2h"
      }
      const text = "eventbus: { bindings: { orders: { retry: { skipToTierMapping: { Down: 2 } } } } }"
      assert.deepStrictEqual(yield* Configuration.parse(text, { env }), yaml)
    })
  )

  it.effect("CFG-21 code and requests are checked like a file; texts are not interpolated", () =>
    Effect.gen(function* () {
      const body = {
        topic: "orders",
        "group-id": "${HOME}",
        concurrency: Number.NaN,
        fetchMaxWait: Infinity,
        dlt: null,
        handler: () => 1
      }
      const error = yield* Effect.flip(Configuration.decodeBinding("orders", body))
      assert.strictEqual(error.binding, "orders")
      assert.deepStrictEqual(
        error.issues.map(({ path, found }) => `${path} ${found}`),
        ["handler a function", "concurrency NaN", "fetchMaxWaitMs Infinity", "deadLetter nothing"]
      )
      const { groupId } = yield* Configuration.decodeBinding("orders", { topic: "orders", groupId: "${HOME}" })
      assert.strictEqual(groupId, "${HOME}")
    })
  )

  it.effect("names such as constructor in a file are ordinary names", () =>
    Effect.gen(function* () {
      const text =
        '{ "eventbus": { "bindings": { "constructor": { "topic": "a", "groupId": "g" }, "toString": { "topic": "b", "groupId": "g" } } } }'
      const { bindings } = yield* Configuration.parse(text, { format: "json" })
      assert.deepStrictEqual(
        bindings.map(({ name }) => name),
        ["constructor", "toString"]
      )
      for (const format of ["yaml", "json"] as const) {
        const proto = '{ "eventbus": { "bindings": { "__proto__": { "topic": "a", "groupId": "g" } } } }'
        assert.lengthOf(yield* issuesOf(Configuration.parse(proto, { format })), 1)
      }
      const lonely = yield* Effect.flip(
        Configuration.decode(JSON.parse('{ "__proto__": { "eventbus": { "bindings": {} } } }'))
      )
      assert.deepStrictEqual(
        lonely.issues.map(({ path }) => path),
        ["eventbus"]
      )
    })
  )
})

describe("CFG-23 durations", () => {
  const cases: ReadonlyArray<readonly [string, number | undefined]> = [
    ["10 seconds", 10_000],
    ["10s", 10_000],
    ["1m", 60_000],
    ["1m 30s", 90_000],
    ["1h30m", 5_400_000],
    ["1.5s", 1_500],
    ["250 millis", 250],
    ["PT10S", 10_000],
    ["P1DT2H", 93_600_000],
    ["2 days", 172_800_000],
    ["1 week", 604_800_000],
    ["10", undefined],
    ["s", undefined],
    ["-1s", undefined],
    ["1s1m", undefined],
    ["1s 1s", undefined],
    ["1x", undefined],
    ["1.0001ms", undefined],
    ["PT", undefined],
    ["P", undefined],
    ["1 s s", undefined],
    ["99999999999999 weeks", undefined]
  ]
  for (const [written, millis] of cases) {
    it.effect(`${JSON.stringify(written)} is ${millis === undefined ? "refused" : `${millis} ms`}`, () =>
      Effect.gen(function* () {
        const read = Configuration.decodeBinding("orders", { topic: "o", groupId: "g", fetchMaxWaitMs: written })
        if (millis === undefined) assert.strictEqual((yield* Effect.flip(read)).issues[0]?.path, "fetchMaxWaitMs")
        else assert.strictEqual((yield* read).fetchMaxWaitMs, millis)
      })
    )
  }
})

describe("secrets", () => {
  it.effect("SEC-01 a secret is redacted at once, and no message shows it, wherever it was written", () =>
    Effect.gen(function* () {
      const cluster = (sasl: string) => `${withOrders()}\n  clusters: { default: { brokers: a:1, sasl: ${sasl} } }`
      const env = { PW: "hunter2" }
      const { clusters } = yield* Configuration.parse(
        cluster('{ mechanism: plain, username: app, password: "${PW}" }'),
        { env }
      )
      const { sasl } = clusters[0]!
      const password = sasl?.mechanism === "plain" ? sasl.password : undefined
      assert.strictEqual(Redacted.isRedacted(password) ? Redacted.value(password) : "", "hunter2")
      assert.notInclude(JSON.stringify(clusters), "hunter2")
      const wrong = [
        "{ mechanism: plain, username: app, pasword: hunter2 }",
        "{ mechanism: plain, username: app, password: [hunter2] }",
        '{ mechanism: "${PW}", username: app, password: x }',
        '{ mechanism: plain, username: "${U:}", password: hunter2 }',
        "{ mechanism: plain, username: app, password: *hunter2 }",
        "{ mechanism: plain, username: app, password: !hunter2,x }",
        "{ mechanism: plain, username: app, password: !hunter2!x y }",
        "{ mechanism: plain, username: app, password: &hunter2 hunter2, hunter2",
        '{ mechanism: plain, username: app, password: "hunter2\\q" }'
      ]
      for (const sasl of wrong) {
        const error = yield* Effect.flip(Configuration.parse(cluster(sasl), { env }))
        assert.notInclude(JSON.stringify(error) + error.message, "hunter2", sasl)
      }
      const json = '{ "eventbus": { "clusters": { "default": { "sasl": { "password": "hunter2" hunter2'
      assert.notInclude((yield* Effect.flip(Configuration.parse(json, { format: "json" }))).message, "hunter2")
    })
  )
})
