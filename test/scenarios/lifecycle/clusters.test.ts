/** Bindings on several clusters: each stays on its own, whatever the names have in common, and whatever happens to the others. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, BrokerError, Clusters, IdempotencyStore, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer, type Scope } from "effect"
import { type App, advance, bytes, orders, scenario, settle, start, text, until } from "../bus.ts"

type Cluster = MemoryBroker.Service

/** Two clusters that know nothing of each other, both with topic `orders`. */
const twoClusters = (
  title: string,
  body: (east: Cluster, west: Cluster) => Effect.Effect<void, unknown, Broker.Broker | Scope.Scope>,
  west: MemoryBroker.Options = {}
) =>
  it.effect(title, () =>
    Effect.gen(function* () {
      const clusters = [yield* MemoryBroker.make(), yield* MemoryBroker.make(west)] as const
      for (const { createTopic } of clusters) yield* createTopic("orders")
      const [east, other] = clusters.map(({ broker }) => Layer.succeed(Broker.Broker, broker))
      yield* Effect.provide(body(...clusters), Clusters.layer({ default: east!, west: other! }))
    })
  )

const write = (cluster: Cluster, topic: string, ...values: ReadonlyArray<string>) =>
  cluster.append(
    topic,
    0,
    values.map((value) => ({ key: bytes(value), value: bytes(value) }))
  )

const valuesOf = (cluster: Cluster, topic: string) =>
  Effect.map(cluster.log(topic, 0), (records) => records.map(({ value }) => text(value)))

/** The values that a binding handles, with a prefix. */
const reader = (handled: Array<string>, cluster?: string, prefix = cluster ?? "default") =>
  Binding.make("orders", {
    ...orders,
    ...(cluster === undefined ? {} : { cluster }),
    handler: ({ value }) => Effect.sync(() => handled.push(`${prefix} ${value}`))
  })

describe("bindings on several clusters", () => {
  twoClusters(
    "MUL-01 MUL-02 MUL-04 one name, group and topic on two clusters are two bindings, each with its own offsets",
    (east, west) =>
      Effect.gen(function* () {
        yield* write(east, "orders", "e1", "e2", "e3")
        yield* write(west, "orders", "w1")
        const handled: Array<string> = []
        const app = yield* start(reader(handled), reader(handled, "west"))
        yield* settle
        assert.deepStrictEqual([...handled].sort(), ["default e1", "default e2", "default e3", "west w1"])
        assert.deepStrictEqual(
          app
            .of("Settled")
            .map(({ cluster, binding, record }) => `${cluster}:${binding} ${text(record.value)}`)
            .sort(),
          ["default:orders e1", "default:orders e2", "default:orders e3", "west:orders w1"]
        )
        yield* app.close
        assert.deepStrictEqual(
          [yield* east.committed("billing", "orders", 0), yield* west.committed("billing", "orders", 0)],
          [3n, 1n]
        )
      })
  )

  twoClusters(
    "MUL-03 a record is retried and dead-lettered on the cluster of its binding, and nowhere else",
    (east, west) =>
      Effect.gen(function* () {
        yield* write(east, "orders", "kept")
        yield* write(west, "orders", "lost")
        const failing = Binding.make("payments", {
          ...orders,
          cluster: "west",
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
          handler: () => Effect.die("no")
        })
        const app = yield* start(failing)
        yield* advance("2 minutes")
        assert.deepStrictEqual(yield* valuesOf(west, "orders.retry-1"), ["lost"])
        assert.deepStrictEqual(yield* valuesOf(west, "orders.DLT"), ["lost"])
        assert.deepStrictEqual(yield* east.partitionCount("orders.retry-1"), 0)
        assert.deepStrictEqual(yield* east.partitionCount("orders.DLT"), 0)
        assert.deepStrictEqual((yield* east.group("billing")).members, [])
        yield* app.close
      })
  )

  twoClusters("MUL-04 BND-09 a plain name is enough while it is unique; otherwise the error names both keys", () =>
    Effect.gen(function* () {
      const handled: Array<string> = []
      const { connector } = yield* start(reader(handled), reader(handled, "west"))
      const refusal = yield* Effect.flip(connector.pause("orders"))
      assert.strictEqual(refusal._tag, "AmbiguousBinding")
      assert.include(refusal.message, "'default:orders' or 'west:orders'")
      yield* connector.pause("west:orders")
      assert.strictEqual(yield* connector.getState("west:orders"), "PAUSED")
      assert.strictEqual(yield* connector.getState("default:orders"), "RUNNING")
      yield* connector.destroy("default:orders")
      yield* connector.resume("orders")
      assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
      const unknown = yield* Effect.flip(connector.stop("default:orders"))
      assert.include(unknown.message, "[west:orders]")
    })
  )

  twoClusters("MUL-05 an unknown alias is refused with the known ones, together with all other mistakes", () =>
    Effect.gen(function* () {
      const { connector } = yield* start()
      const wrong = Binding.make("orders", { ...orders, cluster: "wset", concurrency: 0, handler: () => Effect.void })
      const refusal = yield* Effect.flip(connector.register(wrong))
      assert.strictEqual(refusal._tag, "ConfigurationValidation")
      assert.include(
        refusal.message,
        "cluster: found 'wset', allowed is one of the clusters that are known: default, west"
      )
      assert.include(refusal.message, "concurrency: found 0")
      const colon = Binding.make("orders", { ...orders, cluster: "a:b", handler: () => Effect.void })
      assert.include((yield* Effect.flip(connector.register(colon))).message, "no ':' in it")
      assert.deepStrictEqual(yield* connector.listBindings, [])
    })
  )

  twoClusters(
    "MUL-04 ruling 1 bindings of two clusters may share topics that two bindings of one cluster may not",
    () =>
      Effect.gen(function* () {
        const of = (cluster: string, groupId: string) =>
          Binding.make("orders", { ...orders, cluster, groupId, handler: () => Effect.void })
        const { connector } = yield* start(of("default", "a"), of("west", "b"))
        const other = Binding.make("more", { ...orders, cluster: "west", groupId: "c", handler: () => Effect.void })
        const refusal = yield* Effect.flip(connector.register(other))
        assert.include(refusal.message, "binding 'orders' uses this topic too")
        const again = yield* Effect.flip(connector.register(of("west", "b")))
        assert.strictEqual(again._tag, "BindingAlreadyExists")
        assert.include(again.message, "'west:orders'")
      })
  )

  twoClusters(
    "OFF-19 MUL-04 one idempotency store: records of two clusters at the same offset are both handled",
    (east, west) =>
      Effect.gen(function* () {
        yield* write(east, "orders", "e1")
        yield* write(west, "orders", "w1")
        const handled: Array<string> = []
        const once = (cluster: string) =>
          Binding.make("orders", {
            ...orders,
            cluster,
            idempotency: {},
            handler: ({ value }) => Effect.sync(() => handled.push(value))
          })
        yield* Effect.provide(
          Effect.andThen(start(once("default"), once("west")), settle),
          IdempotencyStore.layerMemory()
        )
        assert.deepStrictEqual([...handled].sort(), ["e1", "w1"])
      })
  )

  twoClusters(
    "LIF-09 MUL-04 a handler may stop the binding of its own name on the other cluster, and waits for it",
    (east) =>
      Effect.gen(function* () {
        let app: App | undefined
        let seen: number | undefined
        const handled: Array<string> = []
        const stopping = Binding.make("orders", {
          ...orders,
          handler: () =>
            Effect.gen(function* () {
              yield* Effect.orDie(app!.connector.stop("west:orders"))
              seen = (yield* app!.connector.listBindings).find(({ cluster }) => cluster === "west")?.consumers.length
            })
        })
        app = yield* start(stopping, reader(handled, "west"))
        yield* write(east, "orders", "go")
        yield* until(() => seen !== undefined)
        assert.strictEqual(seen, 0)
      })
  )
})

describe("a cluster that is unreachable", () => {
  const down: Broker.Broker["Service"] = {
    consumer: () => Effect.fail(unavailable),
    producer: () => Effect.fail(unavailable),
    transactionalProducer: () => Effect.fail(unavailable),
    reader: () => Effect.fail(unavailable),
    admin: Effect.fail(unavailable)
  }

  scenario("MUL-06 ruling 37 leaves bindings of other clusters running; its own start when it is back", () =>
    Effect.gen(function* () {
      const east = yield* MemoryBroker.MemoryBroker
      const west = yield* MemoryBroker.make()
      for (const { createTopic } of [east, west]) yield* createTopic("orders")
      let reachable = false
      const flickering: Broker.Broker["Service"] = {
        consumer: (options) => Effect.suspend(() => (reachable ? west.broker : down).consumer(options)),
        producer: (options) => Effect.suspend(() => (reachable ? west.broker : down).producer(options)),
        transactionalProducer: (options) =>
          Effect.suspend(() => (reachable ? west.broker : down).transactionalProducer(options)),
        reader: (options) => Effect.suspend(() => (reachable ? west.broker : down).reader(options)),
        admin: Effect.suspend(() => (reachable ? west.broker : down).admin)
      }
      const handled: Array<string> = []
      const clusters = Clusters.layer({
        default: Layer.succeed(Broker.Broker, east.broker),
        west: Layer.succeed(Broker.Broker, flickering)
      })
      const app = yield* Effect.provide(start(reader(handled, "west"), reader(handled)), clusters)
      yield* write(east, "orders", "e1")
      yield* write(west, "orders", "w1")
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, ["default e1"])
      const consumers = Effect.map(app.connector.listBindings, (all) =>
        all.map(({ cluster, consumers }) => `${cluster} ${consumers.map(({ status }) => status)}`).sort()
      )
      assert.deepStrictEqual(yield* consumers, ["default running", "west crashed"])
      const crashes = app.of("SessionCrashed")
      assert.isTrue(crashes.length >= 2 && crashes.every(({ cluster }) => cluster === "west"))
      reachable = true
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, ["default e1", "west w1"])
      assert.deepStrictEqual(yield* consumers, ["default running", "west running"])
    })
  )
})

const unavailable = new BrokerError.BrokerUnavailable({ brokers: ["west:9092"], detail: "connection refused" })

describe("Clusters", () => {
  it.effect(
    "MUL-02 a configuration may lack the alias 'default'; a binding that names no cluster is then refused with the known ones",
    () =>
      Effect.gen(function* () {
        const cluster = yield* MemoryBroker.make()
        const layer = Clusters.layerMap(new Map([["east", Layer.succeed(Broker.Broker, cluster.broker)]]))
        yield* Effect.gen(function* () {
          assert.strictEqual(yield* Clusters.get("east"), cluster.broker)
          const refusal = yield* Effect.flip(Clusters.get("default"))
          assert.strictEqual(refusal.message, "There is no cluster 'default'. Known are: [east].")
          const broker = yield* Broker.Broker
          assert.include((yield* Effect.flip(Effect.scoped(broker.admin))).message, "Known are: [east]")
        }).pipe(Effect.provide(layer))
      })
  )

  scenario("MUL-01 without clusters the program's Broker is 'default'", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Clusters.get("default"), yield* Broker.Broker)
      assert.include((yield* Effect.flip(Clusters.get("east"))).message, "Known are: [default]")
    })
  )
})
