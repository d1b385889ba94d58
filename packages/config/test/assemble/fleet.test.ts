import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handlers } from "@eventbus/config"
import { Clusters, EventBusConnector } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

const bindings = "  bindings: { orders: { topic: orders, group-id: billing } }"
const handlers = Handlers.make({ orders: () => Effect.void })

describe("a fleet in a file", () => {
  it.effect("OPS-13 CFG-09 an empty section joins with all defaults, and a file without one joins nothing", () =>
    Effect.gen(function* () {
      const { fleet } = yield* Configuration.parse(`eventbus:\n  fleet: {}\n${bindings}`)
      assert.deepStrictEqual(fleet, {
        ...{ cluster: "default", controlTopic: "__eventbus.control", fleetTopic: "__eventbus.fleet" },
        ...{ onControlUnavailable: "run", controlTimeout: 10_000 }
      })
      assert.isFalse("fleet" in (yield* Configuration.parse(`eventbus:\n${bindings}`)))
    })
  )

  it.effect("OPS-13 the layer holds the bindings as the file says", () =>
    Effect.gen(function* () {
      const config = yield* Configuration.parse(
        `eventbus:\n  fleet: { on-control-unavailable: hold, control-timeout: 3s }\n${bindings}`
      )
      const connector = yield* EventBusConnector.EventBusConnector.pipe(
        Effect.tap(() => TestClock.adjust("1 minute")),
        Effect.flatMap(({ snapshot }) => snapshot("orders")),
        Effect.provide(Configuration.layer(config, handlers).pipe(Layer.provide(MemoryBroker.layer())))
      )
      assert.include(connector.fleetHolds[0]?.reason, "onControlUnavailable is 'hold'")
    })
  )

  it.effect("CFG-04 mistakes are named with path, value and what is allowed", () =>
    Effect.gen(function* () {
      const clusters = "  clusters: { east: { brokers: 'a:9092' } }"
      const binding = "  bindings: { orders: { topic: orders, group-id: billing, cluster: east } }"
      const issuesOf = (fleet: string) =>
        Effect.map(
          Effect.flip(Configuration.parse(`eventbus:\n  fleet: ${fleet}\n${clusters}\n${binding}`)),
          ({ issues }) => issues.map(({ path, found, allowed }) => `${path} ${found} ${allowed}`)
        )
      assert.deepStrictEqual(yield* issuesOf("{ cluster: west }"), [
        'eventbus.fleet.cluster "west" one of the clusters east; did you mean east?'
      ])
      assert.deepStrictEqual(yield* issuesOf("{ cluster: east, on-control-unavailable: wait }"), [
        'eventbus.fleet.onControlUnavailable "wait" run or hold'
      ])
    })
  )

  it.effect("CFG-04 without clusters in the file, the program's decide which alias there is", () =>
    Effect.gen(function* () {
      const config = yield* Configuration.parse(`eventbus:\n  fleet: { cluster: west }\n${bindings}`)
      const clusters = Clusters.layer({ default: MemoryBroker.layer() })
      const error = yield* Effect.flip(
        Effect.scoped(Layer.build(Configuration.layer(config, handlers).pipe(Layer.provide(clusters))))
      )
      assert.include(error.message, 'eventbus.fleet.cluster: found "west", allowed is one of default')
    })
  )
})
