import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Binding, Metrics, RetryPolicy, Route } from "@eventbus/core"
import { Prometheus } from "@eventbus/observability"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer, Metric, Schema } from "effect"
import { HttpClient } from "effect/http"
import { advance, append, orders, start } from "../scenarios/bus.ts"
import { missing, parse } from "./promql.ts"
import { metered } from "./series.ts"

class Down extends Schema.TaggedError<Down>()("Down", {}) {}
class Known extends Schema.TaggedError<Known>()("Known", {}) {}

const file = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../packages/observability/${path}`, import.meta.url)), "utf8")

interface Query {
  readonly title: string
  readonly query: string
}

const rules: ReadonlyArray<Query> = Array.from(
  file("prometheus/rules.yml").matchAll(/- (?:alert|record): (\S+)\n\s+expr: (.+)/g),
  ([, title = "", query = ""]) => ({ title, query })
)

const Dashboard = Schema.Struct({
  panels: Schema.Array(
    Schema.Struct({ title: Schema.String, targets: Schema.Array(Schema.Struct({ expr: Schema.String })) })
  ),
  templating: Schema.Struct({ list: Schema.Array(Schema.Struct({ name: Schema.String, query: Schema.String })) })
})
const dashboard = Schema.decodeUnknownSync(Dashboard)(JSON.parse(file("grafana/eventbus.json")))
const panels: ReadonlyArray<Query> = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, query: expr }))),
  ...dashboard.templating.list.flatMap(({ name, query }) => {
    const [, metric, label] = /^label_values\((.*), (\w+)\)$/.exec(query) ?? []
    return metric === undefined ? [] : [{ title: name, query: `sum by (${label}) (${metric})` }]
  })
]

/** Bindings with everything that a metric tells of: successes, retries, dead letters, skips, a breaker that opens, a handler that is cut short, order per key. */
const eventful = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* append("orders", 0, ["v0", "down", "known", "slow", "down", "down", "down", "v1"])
  let isDown = true
  yield* start(
    Binding.make("orders", {
      ...orders,
      maxPollInterval: "5 minutes",
      retry: RetryPolicy.tiered({ blocking: { maxAttempts: 2, initialBackoff: "1 second" }, tiers: ["1 minute"] }),
      circuitBreaker: { slidingWindowSize: 4, minimumNumberOfCalls: 4, waitDurationInOpenState: "30 seconds" },
      onError: { Down: Route.retry, Known: Route.skip },
      handler: ({ value }) =>
        Effect.suspend((): Effect.Effect<void, Down | Known> => {
          if (value === "slow") return Effect.never
          if (value === "known") return new Known()
          return value === "down" && isDown ? new Down() : Effect.void
        })
    })
  )
  yield* memory.createTopic("payments")
  yield* start(
    Binding.make("payments", {
      topic: "payments",
      groupId: "payments",
      orderingMode: "PER_KEY",
      handler: () => Effect.void
    })
  )
  yield* advance("20 minutes")
  isDown = false
  yield* advance("40 minutes")
  // The dead letters are counted once somebody has read the metrics: the next scrape shows them.
  yield* Prometheus.exposition
  yield* advance("10 seconds")
})

/** The alerts on lag that are about a topic. Prometheus matches a whole value. */
const lagAlertsOf = (topic: string): ReadonlyArray<string> =>
  rules.flatMap(({ title, query }) => {
    const [, operator, pattern = ""] = /^sum by .*kafka_consumer_lag\{topic(=~|!~)"(.+)"\}\) > /.exec(query) ?? []
    return operator !== undefined && new RegExp(`^(?:${pattern})$`).test(topic) === (operator === "=~") ? [title] : []
  })

describe("the alerts on lag", () => {
  it.each([
    ["Financial", ["escrow.commands", "escrow.confirmations"]],
    ["Notification", ["notifications.outbox"]],
    ["", ["deal.events", "delivery.commands", "delivery.results", "deal.deadlines", "reconciliation.triggers"]]
  ])("ERR-13 the topics of the error handling strategy have the limits of their kind: '%s'", (kind, topics) => {
    const expected = ["Warning", "Critical"].map((severity) => `EventBus${kind}Lag${severity}`)
    for (const topic of topics) assert.deepStrictEqual(lagAlertsOf(topic), expected, topic)
  })
})

describe("a Prometheus scrape", () => {
  metered("OBS-16 ERR-15 one scrape shows every metric with its documented labels", () =>
    Effect.gen(function* () {
      yield* eventful
      const exposed = parse(yield* Prometheus.exposition)
      for (const definition of Metrics.all) {
        const name = Prometheus.nameOf(definition)
        const series = exposed.get(definition.kind === "histogram" ? `${name}_count` : name) ?? []
        assert.isNotEmpty(series, name)
        const labels = definition.labels.map((label) => label.replaceAll(".", "_")).sort()
        for (const found of series) assert.deepStrictEqual([...found.keys()].sort(), labels, name)
      }
      assert.isTrue(exposed.has("kafka_consumer_records_lag_max"))
      assert.isTrue(exposed.has("kafka_consumer_records_consumed_total"))
    })
  )

  metered("OBS-16 every query of the dashboard and of the rules finds its metrics and labels in a real scrape", () =>
    Effect.gen(function* () {
      yield* eventful
      const exposed = parse(yield* Prometheus.exposition)
      assert.isAbove(rules.length, 15)
      assert.isAbove(panels.length, 18)
      for (const { title, query } of [...rules, ...panels]) assert.deepStrictEqual(missing(query, exposed), [], title)
    })
  )

  it("ERR-13 the lag rules put each topic of the strategy into its class, with its limits", () => {
    const limits = (topic: string) =>
      rules.flatMap(({ title, query }) => {
        const [, operator, pattern, limit] = /kafka_consumer_lag\{topic(=~|!~)"([^"]*)"\}\) > (\d+)/.exec(query) ?? []
        if (pattern === undefined) return []
        // Prometheus anchors a pattern at both ends.
        const matches = new RegExp(`^(?:${pattern})$`).test(topic)
        return matches === (operator === "=~") ? [`${title} ${limit}`] : []
      })
    const financial = ["EventBusFinancialLagWarning 100", "EventBusFinancialLagCritical 1000"]
    const notification = ["EventBusNotificationLagWarning 500", "EventBusNotificationLagCritical 5000"]
    const other = ["EventBusLagWarning 1000", "EventBusLagCritical 10000"]
    for (const topic of ["escrow.commands", "escrow.confirmations", "escrow.commands.retry-1", "payouts"]) {
      assert.deepStrictEqual(limits(topic), financial, topic)
    }
    assert.deepStrictEqual(limits("notifications.outbox"), notification)
    for (const topic of [
      "deal.events",
      "delivery.commands",
      "delivery.results",
      "deal.deadlines",
      "reconciliation.triggers"
    ]) {
      assert.deepStrictEqual(limits(topic), other, topic)
    }
  })

  it("a query for an unknown metric fails", () => {
    const exposed = parse('a_total{x="1"} 1\nb 2\n')
    assert.deepStrictEqual(missing("sum by (x) (rate(a_total[5m])) > 3", exposed), [])
    assert.deepStrictEqual(missing("sum by (y) (rate(a_total[5m]))", exposed), ["a_total{y}"])
    assert.deepStrictEqual(missing('a_total{z=~"q"} / c', exposed), ["a_total{z}", "c"])
    assert.deepStrictEqual(missing("rate(a[5m])", exposed), ["a"])
    assert.deepStrictEqual(missing("1", exposed), ["no metric in: 1"])
    assert.throws(() => parse('a{x="1} 1\n'))
    assert.throws(() => parse("a 1\na 2\n"))
  })

  it("OBS-16 the dashboard shows every metric of the connector", () => {
    const text = [...panels, ...rules].map(({ query }) => query).join(" ")
    const unseen = Metrics.all.filter(
      (definition) => definition.name.startsWith("eventbus.") && !text.includes(Prometheus.nameOf(definition))
    )
    assert.deepStrictEqual(
      unseen.map(({ name }) => name),
      ["eventbus.circuit.transitions"]
    )
  })

  it.effect("OBS-16 the HTTP answer is what Prometheus expects, whatever a label contains", () =>
    Effect.gen(function* () {
      const hostile = 'a "quoted" \\ back\nslash'
      yield* Metric.update(Metric.withAttributes(Metric.counter("app.orders"), { reason: hostile, "bad-name": "x" }), 2)
      const response = yield* HttpClient.get("/metrics")
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
      const exposed = parse(yield* response.text)
      assert.deepStrictEqual(
        exposed.get("app_orders")?.map((labels) => Object.fromEntries(labels)),
        [{ reason: hostile, bad_name: "x" }]
      )
      assert.strictEqual((yield* HttpClient.get("/")).status, 404)
    }).pipe(
      Effect.provide(Prometheus.layer().pipe(Layer.provideMerge(NodeHttpServer.layerTest))),
      Effect.provideService(Metric.MetricRegistry, new Map())
    )
  )
})
