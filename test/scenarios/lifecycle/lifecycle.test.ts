import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, EventBusConnector, EventBusError, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Deferred, Effect, Layer } from "effect"
import { advance, append, inTime, nothingInUse, orders, scenario, settle, start, until } from "../bus.ts"

const values = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`)

const noting = (handled: Array<string>, settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}) =>
  Binding.make("orders", { ...orders, ...settings, handler: ({ value }) => Effect.sync(() => handled.push(value)) })

type State = EventBusError.ContainerState
type Operation = "start" | "stop" | "pause" | "resume" | "destroy" | "unregister"

/** The commands that bring a fresh binding with `autoStartup: false` into a state. */
const into: Record<Exclude<State, "DESTROYED">, ReadonlyArray<Operation>> = {
  CREATED: [],
  RUNNING: ["start"],
  PAUSED: ["start", "pause"],
  STOPPED: ["start", "stop"]
}

const allowed: Record<Operation, { readonly from: ReadonlyArray<State>; readonly to: State }> = {
  start: { from: ["CREATED", "STOPPED"], to: "RUNNING" },
  stop: { from: ["RUNNING", "PAUSED"], to: "STOPPED" },
  pause: { from: ["RUNNING"], to: "PAUSED" },
  resume: { from: ["PAUSED"], to: "RUNNING" },
  destroy: { from: ["CREATED", "RUNNING", "PAUSED", "STOPPED"], to: "DESTROYED" },
  unregister: { from: ["CREATED", "STOPPED"], to: "DESTROYED" }
}

describe("transitions (TST-06: lifecycle manager)", () => {
  for (const state of ["CREATED", "RUNNING", "PAUSED", "STOPPED"] as const) {
    for (const operation of Object.keys(allowed) as ReadonlyArray<Operation>) {
      const { from, to } = allowed[operation]
      const isAllowed = from.includes(state)
      scenario(
        `LIF-01..07 ${operation} from ${state} ${isAllowed ? `leads to ${to}` : "is refused and changes nothing"}`,
        () =>
          Effect.gen(function* () {
            const memory = yield* MemoryBroker.MemoryBroker
            yield* memory.createTopic("orders")
            const { connector } = yield* start(noting([], { autoStartup: false }))
            for (const step of into[state]) yield* connector[step]("orders")
            assert.strictEqual(yield* connector.getState("orders"), state)
            const exit = yield* Effect.result(connector[operation]("orders"))
            if (isAllowed) {
              assert.strictEqual(exit._tag, "Success")
              if (to !== "DESTROYED") assert.strictEqual(yield* connector.getState("orders"), to)
              else assert.deepStrictEqual(yield* connector.listBindings, [])
              return
            }
            assert.strictEqual(yield* connector.getState("orders"), state)
            const refused = yield* Effect.flip(connector[operation]("orders"))
            assert.instanceOf(refused, EventBusError.InvalidContainerState)
            assert.include(
              refused.message,
              `Cannot ${operation} binding 'orders': current state is ${state}, ${operation} requires ${from.join(" or ")}`
            )
          })
      )
    }
  }

  scenario("LIF-07 a refused pause names who already holds the binding", () =>
    Effect.gen(function* () {
      const { connector } = yield* start(noting([]))
      yield* connector.pause("orders")
      const refused = yield* Effect.flip(connector.pause("orders"))
      assert.include(refused.message, "it is paused by operator")
    })
  )

  scenario("LIF-08 a command for an unknown binding names the known ones", () =>
    Effect.gen(function* () {
      const { connector } = yield* start(noting([]))
      const refused = yield* Effect.flip(connector.stop("invoices"))
      assert.instanceOf(refused, EventBusError.BindingNotFound)
      assert.strictEqual(refused.message, "No binding named 'invoices' is registered. Registered are: [orders].")
    })
  )

  scenario("LIF-01 every change of state is an event, in order", () =>
    Effect.gen(function* () {
      const { connector, of } = yield* start(noting([]))
      yield* connector.pause("orders")
      yield* connector.resume("orders")
      yield* connector.stop("orders")
      yield* connector.start("orders")
      yield* connector.destroy("orders")
      assert.deepStrictEqual(
        of("StateChanged").map(({ from, to }) => `${from} ${to}`),
        [
          "CREATED RUNNING",
          "RUNNING PAUSED",
          "PAUSED RUNNING",
          "RUNNING STOPPED",
          "STOPPED RUNNING",
          "RUNNING DESTROYED"
        ]
      )
    })
  )
})

describe("registering", () => {
  scenario("BND-10 a name can be registered once; of two registrations at once, one wins", () =>
    Effect.gen(function* () {
      const { connector } = yield* start()
      const results = yield* Effect.all(
        [Effect.result(connector.register(noting([]))), Effect.result(connector.register(noting([])))],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(results.map(({ _tag }) => _tag).sort(), ["Failure", "Success"])
      const refused = yield* Effect.flip(connector.register(noting([])))
      assert.instanceOf(refused, EventBusError.BindingAlreadyExists)
    })
  )

  scenario(
    "BND-12 LIF-06 after destroy the name is free; a new binding resumes at the old one's committed offset",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, values(2))
        const handled: Array<string> = []
        const { connector } = yield* start(noting(handled))
        yield* connector.destroy("orders")
        assert.strictEqual((yield* memory.usage).members, 0)
        yield* append("orders", 0, ["v2"])
        yield* connector.register(noting(handled))
        yield* settle
        assert.deepStrictEqual(handled, ["v0", "v1", "v2"])
      })
  )

  scenario("BND-12 NFR-05 registering and destroying a binding does not affect another", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("invoices")
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      const invoices = { ...orders, topic: "invoices", groupId: "ledger" }
      yield* app.connector.register(
        Binding.make("invoices", { ...invoices, handler: () => Effect.never, shutdownTimeout: 0 })
      )
      yield* append("invoices", 0, ["x"])
      yield* append("orders", 0, values(3))
      yield* settle
      yield* app.connector.destroy("invoices")
      yield* append("orders", 0, ["last"])
      yield* settle
      assert.deepStrictEqual(handled, [...values(3), "last"])
      assert.strictEqual(app.of("PartitionAssigned").filter(({ binding }) => binding === "orders").length, 1)
    })
  )

  scenario(
    "CARD-03 a binding is a Layer: building it starts it, closing it stops it; merged layers share a connector",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, values(1))
        const handled: Array<string> = []
        const second = Binding.make("second", {
          ...orders,
          groupId: "second",
          naming: TopicName.perGroup,
          autoStartup: false,
          handler: () => Effect.void
        })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const context = yield* Layer.build(Layer.mergeAll(Binding.layer(noting(handled)), Binding.layer(second)))
            const connector = Context.get(context, EventBusConnector.EventBusConnector)
            yield* settle
            assert.deepStrictEqual(
              (yield* connector.listBindings).map(({ name, state }) => `${name} ${state}`),
              ["orders RUNNING", "second CREATED"]
            )
          })
        )
        assert.deepStrictEqual(handled, ["v0"])
        assert.deepStrictEqual(yield* memory.usage, nothingInUse)
      })
  )

  scenario("LIF-13 a connector that is closing takes no new binding", () =>
    Effect.gen(function* () {
      const app = yield* start(noting([]))
      yield* app.close
      const refused = yield* Effect.flip(app.connector.register(noting([])))
      assert.instanceOf(refused, EventBusError.ConnectorClosed)
    })
  )
})

describe("concurrent commands", () => {
  scenario("LIF-09 of two stops one runs and the other is refused; neither waits for ever", () =>
    Effect.gen(function* () {
      const { connector } = yield* start(noting([]))
      const results = yield* Effect.all(
        [Effect.result(connector.stop("orders")), Effect.result(connector.stop("orders"))],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(results.map(({ _tag }) => _tag).sort(), ["Failure", "Success"])
      assert.strictEqual(yield* connector.getState("orders"), "STOPPED")
    })
  )

  scenario("LIF-09 a start during a stop waits for it: no two runs of a binding overlap", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(2))
      let running = 0
      let most = 0
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () =>
            Effect.gen(function* () {
              most = Math.max(most, ++running)
              yield* Effect.sleep("10 seconds")
              running--
            })
        })
      )
      const commands = yield* Effect.forkChild(
        Effect.all([connector.stop("orders"), connector.start("orders")], { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      yield* advance("5 seconds")
      assert.isUndefined(commands.pollUnsafe())
      yield* advance("5 seconds")
      assert.strictEqual(commands.pollUnsafe()?._tag, "Success")
      assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
      yield* advance("10 seconds")
      assert.strictEqual(most, 1)
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario("LIF-09 a slow stop of one binding does not delay commands for another", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(1))
      const apart = { groupId: "other", naming: TopicName.perGroup }
      const other = Binding.make("other", { ...orders, ...apart, handler: () => Effect.void })
      const slow = Binding.make("orders", { ...orders, handler: () => Effect.sleep("20 seconds") })
      const { connector } = yield* start(slow, other)
      const stopping = yield* Effect.forkChild(connector.stop("orders"), { startImmediately: true })
      yield* connector.pause("other")
      yield* connector.resume("other")
      yield* connector.stop("other")
      assert.isUndefined(stopping.pollUnsafe())
    })
  )

  scenario("LIF-06 a destroy goes on when its caller is interrupted: the name becomes free", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(1))
      const slow = Binding.make("orders", { ...orders, handler: () => Effect.sleep("20 seconds") })
      const { connector } = yield* start(slow)
      yield* inTime(Effect.timeoutOption(connector.destroy("orders"), "1 second"), "1 second")
      yield* advance("20 seconds")
      assert.deepStrictEqual(yield* connector.listBindings, [])
      yield* connector.register(noting([]))
    })
  )
})

describe("stop", () => {
  scenario("LIF-03 LIF-12 stop waits for a running handler, commits it and leaves the group; nothing is left", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(3))
      const before = yield* memory.usage
      const handled: Array<string> = []
      const { connector } = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: ({ value }) =>
            Effect.andThen(
              Effect.sleep("10 seconds"),
              Effect.sync(() => handled.push(value))
            )
        })
      )
      yield* advance("5 seconds")
      yield* inTime(connector.stop("orders"))
      assert.deepStrictEqual(handled, ["v0"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      assert.deepStrictEqual(yield* memory.usage, before)
      yield* advance("1 hour")
      assert.deepStrictEqual(handled, ["v0"])
    })
  )

  scenario("LIF-02 start after stop resumes at the first unfinished record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(2))
      const handled: Array<string> = []
      const { connector } = yield* start(noting(handled))
      for (const value of ["v2", "v3"]) {
        yield* connector.stop("orders")
        yield* append("orders", 0, [value])
        yield* connector.start("orders")
        yield* settle
      }
      assert.deepStrictEqual(handled, values(4))
    })
  )

  scenario("LIF-12 a partition that is assigned while the binding stops handles nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const gate = yield* Deferred.make<void>()
      const started: Array<string> = []
      const stopping = Binding.make("orders", {
        ...orders,
        handler: ({ value }) =>
          Effect.andThen(
            Effect.sync(() => started.push(value)),
            Deferred.await(gate)
          )
      })
      const one = yield* start(stopping)
      const two = yield* start(noting([]))
      const mine = one.of("PartitionReleased")[0]!.partition === 0 ? 1 : 0
      yield* append("orders", mine, ["mine"])
      yield* settle
      const stop = yield* Effect.forkChild(one.connector.stop("orders"), { startImmediately: true })
      yield* inTime(two.close)
      yield* append("orders", 1 - mine, ["theirs"])
      yield* until(() => one.of("PartitionAssigned").length === 3, "1 second")
      yield* settle
      assert.deepStrictEqual(started, ["mine"])
      yield* Deferred.succeed(gate, undefined)
      yield* until(() => stop.pollUnsafe() !== undefined)
      assert.deepStrictEqual(started, ["mine"])
    })
  )

  scenario("LIF-12 with the broker gone, stop still ends within its limit", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(1))
      const { connector } = yield* start(Binding.make("orders", { ...orders, handler: () => Effect.sleep("1 second") }))
      yield* memory.inject({ _tag: "BrokerDown", duration: "1 hour" })
      const stop = yield* Effect.forkChild(connector.stop("orders"), { startImmediately: true })
      yield* until(() => stop.pollUnsafe() !== undefined, "1 second")
      assert.isBelow(yield* Effect.clockWith((clock) => clock.currentTimeMillis), 60_000)
    })
  )

  scenario(
    "LIF-14 a dead letter that is being published while the connector closes is acknowledged and counted",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("orders.DLT")
        yield* append("orders", 0, ["bad"])
        const app = yield* start(Binding.make("orders", { ...orders, handler: () => Effect.die("always") }))
        yield* advance("700 millis")
        assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 0)
        yield* inTime(app.close, "1 second")
        assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        assert.strictEqual((yield* memory.usage).producers, 0)
      }),
    { latency: { produce: "3 seconds" } }
  )
})
