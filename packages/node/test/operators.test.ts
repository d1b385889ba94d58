/** The options `fleet` and `audit` of a bus reach the fleet and the audit log of the core. */

import { assert, it } from "@effect/vitest"
import { Audit, Broker, Fleet } from "@eventbus/core"
import { consumer, Serde } from "@eventbus/node"
import { Context, Effect, Layer, Option } from "effect"
import { startBus, until } from "./bus.ts"

const base = { topic: "orders", groupId: "billing", value: Serde.string }
const reason = "the bank is down"

it.live(
  "RCH-06 OPS-13 the options of a fleet reach it: an operator in another process sees the version, and holds and releases the consumer",
  () =>
    Effect.gen(function* () {
      const topics = { controlTopic: "own.control", fleetTopic: "own.fleet" }
      const handled: Array<string> = []
      const orders = consumer({ ...base, handler: ({ value }) => void handled.push(value) })
      const { bus, kafka } = yield* Effect.promise(() =>
        startBus({ consumers: { orders }, fleet: { ...topics, version: "1.4.2", controlTimeout: "2 seconds" } })
      )
      const operator = Layer.provide(Fleet.layer(topics), Layer.succeed(Broker.Broker, kafka.broker))
      const fleet = Context.get(yield* Layer.build(operator), Fleet.Fleet)
      yield* Effect.promise(() => bus.ready())

      const target = { binding: "orders", groupId: "billing" }
      yield* fleet.hold({ ...target, reason, by: "ann" })
      yield* Effect.promise(() => until(() => !bus.health().ready))
      assert.include(bus.health().reasons[0]?.message, "paused by fleet")
      yield* Effect.promise(() => bus.publish("orders", { value: "o-1" }))
      const { processes } = yield* fleet.view
      assert.deepStrictEqual(
        processes.map(({ version }) => version),
        ["1.4.2"]
      )
      assert.deepStrictEqual(handled, [])

      yield* fleet.release({ ...target, reason: "the bank is back" })
      yield* Effect.promise(() => until(() => handled.length === 1))
    })
)

it.live("RCH-06 OPS-25 the options of the audit log reach it: an extension notes its action in the topic", () =>
  Effect.gen(function* () {
    const action = {
      by: "ann",
      from: "http",
      permissions: ["operate"],
      action: "pause",
      binding: "default:orders"
    } as const
    const noting = Layer.effectDiscard(
      Effect.flatMap(Effect.serviceOption(Audit.Audit), (audit) =>
        Option.getOrThrow(audit).around({ ...action, target: {}, reason }, Effect.void)
      )
    )
    const { kafka } = yield* Effect.promise(() => startBus({ audit: { topic: "own.audit" }, extension: noting }))
    const entries = yield* Effect.promise(() => kafka.records("own.audit"))
    const outcomes = entries.map(({ value }) => JSON.parse(new TextDecoder().decode(value!)).outcome)
    assert.deepStrictEqual(outcomes, ["begun", "done"])
  })
)
