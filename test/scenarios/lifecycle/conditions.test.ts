/** Each row of the table in `docs/guide/health.md` is compared with what a program sees: health, log lines and metrics. A row without a test fails, and so does a test without a row. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, BrokerError, DeadLetter, EventBusConnector, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Cause, Context, Effect, Latch, Layer, Logger, Metric, Queue, type Scope } from "effect"
import { advance, append, bytes, inTime, orders, scenario, settle, start } from "../bus.ts"
import { operator, startIn, target } from "../fleet/fleet.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

interface Row {
  readonly live: boolean
  readonly ready: boolean
  readonly status: string
  readonly reason: string | undefined
  readonly line: string | undefined
  readonly metric: readonly [name: string, value: number] | undefined
}

const codeOf = (cell: string): ReadonlyArray<string> => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code]) => code!)

const guide = readFileSync(new URL("../../../docs/guide/health.md", import.meta.url), "utf8")
const table = guide.slice(guide.indexOf("| condition |"), guide.indexOf("## What to do"))
const rows = new Map(
  table
    .trim()
    .split("\n")
    .slice(2)
    .map((line) => {
      const [condition = "", live, ready, health = "", log = "", metric = ""] = line.slice(2, -2).split(" | ")
      const [status = "", reason] = codeOf(health)
      const [name] = codeOf(metric)
      const row: Row = {
        ...{ live: live === "yes", ready: ready === "yes", status, reason },
        line: codeOf(log)[0],
        metric: name === undefined ? undefined : [name, Number(metric.split(" ").at(-1))]
      }
      return [condition, row]
    })
)

/** A test of a condition looks at these. */
interface Seen {
  readonly lines: Array<string>
  /** The row holds now. */
  readonly holds: (connector: Connector) => Effect.Effect<void>
  /** Nothing of it is left: health is UP, and one line has told of the condition. */
  readonly isOver: (connector: Connector, line?: string) => Effect.Effect<void>
}

const tested = new Set<string>()

const condition = (
  name: string,
  body: (seen: Seen) => Effect.Effect<void, unknown, MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope>
): void => {
  tested.add(name)
  scenario(`condition: ${name}`, () => {
    const row = rows.get(name)
    if (row === undefined) return assert.fail("docs/guide/health.md has no such row")
    const lines: Array<string> = []
    const capture = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
    const told = () => lines.filter((line) => row.line !== undefined && line.includes(row.line))
    const holds = Effect.fnUntraced(function* (connector: Connector) {
      const { status, live, ready, reasons } = yield* connector.health
      const first = reasons[0]?._tag
      assert.deepStrictEqual(
        { status, live, ready, reason: first },
        { status: row.status, live: row.live, ready: row.ready, reason: row.reason }
      )
      if (row.line !== undefined) assert.isNotEmpty(told(), lines.join("\n"))
      if (row.metric !== undefined) {
        const [metric, value] = row.metric
        assert.include(yield* valuesOf(metric), value, metric)
      }
    })
    const isOver = Effect.fnUntraced(function* (connector: Connector, over?: string) {
      const health = yield* connector.health
      assert.deepStrictEqual(health, { status: "UP", live: true, ready: true, reasons: [] })
      assert.lengthOf(told(), 1, lines.join("\n"))
      if (over !== undefined)
        assert.lengthOf(
          lines.filter((line) => line.includes(over)),
          1,
          lines.join("\n")
        )
    })
    return body({ lines, holds, isOver }).pipe(
      Effect.provide(capture),
      Effect.provideService(Metric.MetricRegistry, new Map()),
      Effect.orDie
    )
  })
}

const valuesOf = (name: string): Effect.Effect<ReadonlyArray<number>> =>
  Effect.map(Metric.snapshot, (all) =>
    all.flatMap((series) => {
      if (series.id !== name) return []
      if (series.type === "Gauge") return [Number(series.state.value)]
      return series.type === "Counter" ? [Number(series.state.count)] : []
    })
  )

const withTopic = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => Effect.as(memory.createTopic("orders"), memory))

const reader = Binding.make("orders", { ...orders, handler: () => Effect.void })

const failing = {
  ...orders,
  missingTopics: "wait",
  handler: () => Effect.fail("no"),
  onError: () => Route.retry
} as const

/** The broker of the test, some of whose requests fail for as long as `now` says. */
const refusing = (
  now: () => boolean,
  change: (broker: Broker.Broker["Service"], refuse: Refuse) => Partial<Broker.Broker["Service"]>
) =>
  Effect.map(MemoryBroker.MemoryBroker, ({ broker }): Broker.Broker["Service"] => {
    const refuse: Refuse = (error) => (request) => Effect.suspend(() => (now() ? Effect.fail(error) : request))
    return { ...broker, ...change(broker, refuse) }
  })

type Refuse = (
  error: BrokerError.BrokerError
) => <A, R>(request: Effect.Effect<A, BrokerError.BrokerError, R>) => Effect.Effect<A, BrokerError.BrokerError, R>

const started = (broker: Broker.Broker["Service"], binding: Binding.Binding<never>) =>
  Effect.map(Effect.provideService(start(binding), Broker.Broker, broker), ({ connector }) => connector)

const admins = (error: BrokerError.BrokerError) => (broker: Broker.Broker["Service"], refuse: Refuse) => ({
  admin: Effect.map(
    broker.admin,
    (admin): Broker.Admin => ({
      ...admin,
      topicOffsets: (topic, isolation) => refuse(error)(admin.topicOffsets(topic, isolation))
    })
  )
})

const denied = (resource: "topic" | "group" | "transactionalId", name: string, operation: string) =>
  new BrokerError.AuthorizationFailed({ resource, name, operation })

describe("what shows in which place", () => {
  condition("no binding is registered yet", ({ holds }) =>
    Effect.gen(function* () {
      const { connector } = yield* start()
      yield* holds(connector)
    })
  )

  condition("a consumer has not joined its group yet", ({ holds }) =>
    Effect.gen(function* () {
      yield* withTopic
      const context = yield* Layer.build(EventBusConnector.layer)
      const connector = Context.get(context, EventBusConnector.EventBusConnector)
      yield* connector.register(reader)
      // In the same tick: nothing of the consumer has run.
      yield* holds(connector)
      yield* settle
      assert.isTrue((yield* connector.health).ready)
      yield* inTime(connector.destroy("orders"))
    })
  )

  condition("the connector is closing", ({ holds }) =>
    Effect.gen(function* () {
      yield* withTopic
      const app = yield* start(reader)
      yield* inTime(app.close)
      yield* holds(app.connector)
    })
  )

  condition("the main topic does not exist", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const { connector } = yield* start(reader)
      assert.isFalse((yield* connector.health).ready)
      yield* advance("30 seconds")
      yield* holds(connector)
      yield* withTopic
      yield* advance("5 minutes")
      yield* isOver(connector, "Topic 'orders' can be read again")
    })
  )

  for (const [name, error] of [
    ["a topic may not be read", denied("topic", "orders", "describe")],
    [
      "a partition has no leader",
      new BrokerError.UnexpectedBrokerError({
        ...{ operation: "topicOffsets", code: "LEADER_NOT_AVAILABLE", detail: "no leader", retryable: true }
      })
    ]
  ] as const) {
    condition(name, ({ holds, isOver }) =>
      Effect.gen(function* () {
        yield* withTopic
        let isRefused = false
        const connector = yield* started(yield* refusing(() => isRefused, admins(error)), reader)
        yield* advance("1 minute")
        isRefused = true
        yield* advance("1 minute")
        yield* holds(connector)
        isRefused = false
        yield* advance("1 minute")
        yield* isOver(connector, "Topic 'orders' can be read again")
      })
    )
  }

  condition("the dead letter topic does not exist", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      yield* append("orders", 0, ["a", "b"])
      const binding = Binding.make("orders", { ...failing, retry: RetryPolicy.none, onError: () => Route.deadLetter() })
      const { connector } = yield* start(binding)
      yield* advance("3 seconds")
      yield* advance("3 seconds")
      yield* holds(connector)
      yield* advance("2 minutes")
      assert.isTrue((yield* connector.health).live)
      yield* memory.createTopic("orders.DLT")
      yield* advance("1 minute")
      yield* isOver(connector, "Copies can be published to 'orders.DLT' again")
    })
  )

  condition("a retry topic does not exist", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      yield* append("orders", 0, ["a"])
      const retry = RetryPolicy.tiered({ tiers: ["1 hour"] })
      const { connector } = yield* start(Binding.make("orders", { ...failing, retry }))
      yield* advance("3 seconds")
      yield* advance("3 seconds")
      yield* holds(connector)
      yield* advance("2 minutes")
      assert.isTrue((yield* connector.health).live)
      yield* memory.createTopic("orders.retry-1")
      yield* advance("1 minute")
      yield* isOver(connector, "Copies can be published to 'orders.retry-1' again")
    })
  )

  condition("a copy is larger than its topic takes", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      yield* memory.createTopic("orders.DLT", { config: new Map([["max.message.bytes", "100"]]) })
      yield* append("orders", 0, ["a".repeat(500)])
      const { connector } = yield* start(Binding.make("orders", { ...failing, retry: RetryPolicy.none }))
      yield* advance("3 seconds")
      yield* advance("3 seconds")
      yield* holds(connector)
      yield* advance("2 minutes")
      assert.isTrue((yield* connector.health).live)
      yield* Effect.scoped(
        Effect.flatMap(memory.broker.admin, (admin) =>
          admin.alterTopicConfig("orders.DLT", new Map([["max.message.bytes", "100000"]]))
        )
      )
      yield* advance("1 minute")
      yield* isOver(connector, "Copies can be published to 'orders.DLT' again")
    })
  )

  condition("the cluster does not answer", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      const { connector } = yield* start(reader)
      yield* advance("1 minute")
      yield* memory.inject({ _tag: "BrokerDown", duration: "2 minutes" })
      yield* advance("20 seconds")
      yield* holds(connector)
      yield* advance("3 minutes")
      yield* isOver(connector, "Cluster 'default' answers again")
    })
  )

  for (const [name, code] of [
    ["the group refuses the consumer", "INVALID_SESSION_TIMEOUT"],
    ["another client's group refuses the consumer", "INCONSISTENT_GROUP_PROTOCOL"],
    ["another client's assignment cannot be read", "FOREIGN_ASSIGNMENT"]
  ] as const) {
    condition(name, ({ holds, isOver, lines }) =>
      Effect.gen(function* () {
        const { broker } = yield* withTopic
        const refusal = new BrokerError.UnexpectedBrokerError({
          ...{ operation: "consume", code, detail: "the group refuses it", retryable: false }
        })
        let isRefused = true
        const refused: Broker.Broker["Service"] = {
          ...broker,
          consumer: (options) =>
            Effect.gen(function* () {
              const session = yield* broker.consumer(options)
              if (!isRefused) return session
              const events = yield* Queue.unbounded<Broker.ConsumerEvent, BrokerError.BrokerError>()
              Queue.failCauseUnsafe(events, Cause.fail(refusal))
              return { ...session, events }
            })
        }
        const connector = yield* started(refused, reader)
        yield* advance("1 minute")
        yield* holds(connector)
        isRefused = false
        yield* advance("2 minutes")
        yield* isOver(connector, "Consumer 0 runs again")
        assert.lengthOf(
          lines.filter((line) => line.includes(code)),
          1
        )
      })
    )
  }

  condition("another member has taken the consumer's static name", ({ holds }) =>
    Effect.gen(function* () {
      yield* withTopic
      const { broker } = yield* MemoryBroker.MemoryBroker
      const fenced = new BrokerError.InstanceFenced({ groupId: "billing", groupInstanceId: "orders-0" })
      const connector = yield* started({ ...broker, consumer: () => Effect.fail(fenced) }, reader)
      yield* advance("1 minute")
      yield* holds(connector)
    })
  )

  condition("commits are refused", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      let isRefused = false
      const broker = yield* refusing(
        () => isRefused,
        ({ consumer }, refuse) => ({
          consumer: (options) =>
            Effect.map(consumer(options), (session) => ({
              ...session,
              commit: (offsets) => refuse(denied("group", "billing", "read"))(session.commit(offsets))
            }))
        })
      )
      const connector = yield* started(broker, reader)
      isRefused = true
      yield* append("orders", 0, ["a"])
      yield* advance("10 seconds")
      yield* advance("10 seconds")
      yield* holds(connector)
      isRefused = false
      yield* advance("10 seconds")
      yield* isOver(connector, "Offsets are committed again")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )

  condition("transactions are refused", ({ holds, isOver }) =>
    Effect.gen(function* () {
      yield* withTopic
      yield* append("orders", 0, ["a"])
      let isRefused = true
      const broker = yield* refusing(
        () => isRefused,
        ({ transactionalProducer }, refuse) => ({
          transactionalProducer: (options) =>
            refuse(denied("transactionalId", options.transactionalId, "write"))(transactionalProducer(options))
        })
      )
      const connector = yield* started(
        broker,
        Binding.makeTransactional("orders", { ...orders, handler: () => Effect.void })
      )
      yield* advance("5 minutes")
      yield* holds(connector)
      isRefused = false
      yield* advance("1 minute")
      yield* isOver(connector, "Transactions are committed again")
    })
  )

  condition("the dead letter strategy cannot work", ({ holds, isOver }) =>
    Effect.gen(function* () {
      yield* withTopic
      let isRefused = true
      const broker = yield* refusing(
        () => isRefused,
        ({ consumer }, refuse) => ({
          consumer: (options) =>
            options.groupId === "billing.dlt"
              ? refuse(denied("group", "billing.dlt", "read"))(consumer(options))
              : consumer(options)
        })
      )
      const deadLetter = DeadLetter.custom(() => Effect.void)
      const connector = yield* started(
        broker,
        Binding.make("orders", { ...orders, deadLetter, handler: () => Effect.void })
      )
      yield* advance("1 minute")
      yield* holds(connector)
      isRefused = false
      yield* advance("2 minutes")
      yield* isOver(connector, "The dead letter strategy works again")
    })
  )

  condition("a dead letter handler does not end", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      yield* memory.createTopic("orders.DLT")
      const ends = Latch.makeUnsafe()
      const deadLetter = DeadLetter.custom(() => ends.await)
      const { connector } = yield* start(Binding.make("orders", { ...orders, deadLetter, handler: () => Effect.void }))
      yield* append("orders.DLT", 0, ["a"])
      for (let seconds = 0; seconds < 90; seconds += 5) yield* advance("5 seconds")
      yield* holds(connector)
      yield* ends.open
      yield* advance("10 seconds")
      yield* isOver(connector, "The dead letter strategy works again")
    })
  )

  condition("an open transaction holds a partition", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      const { connector } = yield* start(reader)
      const producer = yield* memory.broker.transactionalProducer({
        ...{ transactionalId: "other", transactionTimeout: "10 minutes" }
      })
      const isOpen = Latch.makeUnsafe(false)
      const open = producer.transaction((transaction) =>
        Effect.andThen(transaction.send({ topic: "orders", key: null, value: bytes("x") }), isOpen.await)
      )
      yield* Effect.forkScoped(open, { startImmediately: true })
      yield* settle
      yield* append("orders", 0, ["a", "b", "c"])
      yield* advance("50 seconds")
      assert.strictEqual((yield* connector.health).status, "UP")
      yield* advance("30 seconds")
      yield* holds(connector)
      isOpen.openUnsafe()
      yield* advance("20 seconds")
      yield* isOver(connector, "The open transaction of orders-0 has ended")
      assert.deepStrictEqual(yield* valuesOf("eventbus.consumer.lag"), [0])
    })
  )

  condition("a batch cannot be read", ({ holds, isOver }) =>
    Effect.gen(function* () {
      const memory = yield* withTopic
      const producer = yield* memory.broker.producer({ compression: "gzip" })
      yield* inTime(producer.send({ topic: "orders", key: null, value: bytes("x".repeat(2_000)) }))
      const { connector } = yield* start(
        Binding.make("orders", { ...orders, maxBufferedBytes: 1_000, handler: () => Effect.void })
      )
      yield* advance("10 seconds")
      yield* holds(connector)
      yield* advance("1 minute")
      yield* connector.skip("orders", { topic: "orders", partition: 0, offset: 0n }, "test data")
      yield* advance("10 seconds")
      yield* isOver(connector, "orders-0 moves again")
    })
  )

  condition("a record waits for what its serde needs", ({ holds, isOver }) =>
    Effect.gen(function* () {
      yield* withTopic
      yield* append("orders", 0, ["a"])
      const arrives = Latch.makeUnsafe(false)
      const value: Serde.Serde<string> = {
        ...Serde.string,
        prepare: () => (arrives.isOpen() ? undefined : arrives.await)
      }
      const { connector } = yield* start(Binding.make("orders", { ...orders, value, handler: () => Effect.void }))
      yield* advance("20 seconds")
      yield* holds(connector)
      arrives.openUnsafe()
      yield* advance("10 seconds")
      yield* isOver(connector, "orders-0 moves again")
    })
  )

  condition("a handler does not end", ({ holds }) =>
    Effect.gen(function* () {
      yield* withTopic
      const limits = { maxPollInterval: "2 minutes", shutdownTimeout: "1 second" } as const
      const handler = () => Effect.uninterruptible(Effect.sleep("1 hour"))
      const app = yield* start(Binding.make("orders", { ...orders, ...limits, handler }))
      yield* advance("5 seconds")
      yield* append("orders", 0, ["a"])
      for (let seconds = 0; seconds < 200; seconds += 5) yield* advance("5 seconds")
      yield* holds(app.connector)
      yield* inTime(app.close)
    })
  )

  condition("the poll loop brings nothing", ({ holds }) =>
    Effect.gen(function* () {
      const { broker } = yield* withTopic
      const stuck: Broker.Broker["Service"] = {
        ...broker,
        consumer: (options) =>
          Effect.map(broker.consumer(options), (session) => ({ ...session, resume: () => Effect.void }))
      }
      const connector = yield* started(stuck, reader)
      yield* connector.pause("orders")
      yield* append("orders", 0, ["a", "b"])
      yield* connector.resume("orders")
      yield* advance("2 minutes")
      yield* holds(connector)
    })
  )

  condition("the circuit breaker is open", ({ holds, isOver }) =>
    Effect.gen(function* () {
      yield* withTopic
      yield* append("orders", 0, ["a", "b"])
      let isFailing = true
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          circuitBreaker: { minimumNumberOfCalls: 2, permittedNumberOfCallsInHalfOpenState: 1 },
          handler: () => (isFailing ? Effect.die("no") : Effect.void)
        })
      )
      yield* settle
      yield* holds(connector)
      isFailing = false
      yield* advance("2 minutes")
      // Half-open with nothing to try holds nothing back (ruling 72).
      yield* isOver(connector)
    })
  )

  condition("an operator has paused the binding", ({ holds, isOver }) =>
    Effect.gen(function* () {
      yield* withTopic
      const { connector } = yield* start(reader)
      yield* connector.pause("orders")
      yield* holds(connector)
      yield* connector.resume("orders")
      yield* isOver(connector)
    })
  )

  condition("an operator holds the binding in all processes", ({ holds, isOver }) =>
    Effect.gen(function* () {
      yield* withTopic
      const fleet = yield* operator
      yield* inTime(fleet.hold({ ...target, reason: "test" }))
      const { connector } = yield* startIn({}, reader)
      yield* advance("1 minute")
      yield* holds(connector)
      yield* inTime(fleet.release({ ...target, reason: "test" }))
      yield* advance("2 seconds")
      yield* isOver(connector)
    })
  )

  condition("a process reads the holds of its fleet", ({ holds }) =>
    Effect.gen(function* () {
      yield* withTopic
      // Nobody has made the control topic.
      const { connector } = yield* startIn({}, reader)
      yield* advance("8 seconds")
      yield* holds(connector)
      yield* advance("4 seconds")
      assert.deepInclude(yield* connector.health, { status: "UP", ready: true })
    })
  )

  condition("an operator has paused a retry tier", ({ holds, isOver }) =>
    Effect.gen(function* () {
      yield* withTopic
      const retry = RetryPolicy.tiered({ tiers: ["1 minute"] })
      const { connector } = yield* start(Binding.make("orders", { ...orders, retry, handler: () => Effect.void }))
      yield* connector.pause("orders", { tier: 1 })
      yield* advance("10 seconds")
      yield* holds(connector)
      yield* connector.resume("orders", { tier: 1 })
      yield* advance("10 seconds")
      yield* isOver(connector, "Retry tier 1 goes on")
    })
  )

  condition("a record halts its partition", ({ holds }) =>
    Effect.gen(function* () {
      yield* withTopic
      yield* append("orders", 0, ["a"])
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          ...{ orderingMode: "STRICT", onExhausted: "halt", retry: RetryPolicy.none },
          handler: () => Effect.die("no")
        })
      )
      yield* settle
      yield* holds(connector)
    })
  )

  it("every row has a test", () => {
    assert.sameMembers(Array.from(tested), Array.from(rows.keys()))
  })
})
