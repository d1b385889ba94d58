/** ADM-01: every operation is a service; nothing of HTTP is needed. */
import { assert, describe, it } from "@effect/vitest"
import { EventBusAdmin } from "@eventbus/admin"
import { Binding, Broker, EventBusConnector } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Layer, Logger } from "effect"
import { binding, eventually, start } from "./api.ts"

const payments = { name: "payments", topic: "payments", groupId: "payers", handler: "charge" }

describe("ADM-01 the service", () => {
  it.live("commands, registers, and removes, and answers the binding", () =>
    Effect.gen(function* () {
      const { admin, connector } = yield* start()
      assert.deepStrictEqual(
        (yield* admin.list).map(({ key, state }) => [key, state]),
        [["default:orders", "RUNNING"]]
      )
      assert.deepStrictEqual(
        [
          (yield* admin.pause("orders")).state,
          (yield* admin.resume("orders")).state,
          (yield* admin.pause("orders", { tier: 1 })).pausedTiers,
          (yield* admin.resume("orders", { tier: 1 })).pausedTiers,
          (yield* admin.stop("orders")).state,
          (yield* admin.start("orders")).state
        ],
        ["PAUSED", "RUNNING", [1], [], "STOPPED", "RUNNING"]
      )
      assert.strictEqual((yield* admin.register(payments)).key, "default:payments")
      assert.strictEqual(
        (yield* admin.registerJson(JSON.stringify({ ...payments, name: "x", topic: "x" }))).key,
        "default:x"
      )
      assert.strictEqual((yield* admin.unregister("payments")).state, "DESTROYED")
      assert.deepStrictEqual((yield* connector.listBindings).map(({ name }) => name).sort(), ["orders", "x"])
      assert.strictEqual(yield* admin.keyOf("orders"), "default:orders")
      assert.strictEqual((yield* admin.health).live, true)
    })
  )

  it.live("works on dead letters", () =>
    Effect.gen(function* () {
      const { admin, append } = yield* start()
      yield* append("orders", "bad", "bad", "bad", "bad")
      yield* eventually(admin.stats("orders"), ({ count }) => count === 4)
      assert.strictEqual((yield* admin.replayToTier("orders", 1, 1)).replayed, 1)
      assert.strictEqual((yield* admin.replayWindow("orders", 0, 1)).replayed, 0)
      assert.strictEqual((yield* admin.replay("orders", 1)).replayed, 1)
      assert.strictEqual((yield* admin.purge("orders", 1)).purged, 0)
    })
  )

  it.live("fails with typed errors, and a closing program takes no bindings", () =>
    Effect.gen(function* () {
      const { admin, close } = yield* start({
        clusters: ["dr"],
        bindings: [binding(), binding("orders", { cluster: "dr", topic: "x" })]
      })
      const tagOf = <E extends { readonly _tag: string }>(effect: Effect.Effect<unknown, E>) =>
        Effect.map(Effect.flip(effect), ({ _tag }) => _tag)
      assert.deepStrictEqual(
        [
          yield* tagOf(admin.get("nobody")),
          yield* tagOf(admin.pause("orders")),
          yield* tagOf(admin.start("dr:orders")),
          yield* tagOf(admin.register({ ...payments, cluster: "west" })),
          yield* tagOf(admin.register({ ...payments, name: "orders" })),
          yield* tagOf(admin.register(undefined)),
          yield* tagOf(admin.replay("dr:orders", -1)),
          yield* tagOf(admin.replayToTier("dr:orders", 7, 1))
        ],
        [
          "BindingNotFound",
          "AmbiguousBinding",
          "InvalidContainerState",
          "UnknownCluster",
          "BindingAlreadyExists",
          "ConfigurationValidation",
          "InvalidArgument",
          "UnknownTier"
        ]
      )
      yield* close
      assert.strictEqual(yield* tagOf(admin.register(payments)), "ConnectorClosed")
    })
  )

  it.live("uses the running connector of the program, and without handlers registers nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.make()
      const program = EventBusAdmin.layer().pipe(
        Layer.provideMerge(Binding.layer(binding("orders", { autoStartup: false }))),
        Layer.provide(Layer.succeed(Broker.Broker, memory.broker))
      )
      const context = yield* Layer.build(program)
      const admin = Context.get(context, EventBusAdmin.EventBusAdmin)
      yield* admin.start("orders")
      const connector = Context.get(context, EventBusConnector.EventBusConnector)
      assert.strictEqual(yield* connector.getState("orders"), "RUNNING")
      const { issues } = (yield* Effect.flip(admin.register({ ...payments, concurrency: 0 }))) as {
        readonly issues: ReadonlyArray<{ readonly path: string }>
      }
      assert.deepStrictEqual(issues.map(({ path }) => path).sort(), ["concurrency", "handler"])
      assert.strictEqual((yield* admin.list).length, 1)
    }).pipe(Effect.provide(Logger.layer([])))
  )
})
