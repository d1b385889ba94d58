/** Health names each failure in time. Tests cause the failures, on a virtual clock. */
import { assert, describe, it } from "@effect/vitest"
import {
  Binding,
  Broker,
  BrokerError,
  Clusters,
  type EventBusConnector,
  Health,
  RetryPolicy,
  Route
} from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Cause, Effect, Layer, Queue } from "effect"
import { advance, append, inTime, orders, scenario, settle, start } from "../bus.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

const reader = Binding.make("orders", { ...orders, handler: () => Effect.void })

/** Status and reasons in one line: what most of these tests look at. */
const shown = ({ health }: Connector) =>
  Effect.map(health, ({ status, reasons }) => [status, ...reasons.map(({ _tag }) => _tag)].join(" "))

const withTopic = Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) => createTopic("orders"))

describe("health", () => {
  scenario("LIF-19 UP while everything runs, or was stopped on purpose", () =>
    Effect.gen(function* () {
      yield* withTopic
      const { connector } = yield* start(reader)
      yield* append("orders", 0, ["a"])
      yield* advance("1 hour")
      assert.deepStrictEqual(yield* connector.health, { status: "UP", live: true, ready: true, reasons: [] })
      yield* connector.stop("orders")
      assert.strictEqual(yield* shown(connector), "UP")
      yield* connector.unregister("orders")
      assert.strictEqual(yield* shown(connector), "UP")
    })
  )

  scenario("LIF-20 DEGRADED while an operator holds a binding or a tier, with the holder and since when", () =>
    Effect.gen(function* () {
      yield* withTopic
      const retry = RetryPolicy.tiered({ tiers: ["1 minute"] })
      const { connector } = yield* start(Binding.make("orders", { ...orders, retry, handler: () => Effect.void }))
      yield* advance("5 seconds")
      yield* connector.pause("orders")
      yield* connector.resume("orders")
      yield* connector.pause("orders", { tier: 1 })
      assert.deepStrictEqual((yield* connector.health).reasons, [
        { _tag: "TierPaused", cluster: "default", binding: "orders", tier: 1 }
      ])
      yield* connector.pause("orders")
      const { status, live, ready, reasons } = yield* connector.health
      assert.deepStrictEqual({ status, live, ready }, { status: "DEGRADED", live: true, ready: false })
      assert.deepStrictEqual(reasons[0], {
        ...{ _tag: "Paused", cluster: "default", binding: "orders", sinceMillis: 5_000, by: ["operator"] }
      })
      // A record that waits because of a pause is not a second failure.
      yield* append("orders", 0, ["a"])
      yield* advance("1 hour")
      assert.strictEqual(yield* shown(connector), "DEGRADED Paused TierPaused")
    })
  )

  scenario("LIF-20 DEGRADED while a record halts its partition", () =>
    Effect.gen(function* () {
      yield* withTopic
      yield* append("orders", 0, ["a"])
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          orderingMode: "STRICT",
          onExhausted: "halt",
          retry: RetryPolicy.none,
          handler: () => Effect.die("no")
        })
      )
      yield* settle
      assert.strictEqual(yield* shown(connector), "DEGRADED Paused")
    })
  )

  scenario("LIF-20 DEGRADED while a breaker is open or half-open, with the time of its next probe", () =>
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
      const [open] = (yield* connector.health).reasons
      assert.deepInclude(open, {
        _tag: "BreakerOpen",
        binding: "orders",
        state: "OPEN",
        sinceMillis: 0,
        nextProbeAtMillis: 60_000
      })
      assert.strictEqual(yield* shown(connector), "DEGRADED BreakerOpen")
      isFailing = false
      yield* advance("2 minutes")
      yield* append("orders", 0, ["c"])
      yield* advance("1 second")
      assert.strictEqual(yield* shown(connector), "UP")
    })
  )

  scenario("LIF-21 DOWN while copies cannot be published, after five seconds, until they are", () =>
    Effect.gen(function* () {
      yield* withTopic
      yield* append("orders", 0, ["a"])
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          missingTopics: "wait",
          handler: () => Effect.fail("no"),
          onError: () => Route.deadLetter()
        })
      )
      yield* advance("4 seconds")
      assert.strictEqual(yield* shown(connector), "UP")
      yield* advance("2 seconds")
      const { status, live, reasons } = yield* connector.health
      assert.deepStrictEqual({ status, live }, { status: "DOWN", live: true })
      assert.deepInclude(reasons[0], { _tag: "PublisherFailing", topic: "orders.DLT", copies: 1, sinceMillis: 0 })
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders.DLT")
      yield* advance("30 seconds")
      assert.strictEqual(yield* shown(connector), "UP")
    })
  )

  scenario("LIF-17 LIF-21 DOWN at once when a client crashes, and UP when it is back", () =>
    Effect.gen(function* () {
      yield* withTopic
      const { inject } = yield* MemoryBroker.MemoryBroker
      const { connector } = yield* start(reader)
      yield* inject({ _tag: "ConnectionDropped" })
      yield* settle
      const { status, live, ready, reasons } = yield* connector.health
      assert.deepStrictEqual({ status, live, ready }, { status: "DOWN", live: true, ready: false })
      assert.deepInclude(reasons[0], { _tag: "ClusterUnreachable", cluster: "default", bindings: ["orders"] })
      yield* advance("2 seconds")
      assert.strictEqual(yield* shown(connector), "UP")
    })
  )

  scenario("LIF-21 a client that the cluster refuses is not reported as an unreachable cluster", () =>
    Effect.gen(function* () {
      const { broker } = yield* MemoryBroker.MemoryBroker
      yield* withTopic
      const defect = { ...broker, consumer: () => Effect.die(new TypeError("x is not a function")) }
      const { connector } = yield* Effect.provideService(start(reader), Broker.Broker, defect)
      yield* advance("20 seconds")
      const { status, ready, reasons } = yield* connector.health
      assert.deepStrictEqual({ status, ready }, { status: "DOWN", ready: false })
      assert.deepInclude(reasons[0], { _tag: "ConsumerCrashed", binding: "orders", consumer: 0, crashes: 5 })
      assert.include(reasons.map(Health.describe)[0], "crashed 5 times in a row: consume failed with TypeError")
    })
  )

  scenario("LIF-21 a source topic that does not exist is named within half a minute", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      const { connector } = yield* start(reader)
      yield* advance("30 seconds")
      const [reason] = (yield* connector.health).reasons
      assert.deepInclude(reason, { _tag: "TopicUnreadable", binding: "orders", topic: "orders", sinceMillis: 0 })
      yield* createTopic("orders")
      yield* advance("5 minutes")
      assert.strictEqual(yield* shown(connector), "UP")
    })
  )

  scenario(
    "LIF-21 a poll loop that fetches nothing is seen within two minutes, and only then is the process not alive",
    () =>
      Effect.gen(function* () {
        const { broker } = yield* MemoryBroker.MemoryBroker
        yield* withTopic
        // A session that never resumes: as if its loop was stuck.
        const stuck: Broker.Broker["Service"] = {
          ...broker,
          consumer: (options) =>
            Effect.map(broker.consumer(options), (session) => ({ ...session, resume: () => Effect.void }))
        }
        const { connector } = yield* Effect.provideService(start(reader), Broker.Broker, stuck)
        yield* connector.pause("orders")
        yield* append("orders", 0, ["a", "b"])
        yield* connector.resume("orders")
        yield* advance("50 seconds")
        assert.strictEqual(yield* shown(connector), "UP")
        yield* advance("70 seconds")
        const { status, live, reasons } = yield* connector.health
        assert.deepStrictEqual({ status, live }, { status: "DOWN", live: false })
        assert.deepInclude(reasons[0], { _tag: "PollLoopStuck", topic: "orders", partition: 0, lag: 2n })
      })
  )

  scenario("LIF-21 a partition that does not move for maxPollInterval is named, with its lag", () =>
    Effect.gen(function* () {
      yield* withTopic
      yield* append("orders", 0, ["a", "b", "c"])
      // Nobody can cut off what cannot be interrupted.
      const { connector, close } = yield* start(
        Binding.make("orders", {
          ...orders,
          maxPollInterval: "2 minutes",
          shutdownTimeout: "1 second",
          handler: () => Effect.uninterruptible(Effect.sleep("1 hour"))
        })
      )
      yield* advance("110 seconds")
      assert.strictEqual(yield* shown(connector), "UP")
      yield* advance("30 seconds")
      const { status, live, reasons } = yield* connector.health
      assert.deepStrictEqual({ status, live }, { status: "DOWN", live: true })
      assert.deepInclude(reasons[0], { _tag: "PartitionStalled", partition: 0, lag: 3n })
      yield* inTime(close)
    })
  )

  scenario("LIF-08 LIF-21 a consumer that its group refuses is DOWN and not ready, however often it tries again", () =>
    Effect.gen(function* () {
      yield* withTopic
      const { broker } = yield* MemoryBroker.MemoryBroker
      const refusal = new BrokerError.UnexpectedBrokerError({
        ...{ operation: "consume", code: "INVALID_SESSION_TIMEOUT", detail: "the group refuses it", retryable: false }
      })
      const refusing: Broker.Broker["Service"] = {
        ...broker,
        consumer: (options) =>
          Effect.gen(function* () {
            const session = yield* broker.consumer(options)
            const events = yield* Queue.unbounded<Broker.ConsumerEvent, BrokerError.BrokerError>()
            Queue.failCauseUnsafe(events, Cause.fail(refusal))
            return { ...session, events }
          })
      }
      const app = yield* Effect.provideService(start(reader), Broker.Broker, refusing)
      for (let minute = 0; minute < 3; minute++) {
        const { status, ready, reasons } = yield* app.connector.health
        assert.deepStrictEqual({ status, ready }, { status: "DOWN", ready: false })
        assert.deepInclude(reasons[0], { _tag: "ConsumerCrashed", binding: "orders", error: refusal })
        yield* advance("1 minute")
      }
    })
  )

  scenario("LIF-08 not ready while it starts, and while it closes", () =>
    Effect.gen(function* () {
      yield* withTopic
      const { broker } = yield* MemoryBroker.MemoryBroker
      const slow: Broker.Broker["Service"] = {
        ...broker,
        consumer: (options) => Effect.delay(broker.consumer(options), "5 seconds")
      }
      const app = yield* Effect.provideService(start(reader), Broker.Broker, slow)
      const starting = yield* app.connector.health
      assert.deepStrictEqual([starting.ready, starting.status], [false, "DEGRADED"])
      assert.deepInclude(starting.reasons[0], { _tag: "Starting", binding: "orders", consumer: 0 })
      yield* advance("6 seconds")
      assert.deepStrictEqual(yield* app.connector.health, { status: "UP", live: true, ready: true, reasons: [] })
      yield* inTime(app.close)
      const closed = yield* app.connector.health
      assert.deepStrictEqual([closed.ready, closed.reasons], [false, [{ _tag: "Closing" }]])
    })
  )
})

describe("health of several clusters", () => {
  it.effect(
    "MUL-06 a cluster that no longer answers is named with only its own bindings, although their sessions just wait",
    () =>
      Effect.gen(function* () {
        const east = yield* MemoryBroker.make()
        const west = yield* MemoryBroker.make()
        for (const { createTopic } of [east, west]) yield* createTopic("orders")
        const clusters = Clusters.layer({
          default: Layer.succeed(Broker.Broker, east.broker),
          west: Layer.succeed(Broker.Broker, {
            ...west.broker,
            admin: Effect.suspend(() => (hangs ? Effect.never : west.broker.admin))
          })
        })
        let hangs = false
        const onWest = Binding.make("orders", { ...orders, cluster: "west", handler: () => Effect.void })
        const { connector } = yield* Effect.provide(start(reader, onWest), clusters)
        yield* advance("1 minute")
        assert.strictEqual(yield* shown(connector), "UP")
        hangs = true
        yield* advance("30 seconds")
        const { status, live, reasons } = yield* connector.health
        assert.deepStrictEqual({ status, live }, { status: "DOWN", live: true })
        assert.deepInclude(reasons[0], { _tag: "ClusterUnreachable", cluster: "west", bindings: ["orders"] })
        assert.strictEqual(reasons.length, 1)
        hangs = false
        yield* advance("30 seconds")
        assert.strictEqual(yield* shown(connector), "UP")
      })
  )
})
