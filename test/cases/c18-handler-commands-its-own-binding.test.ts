import { assert, describe } from "@effect/vitest"
import { Binding, type EventBusConnector, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, nothingInUse, now, orders, scenario, settle, start, until } from "../scenarios/bus.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

/** A handler that gives a command to its own binding, waits for it, and takes another second. */
const commanding = (command: (connector: Connector) => Effect.Effect<void, unknown>) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders")
    yield* append("orders", 0, ["first", "second"])
    const done: Array<string> = []
    let connector: Connector | undefined
    const binding = Binding.make("orders", {
      ...orders,
      autoStartup: false,
      shutdownTimeout: "10 seconds",
      handler: ({ value }) =>
        Effect.gen(function* () {
          if (value === "first") yield* Effect.orDie(command(connector!))
          yield* Effect.sleep("1 second")
          done.push(value)
        })
    })
    const app = yield* start(binding)
    connector = app.connector
    yield* app.connector.start("orders")
    yield* settle
    return { app, done, memory }
  })

describe("C18 a handler that never settles, or commands its own binding", () => {
  scenario("LIF-12 a handler that never ends is interrupted at the bound; nothing committed, the group is left", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["v", "w"])
      let interrupted = 0
      const apart = { groupId: "other", naming: TopicName.perGroup }
      const other = Binding.make("other", { ...orders, ...apart, handler: () => Effect.void })
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          shutdownTimeout: "1 second",
          handler: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
        }),
        other
      )
      yield* inTime(app.close, "100 millis")
      assert.isAtMost(yield* now, 1_500)
      assert.strictEqual(interrupted, 1)
      assert.strictEqual((yield* memory.commits("billing")).filter(({ offset }) => offset > 0n).length, 0)
      assert.strictEqual(yield* memory.committed("other", "orders", 0), 2n)
      assert.deepStrictEqual(yield* memory.usage, nothingInUse)
    })
  )

  scenario("LIF-12 a handler that cannot be interrupted holds up neither the stop nor the other bindings", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["v"])
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          shutdownTimeout: "1 second",
          handler: () => Effect.uninterruptible(Effect.sleep("10 minutes"))
        })
      )
      yield* inTime(app.close, "1 second")
      assert.isAtMost(yield* now, 30_000)
      assert.strictEqual((yield* memory.usage).members, 0)
      yield* advance("10 minutes")
      assert.strictEqual((yield* memory.commits("billing")).filter(({ offset }) => offset > 0n).length, 0)
    })
  )

  scenario(
    "LIF-10 stop: the command returns at once, the handler ends and is committed, the next record is not started",
    () =>
      Effect.gen(function* () {
        const { app, done, memory } = yield* commanding((connector) => connector.stop("orders"))
        assert.strictEqual(yield* app.connector.getState("orders"), "STOPPED")
        yield* advance("1 second")
        assert.deepStrictEqual(done, ["first"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        assert.strictEqual((yield* memory.usage).members, 0)
      })
  )

  scenario("LIF-10 pause: the handler ends and is committed, the next record waits for the resume", () =>
    Effect.gen(function* () {
      const { app, done, memory } = yield* commanding((connector) => connector.pause("orders"))
      yield* advance("1 second")
      assert.deepStrictEqual(done, ["first"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      yield* app.connector.resume("orders")
      yield* advance("1 second")
      assert.deepStrictEqual(done, ["first", "second"])
    })
  )

  scenario("LIF-10 destroy: the handler ends and is committed, then the binding is gone and its name free", () =>
    Effect.gen(function* () {
      const { app, done, memory } = yield* commanding((connector) => connector.destroy("orders"))
      yield* advance("1 second")
      assert.deepStrictEqual(done, ["first"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      yield* until(() => Effect.runSync(app.connector.listBindings).length === 0)
      assert.strictEqual((yield* memory.usage).members, 0)
    })
  )

  scenario(
    "LIF-10 LIF-13 destroy, and the program closes at once: closing waits for the handler that is still running",
    () =>
      Effect.gen(function* () {
        const { app, done, memory } = yield* commanding((connector) => connector.destroy("orders"))
        yield* inTime(app.close, "100 millis")
        assert.deepStrictEqual(done, ["first"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        assert.strictEqual((yield* memory.usage).members, 0)
      })
  )

  scenario(
    "LIF-10 restart: stop and start from inside the handler; it ends, and the next record comes after the restart",
    () =>
      Effect.gen(function* () {
        const { app, done } = yield* commanding((connector) =>
          Effect.andThen(connector.stop("orders"), connector.start("orders"))
        )
        yield* advance("1 second")
        yield* until(() => done.length === 2, "1 second")
        assert.deepStrictEqual(done, ["first", "second"])
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        assert.strictEqual(app.of("SessionStarted").length, 2)
      })
  )
})
