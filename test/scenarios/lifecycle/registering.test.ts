/** Bindings that come and go while others run: checked the same way, at any moment, from any number of fibers. */
import { assert, describe } from "@effect/vitest"
import {
  Binding,
  type BindingOptions,
  Broker,
  BrokerError,
  Clusters,
  type EventBusConnector,
  RetryPolicy
} from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer, Random } from "effect"
import { advance, append, inTime, nothingInUse, orders, scenario, settle, start, until } from "../bus.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

const make = (name: string, settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}) =>
  Binding.make(name, { ...orders, topic: name, groupId: name, ...settings, handler: () => Effect.void })

const withTopics = (names: ReadonlyArray<string>, options?: { readonly partitions: number }) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) =>
    Effect.forEach(names, (name) => createTopic(name, options), { discard: true })
  )

const ten = Array.from({ length: 10 }, (_, index) => `b${index}`)

const unreachable = new BrokerError.BrokerUnavailable({ brokers: ["nowhere:9092"], detail: "connection refused" })

describe("registering at run time", () => {
  scenario(
    "BND-12 LIF-18 ten bindings start side by side; bindings that cannot start are reported and delay no other",
    () =>
      Effect.gen(function* () {
        yield* withTopics(ten)
        const { broker } = yield* MemoryBroker.MemoryBroker
        /** Joining takes five seconds, for one group for ever, and one is refused. */
        const slow: Broker.Broker["Service"] = {
          ...broker,
          consumer: (options) =>
            options.groupId === "b3"
              ? Effect.never
              : options.groupId === "b7"
                ? Effect.fail(unreachable)
                : Effect.delay(broker.consumer(options), "5 seconds")
        }
        const handled = new Set<string>()
        const { connector } = yield* start()
        for (const name of ten) yield* append(name, 0, ["a"])
        const registerAll = Effect.forEach(
          ten,
          (name) =>
            connector.register(
              Binding.make(name, {
                ...orders,
                topic: name,
                groupId: name,
                handler: ({ bindingName }) => Effect.sync(() => handled.add(bindingName))
              })
            ),
          { concurrency: "unbounded" }
        )
        yield* Effect.provideService(registerAll, Broker.Broker, slow)
        yield* advance("6 seconds")
        assert.strictEqual(handled.size, 8)
        assert.isFalse(handled.has("b3") || handled.has("b7"))
        const { status, ready, reasons } = yield* connector.health
        assert.deepStrictEqual({ status, ready }, { status: "DOWN", ready: false })
        assert.deepStrictEqual(
          reasons.map((reason) =>
            reason._tag === "ClusterUnreachable" ? reason.bindings.join() : "binding" in reason ? reason.binding : ""
          ),
          ["b7", "b3"]
        )
        yield* inTime(connector.destroy("b3"))
        yield* inTime(connector.destroy("b7"))
        assert.strictEqual((yield* connector.health).status, "UP")
      })
  )

  scenario("BND-10 look-up by topic finds the bindings that read it, in main container or tier, on every cluster", () =>
    Effect.gen(function* () {
      const { broker } = yield* MemoryBroker.MemoryBroker
      const here = Layer.succeed(Broker.Broker, broker)
      const { connector } = yield* start()
      const named = (cluster: string) => make("orders", { cluster, autoStartup: false })
      yield* Effect.provide(
        Effect.forEach([named("default"), named("west"), make("invoices", { autoStartup: false })], connector.register),
        Clusters.layer({ default: here, west: here })
      )
      const keysOf = (topic: string) =>
        Effect.map(connector.getByTopic(topic), (all) => all.map(({ cluster, name }) => `${cluster}:${name}`))
      assert.deepStrictEqual(yield* keysOf("orders"), ["default:orders", "west:orders"])
      assert.deepStrictEqual(yield* keysOf("__proto__"), [])
      const removed = yield* connector.unregister("west:orders")
      assert.deepInclude(removed, { name: "orders", cluster: "west", state: "CREATED" })
      assert.deepStrictEqual(yield* keysOf("orders"), ["default:orders"])
    })
  )

  scenario("BND-10 of fifty fibers that register one name, one wins, and the others leave nothing", () =>
    Effect.gen(function* () {
      yield* withTopics(["orders"])
      const { connector } = yield* start()
      const results = yield* Effect.forEach(Array(50), () => Effect.result(connector.register(make("orders"))), {
        concurrency: "unbounded"
      })
      assert.strictEqual(results.filter(({ _tag }) => _tag === "Success").length, 1)
      yield* settle
      const { usage } = yield* MemoryBroker.MemoryBroker
      assert.deepInclude(yield* usage, { consumers: 1, members: 1 })
    })
  )

  scenario("NAM-05 no two containers of a program have one name, over bindings, tiers and clusters", () =>
    Effect.gen(function* () {
      const { broker } = yield* MemoryBroker.MemoryBroker
      const here = Layer.succeed(Broker.Broker, broker)
      const { connector } = yield* start()
      const tiered = { retry: RetryPolicy.tiered({ tiers: ["1 minute"] }), autoStartup: false }
      const register = (name: string, settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = tiered) =>
        connector
          .register(make(name, { ...settings, topic: `topic-${name.replace(":", "-")}` }))
          .pipe(Effect.provide(Clusters.layer({ default: here, west: here })))
      yield* register("orders")
      yield* register("orders", { ...tiered, cluster: "west" })
      const refused = yield* Effect.flip(register("orders-retry-1", { autoStartup: false }))
      assert.include(
        refused.message,
        "name: found 'orders-retry-1', allowed is another name: container 'eventbus-orders-retry-1' of binding 'orders' is called like one of this"
      )
      assert.include(
        (yield* Effect.flip(register("west:orders"))).message,
        "container 'eventbus-west:orders' of binding 'orders'"
      )
      // Tier 2 does not exist, so its name is free.
      yield* register("orders-retry-2")
      yield* register("invoices-retry-1", { autoStartup: false })
      assert.include((yield* Effect.flip(register("invoices"))).message, "of binding 'invoices-retry-1' is called")
      const names = (yield* connector.listBindings).flatMap(({ containers }) => containers.map(({ name }) => name))
      assert.deepStrictEqual(names.toSorted(), [
        "eventbus-invoices-retry-1",
        "eventbus-orders",
        "eventbus-orders-retry-1",
        "eventbus-orders-retry-2",
        "eventbus-orders-retry-2-retry-1",
        "eventbus-west:orders",
        "eventbus-west:orders-retry-1"
      ])
      const together = Binding.problems([make("orders", tiered), make("orders-retry-1", { topic: "other" })])
      assert.deepStrictEqual(
        (together.get(1) ?? []).map(({ path }) => path),
        ["name"]
      )
    })
  )

  for (const seed of [1, 2, 3, 4, 5]) {
    scenario(
      `LIF-09 commands for one name from many fibers give a linear history and leave nothing (seed ${seed})`,
      () =>
        Effect.gen(function* () {
          yield* withTopics(["orders"], { partitions: 3 })
          const app = yield* start()
          const { connector } = app
          const succeeded = new Map<string, number>()
          const counted = (command: string, effect: Effect.Effect<unknown, unknown, Broker.Broker>) =>
            Effect.match(effect, {
              onSuccess: () => {
                succeeded.set(command, (succeeded.get(command) ?? 0) + 1)
              },
              onFailure: () => {}
            })
          const commands = commandsOf(connector)
          const operator = Effect.gen(function* () {
            for (let step = 0; step < 40; step++) {
              const [command, effect] = commands[yield* Random.nextIntBetween(0, commands.length - 1)]!
              yield* counted(command, effect)
              yield* Effect.sleep(yield* Random.nextIntBetween(0, 50))
            }
          })
          const operators = Effect.forEach(Array(12), () => operator, { concurrency: "unbounded" })
          yield* inTime(Random.withSeed(operators, `seed ${seed}`), "10 millis")
          yield* Effect.ignore(inTime(connector.destroy("orders")))
          yield* until(() => app.of("StateChanged").at(-1)?.to === "DESTROYED")
          const changes = app.of("StateChanged")
          // Each change begins where the one before it ended; a destroyed binding makes room for a new one.
          let shown = "CREATED"
          for (const { from, to } of changes) {
            assert.strictEqual(from, shown)
            shown = to === "DESTROYED" ? "CREATED" : to
          }
          const went = (from: string, to: string) =>
            changes.filter((change) => change.from === from && change.to === to).length
          assert.strictEqual(went("RUNNING", "PAUSED"), succeeded.get("pause"))
          assert.strictEqual(went("PAUSED", "RUNNING"), succeeded.get("resume"))
          assert.strictEqual(went("RUNNING", "STOPPED") + went("PAUSED", "STOPPED"), succeeded.get("stop"))
          assert.isAbove(succeeded.get("register") ?? 0, 3)
          yield* settle
          const { usage } = yield* MemoryBroker.MemoryBroker
          assert.deepStrictEqual(yield* usage, nothingInUse)
        })
    )
  }

  scenario("BND-12 CFG-20 a binding that is refused at the start is also refused at run time, and leaves nothing", () =>
    Effect.gen(function* () {
      yield* withTopics(["orders"])
      const app = yield* start(make("orders"))
      const refusal = yield* Effect.flip(
        app.connector.register(make("more", { topic: "orders.DLT", concurrency: 1.5 }))
      )
      assert.strictEqual(refusal._tag, "ConfigurationValidation")
      assert.include(refusal.message, "concurrency")
      const conflict = yield* Effect.flip(app.connector.register(make("more", { topic: "orders.DLT" })))
      assert.include(conflict.message, "binding 'orders'")
      assert.deepStrictEqual(
        (yield* app.connector.listBindings).map(({ name, state }) => `${name} ${state}`),
        ["orders RUNNING"]
      )
    })
  )

  scenario("CFG-13 missingTopics require: nothing is read until the dead letter and retry topics exist", () =>
    Effect.gen(function* () {
      yield* withTopics(["orders"])
      const { createTopic, partitionCount } = yield* MemoryBroker.MemoryBroker
      yield* append("orders", 0, ["a"])
      const handled: Array<string> = []
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          missingTopics: "require",
          handler: ({ value }) => Effect.sync(() => handled.push(value))
        })
      )
      yield* advance("1 minute")
      const { status, reasons } = yield* connector.health
      assert.strictEqual(status, "DOWN")
      assert.include(
        reasons.flatMap((reason) => ("error" in reason ? [reason.error.message] : [])).join(),
        "orders.DLT"
      )
      assert.deepStrictEqual(handled, [])
      assert.strictEqual(yield* partitionCount("orders.DLT"), 0)
      yield* createTopic("orders.DLT")
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, ["a"])
      assert.strictEqual((yield* connector.health).status, "UP")
    })
  )
})

const commandsOf = (connector: Connector) =>
  [
    ["register", connector.register(make("orders", { shutdownTimeout: "1 second" }))],
    ["start", connector.start("orders")],
    ["stop", connector.stop("orders")],
    ["pause", connector.pause("orders")],
    ["resume", connector.resume("orders")],
    ["destroy", connector.destroy("orders")]
  ] as const
