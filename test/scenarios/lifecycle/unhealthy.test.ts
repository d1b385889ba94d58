/** Two kinds of failures make health DOWN: a consumer that is not as it should be, and copies that cannot be published. The table of conditions has the others. */
import { assert, describe } from "@effect/vitest"
import { Binding, Broker, BrokerError, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Cause, Effect, Queue, Result } from "effect"
import { advance, append, inTime, orders, scenario, settle, start } from "../bus.ts"
import { Down, Invalid, kinds } from "../kinds.ts"

const { transactional: _, ...publishing } = kinds

const errors: ReadonlyArray<BrokerError.BrokerError> = [
  new BrokerError.AuthorizationFailed({ resource: "topic", name: "orders.DLT", operation: "write" }),
  new BrokerError.RequestTimedOut({ operation: "send", millis: 120_000 }),
  new BrokerError.UnknownTopic({ topic: "orders.DLT" }),
  new BrokerError.RecordRejected({ topic: "orders.DLT", detail: "the topic is compacted" }),
  new BrokerError.UnexpectedBrokerError({
    ...{ operation: "write to", code: "NOT_ENOUGH_REPLICAS", detail: "two of three replicas are away", retryable: true }
  })
]

const topics = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "other", "out", "orders.retry-1", "orders.retry-2", "orders.DLT"]) {
    yield* memory.createTopic(topic)
  }
  return memory
})

/** A broker whose producers fail with the error for as long as there is one: each publish, or the producer itself. */
const unhealthy = (broker: Broker.Broker["Service"], error: () => BrokerError.BrokerError | undefined, part: Part) => {
  const refuse = <A, R>(effect: Effect.Effect<A, BrokerError.BrokerError, R>) =>
    Effect.suspend(() => {
      const now = error()
      return now === undefined ? effect : Effect.fail(now)
    })
  const through = (producer: Broker.Producer): Broker.Producer => ({
    ...producer,
    send: (record) => refuse(producer.send(record)),
    sendEach: (records, onAnswer) =>
      Effect.suspend(() => {
        const now = error()
        if (now === undefined) return producer.sendEach(records, onAnswer)
        for (const index of records.keys()) onAnswer(index, Result.fail(now))
        return Effect.void
      })
  })
  return {
    ...broker,
    producer: (options: Broker.ProducerOptions = {}) =>
      part === "producer" ? refuse(broker.producer(options)) : Effect.map(broker.producer(options), through)
  }
}

type Part = "publish" | "producer"

const cases = Object.entries(publishing).flatMap(([kind, bindingOf]) =>
  ["orders.DLT", "orders.retry-1"].flatMap((target) =>
    (["publish", "producer"] as const).map((part) => ({ kind, bindingOf, target, part }))
  )
)

describe("LIF-21 health is DOWN while copies cannot be published", () => {
  const all = [
    ...cases.map((each, index) => ({ ...each, error: errors[index % errors.length]! })),
    ...errors.map((error) => ({ ...cases[0]!, kind: "any error", error }))
  ]
  for (const { kind, bindingOf, target, part, error } of all) {
    const what = part === "publish" ? "a publish" : "making the producer"
    scenario(`LIF-21 ${kind}: ${what} for ${target} fails with ${error._tag}`, () =>
      Effect.gen(function* () {
        const { broker } = yield* topics
        let now: BrokerError.BrokerError | undefined = error
        const service = unhealthy(broker, () => now, part)
        const failure = () => Effect.fail(target === "orders.DLT" ? new Invalid() : new Down())
        const handle = () => Effect.suspend(() => (now === undefined ? Effect.void : failure()))
        const other = Binding.make("other", { ...orders, topic: "other", groupId: "other", handler: () => Effect.void })
        const app = yield* Effect.provideService(start<never>(bindingOf({ handle }), other), Broker.Broker, service)
        yield* append("orders", 0, ["a"])
        yield* settle
        // Most refusals are over at the next attempt.
        assert.strictEqual((yield* app.connector.health).status, "UP")
        yield* advance("20 seconds")
        const { status, live, ready, reasons } = yield* app.connector.health
        assert.deepStrictEqual({ status, live, ready }, { status: "DOWN", live: true, ready: false })
        assert.lengthOf(reasons, 1)
        const about = { cluster: "default", binding: "orders", topic: target, copies: 1 }
        assert.deepInclude(reasons[0], { _tag: "PublisherFailing", ...about })
        yield* app.connector.pause("orders")
        assert.strictEqual((yield* app.connector.health).status, "DOWN", "an operator's pause hides it")
        yield* app.connector.resume("orders")
        now = undefined
        yield* advance("5 minutes")
        assert.deepStrictEqual(yield* app.connector.health, { status: "UP", live: true, ready: true, reasons: [] })
      })
    )
  }
})

type Consume = Broker.Broker["Service"]["consumer"]

/** Ways in which a consumer that should run does not. Each of them ends when `isBad` says no more. */
const unexpected: Readonly<Record<string, (consume: Consume, isBad: () => boolean) => Consume>> = {
  "the group refuses it": (consume, isBad) => (options) => {
    const refused = new BrokerError.AuthorizationFailed({ resource: "group", name: options.groupId, operation: "read" })
    return Effect.suspend(() => (isBad() ? Effect.fail(refused) : consume(options)))
  },
  "its client cannot be made": (consume, isBad) => (options) =>
    Effect.suspend(() => (isBad() ? Effect.die(new TypeError("x is not a function")) : consume(options))),
  "its session fails at once, again and again": (consume, isBad) => (options) =>
    Effect.tap(consume(options), ({ events }) =>
      Effect.sync(() => {
        if (isBad()) Queue.failCauseUnsafe(events as never, Cause.fail(errors[4]!))
      })
    ),
  "its session ends without a word": (consume, isBad) => (options) =>
    Effect.tap(consume(options), ({ events }) =>
      Effect.sync(() => {
        if (isBad()) Queue.failCauseUnsafe(events as never, Cause.die(new Error("the events ended")))
      })
    ),
  "it never gets a session": (consume, isBad) => (options) =>
    Effect.suspend(() =>
      isBad()
        ? Effect.fail(new BrokerError.RequestTimedOut({ operation: "consume", millis: 30_000 }))
        : consume(options)
    )
}

describe("LIF-21 health is DOWN while a consumer that should run does not", () => {
  for (const [name, change] of Object.entries(unexpected)) {
    scenario(`LIF-21 ${name}: DOWN and not ready, the binding beside it goes on, and UP again afterwards`, () =>
      Effect.gen(function* () {
        const { broker, committed } = yield* topics
        let isBad = true
        const consume: Consume = (options) =>
          options.groupId === "billing" ? change(broker.consumer, () => isBad)(options) : broker.consumer(options)
        const service = { ...broker, consumer: consume }
        const own = Binding.make("orders", { ...orders, handler: () => Effect.void })
        const other = Binding.make("other", { ...orders, topic: "other", groupId: "other", handler: () => Effect.void })
        const { connector } = yield* Effect.provideService(start(own, other), Broker.Broker, service)
        yield* append("other", 0, ["a"])
        for (let minute = 0; minute < 5; minute++) {
          yield* advance("1 minute")
          const { status, live, ready, reasons } = yield* connector.health
          assert.deepStrictEqual({ status, live, ready }, { status: "DOWN", live: true, ready: false })
          assert.lengthOf(reasons, 1)
          const { bindings = [], binding = bindings[0] } = { bindings: undefined, binding: undefined, ...reasons[0] }
          assert.strictEqual(binding, "orders")
        }
        assert.strictEqual(yield* committed("other", "other", 0), 1n)
        isBad = false
        yield* advance("2 minutes")
        assert.deepStrictEqual(yield* connector.health, { status: "UP", live: true, ready: true, reasons: [] })
      })
    )
  }

  scenario("LIF-21 LIF-19 a binding that somebody has not started, or has stopped, is in its expected state", () =>
    Effect.gen(function* () {
      yield* topics
      const own = Binding.make("orders", { ...orders, autoStartup: false, handler: () => Effect.void })
      const { connector } = yield* start(own)
      const status = Effect.map(connector.health, (health) => health.status)
      assert.strictEqual(yield* status, "UP")
      yield* connector.start("orders")
      yield* advance("1 minute")
      assert.strictEqual(yield* status, "UP")
      yield* connector.stop("orders")
      assert.strictEqual(yield* status, "UP")
    })
  )

  for (const [name, change] of Object.entries(unexpected)) {
    scenario(`LIF-21 ${name}, until somebody stops the binding: STOPPED is what it should be`, () =>
      Effect.gen(function* () {
        const { broker } = yield* topics
        const service = { ...broker, consumer: change(broker.consumer, () => true) }
        const own = Binding.make("orders", { ...orders, handler: () => Effect.void })
        const { connector } = yield* Effect.provideService(start(own), Broker.Broker, service)
        yield* advance("1 minute")
        assert.strictEqual((yield* connector.health).status, "DOWN")
        yield* inTime(connector.stop("orders"))
        assert.strictEqual((yield* connector.health).status, "UP")
        yield* advance("1 minute")
        assert.strictEqual((yield* connector.health).status, "UP")
      })
    )
  }

  scenario("LIF-21 an open breaker and a paused tier say nothing about a binding that somebody has stopped", () =>
    Effect.gen(function* () {
      yield* topics
      const own = Binding.make("orders", {
        ...orders,
        retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"] }),
        circuitBreaker: { slidingWindowSize: 1, minimumNumberOfCalls: 1, waitDurationInOpenState: "1 hour" },
        onError: { Down: Route.retry },
        handler: () => Effect.fail(new Down())
      })
      const { connector } = yield* start(own)
      const tags = Effect.map(connector.health, ({ reasons }) => reasons.map(({ _tag }) => _tag).sort())
      yield* append("orders", 0, ["a"])
      yield* advance("1 second")
      yield* connector.pause("orders", { tier: 1 })
      assert.deepStrictEqual(yield* tags, ["BreakerOpen", "TierPaused"])
      yield* inTime(connector.stop("orders"))
      assert.deepStrictEqual(yield* connector.health, { status: "UP", live: true, ready: true, reasons: [] })
    })
  )
})
