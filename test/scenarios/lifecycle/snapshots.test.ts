/** A snapshot describes a binding and its partitions, and is right while nothing is fetched. */
import { assert, describe } from "@effect/vitest"
import { Binding, type EventBusConnector, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { advance, append, orders, scenario, settle, start } from "../bus.ts"

const reader = Binding.make("orders", { ...orders, handler: () => Effect.void })

const lags = (connector: EventBusConnector.EventBusConnector["Service"]) =>
  Effect.map(connector.snapshot("orders"), ({ partitions }) => partitions.map(({ lag }) => lag))

describe("snapshots", () => {
  scenario("BND-11 LIF-01 a running binding: containers, consumer, partitions with their offsets", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders", { partitions: 2, firstOffset: 9_007_199_254_740_993n })
      yield* append("orders", 1, ["a", "b", "c"])
      const gate = yield* Deferred.make<void>()
      let calls = 0
      const binding = Binding.make("orders", {
        ...orders,
        retry: RetryPolicy.tiered({ tiers: ["1 minute", "5 minutes"] }),
        circuitBreaker: { minimumNumberOfCalls: 5 },
        handler: () => (++calls === 2 ? Deferred.await(gate) : Effect.void)
      })
      const { connector } = yield* start(binding)
      yield* advance("25 seconds")
      const snapshot = yield* connector.snapshot("default:orders")
      assert.deepInclude(snapshot, { name: "orders", cluster: "default", topic: "orders", groupId: "billing" })
      assert.deepStrictEqual(snapshot.binding, binding)
      assert.deepInclude(snapshot, { state: "RUNNING", sinceMillis: 0, pausedBy: [], unpublished: undefined })
      assert.deepStrictEqual(
        snapshot.containers.map(({ name, tier, topic, state }) => `${name} ${tier} ${topic} ${state}`),
        [
          "eventbus-orders 0 orders RUNNING",
          "eventbus-orders-retry-1 1 orders.retry-1 RUNNING",
          "eventbus-orders-retry-2 2 orders.retry-2 RUNNING"
        ]
      )
      assert.deepStrictEqual(
        snapshot.consumers.map(({ index, status, hasRun }) => ({ index, status, hasRun })),
        [{ index: 0, status: "running", hasRun: true }]
      )
      assert.strictEqual(snapshot.breaker?.state, "CLOSED")
      assert.deepStrictEqual(
        snapshot.partitions.map(({ topic, partition, tier }) => `${topic}-${partition} ${tier}`),
        [
          "orders-0 0",
          "orders-1 0",
          "orders.retry-1-0 1",
          "orders.retry-1-1 1",
          "orders.retry-2-0 2",
          "orders.retry-2-1 2"
        ]
      )
      const [idle, busy] = snapshot.partitions
      assert.deepInclude(idle, { committed: undefined, lag: 0n, inFlight: 0, buffered: 0, waitingMillis: 0 })
      assert.deepInclude(busy, {
        position: 9_007_199_254_740_994n,
        committed: 9_007_199_254_740_994n,
        logEnd: 9_007_199_254_740_996n,
        lag: 2n,
        pauses: [],
        inFlight: 1,
        buffered: 3,
        waitingMillis: 20_000
      })
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      assert.deepStrictEqual((yield* connector.snapshot("orders")).partitions[1]?.lag, 0n)
    })
  )

  scenario("OBS-11 lag of main topic and tiers grows while a binding is paused, although nothing is fetched", () =>
    Effect.gen(function* () {
      const { createTopic, usage } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { connector } = yield* start(reader)
      yield* connector.pause("orders")
      yield* append("orders", 0, ["a", "b"])
      yield* advance("30 seconds")
      const { partitions, state, sinceMillis, pausedBy } = yield* connector.snapshot("orders")
      assert.deepStrictEqual(
        { state, sinceMillis, pausedBy },
        { state: "PAUSED", sinceMillis: 0, pausedBy: ["operator"] }
      )
      assert.deepStrictEqual(
        partitions.map(({ lag, pauses }) => ({ lag, pauses })),
        [{ lag: 2n, pauses: ["operator"] }]
      )
      yield* append("orders", 0, ["c"])
      yield* advance("30 seconds")
      assert.deepStrictEqual(yield* lags(connector), [3n])
      assert.strictEqual((yield* usage).admins, 0)
      yield* connector.resume("orders")
      yield* settle
      assert.deepStrictEqual(yield* lags(connector), [0n])
    })
  )

  scenario(
    "OBS-11 lag is 0 after aborted records, control records and holes, and counts the records of an open transaction",
    () =>
      Effect.gen(function* () {
        const { broker, createTopic, appendAborted, appendControl, compact } = yield* MemoryBroker.MemoryBroker
        yield* createTopic("orders")
        yield* append("orders", 0, ["a", "b", "c"])
        yield* compact("orders", 0, ({ offset }) => offset === 2n)
        const { connector } = yield* start(reader)
        yield* appendAborted("orders", 0, [{}, {}])
        yield* appendControl("orders", 0, 3)
        yield* advance("1 minute")
        assert.deepStrictEqual(yield* lags(connector), [0n])
        const producer = yield* broker.transactionalProducer({ transactionalId: "t" })
        yield* producer.transaction((transaction) =>
          Effect.gen(function* () {
            yield* transaction.send({ topic: "orders", key: null, value: null })
            yield* connector.pause("orders")
            yield* advance("30 seconds")
            assert.deepStrictEqual(yield* lags(connector), [1n])
          })
        )
        yield* advance("30 seconds")
        // The record and the marker of its commit.
        assert.deepStrictEqual(yield* lags(connector), [2n])
      })
  )

  scenario("LIF-05 a tier that is paused by itself shows in its container, not in the binding's state", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const retry = RetryPolicy.tiered({ tiers: ["1 minute", "5 minutes"] })
      const { connector } = yield* start(Binding.make("orders", { ...orders, retry, handler: () => Effect.void }))
      yield* connector.pause("orders", { tier: 2 })
      const { state, containers, pausedTiers } = yield* connector.snapshot("orders")
      assert.deepStrictEqual([state, pausedTiers], ["RUNNING", [2]])
      assert.deepStrictEqual(
        containers.map(({ state }) => state),
        ["RUNNING", "RUNNING", "PAUSED"]
      )
      yield* connector.stop("orders")
      const stopped = yield* connector.snapshot("orders")
      assert.deepStrictEqual([stopped.consumers, stopped.partitions], [[], []])
      assert.deepStrictEqual(
        stopped.containers.map(({ state }) => state),
        ["STOPPED", "STOPPED", "STOPPED"]
      )
    })
  )

  scenario(
    "DLT-03 copies that cannot be published are shown with their error until they are published or no longer needed",
    () =>
      Effect.gen(function* () {
        const { createTopic } = yield* MemoryBroker.MemoryBroker
        yield* createTopic("orders", { partitions: 2 })
        for (const partition of [0, 1]) yield* append("orders", partition, ["a"])
        const failing = Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          missingTopics: "wait",
          handler: () => Effect.fail("no"),
          onError: () => Route.deadLetter()
        })
        const { connector } = yield* start(failing)
        yield* advance("1 second")
        const { unpublished } = yield* connector.snapshot("orders")
        assert.deepInclude(unpublished, { topic: "orders.DLT", sinceMillis: 0, copies: 2 })
        assert.strictEqual(unpublished?.error._tag, "UnknownTopic")
        yield* createTopic("orders.DLT")
        yield* advance("1 minute")
        assert.strictEqual((yield* connector.snapshot("orders")).unpublished, undefined)
        assert.deepStrictEqual(yield* lags(connector), [0n, 0n])
      })
  )

  scenario("LIF-02 MUL-04 'changes' gives each change of state with its reasons, and nothing else", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      const { connector } = yield* start()
      const told = yield* Effect.forkChild(connector.changes.pipe(Stream.take(4), Stream.runCollect), {
        startImmediately: true
      })
      yield* connector.register(reader)
      yield* settle
      yield* append("orders", 0, ["a"])
      yield* settle
      yield* connector.pause("orders")
      yield* connector.resume("orders")
      yield* connector.destroy("orders")
      assert.deepStrictEqual(
        (yield* Fiber.join(told)).map(({ cluster, from, to, reasons }) => `${cluster} ${from} ${to} ${reasons}`),
        [
          "default CREATED RUNNING ",
          "default RUNNING PAUSED operator",
          "default PAUSED RUNNING ",
          "default RUNNING DESTROYED "
        ]
      )
    })
  )
})
