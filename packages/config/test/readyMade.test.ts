import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handler, Handlers } from "@eventbus/config"
import { EventBusConnector, Metrics, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { withOrders } from "./issues.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

const file = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "eventbus-ready-made-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
).pipe(
  Effect.map((folder) => {
    const path = join(folder, "app.yaml")
    writeFileSync(path, withOrders("retry: { tiers: [], tier0: { max-attempts: 1 } }"))
    return path
  })
)

const handlers = Handlers.make({
  orders: Handler.make({
    value: Serde.string,
    handler: ({ value }) => (value === "bad" ? Effect.die("bad") : Effect.void)
  })
})

/** The parts of a running connector, as a program sees them. */
const partsOf = Effect.fnUntraced(function* (connector: Connector) {
  yield* TestClock.adjust("10 seconds")
  const bindings = (yield* connector.listBindings).map(({ name }) => name)
  const { status } = yield* connector.health
  const letters = yield* connector.deadLetters("orders")
  const { count } = yield* letters.stats
  yield* connector.pause("orders")
  const state = yield* connector.getState("orders")
  const processed = (yield* Metric.snapshot).filter(({ id }) => id === Metrics.definitions.recordsProcessed.name)
  return {
    bindings,
    status,
    count,
    state,
    purged: yield* letters.purge(Number.MAX_SAFE_INTEGER),
    processed: processed.length
  }
})

type Change = (connector: Connector) => Partial<Connector>

/** Runs the file with one layer, over which another one puts parts of the program's own. */
const run = (change: Change = () => ({}), isMetered = true) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders")
    const values = ["good", "bad"].map((value) => ({ value: new TextEncoder().encode(value) }))
    yield* memory.append("orders", 0, values)
    const ready = Configuration.layerFile(yield* file, handlers, { env: {} })
    const changed = Layer.effect(
      EventBusConnector.EventBusConnector,
      Effect.map(EventBusConnector.EventBusConnector, (connector) => ({ ...connector, ...change(connector) }))
    ).pipe(Layer.provide(ready))
    const context = yield* Layer.build(changed)
    return yield* partsOf(Context.get(context, EventBusConnector.EventBusConnector))
  }).pipe(
    Effect.provideService(Metrics.Enabled, isMetered),
    Effect.provideService(Metric.MetricRegistry, new Map()),
    Effect.provide(MemoryBroker.layer())
  )

const whole: Effect.Success<ReturnType<typeof partsOf>> = {
  bindings: ["orders"],
  status: "UP",
  count: 1,
  state: "PAUSED",
  purged: 1,
  processed: 1
}

const replaced: ReadonlyArray<readonly [string, Change, object]> = [
  ["registry", () => ({ listBindings: Effect.succeed([]) }), { bindings: [] }],
  ["lifecycle", () => ({ pause: () => Effect.void }), { state: "RUNNING" }],
  [
    "health",
    (connector) => ({ health: Effect.map(connector.health, (health) => ({ ...health, status: "DOWN" as const })) }),
    { status: "DOWN" }
  ],
  [
    "admin",
    (connector) => ({
      deadLetters: (name) =>
        Effect.map(connector.deadLetters(name), (letters) => ({ ...letters, purge: () => Effect.succeed(0) }))
    }),
    { purged: 0 }
  ]
]

describe("the ready-made layer", () => {
  it.effect(
    "BND-02 one layer from a file wires registry, lifecycle, metrics, health and the commands of operators",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* run(), whole)
      })
  )

  it.effect.each(replaced)("BND-02 the %s can be replaced, and the rest stays", ([, change, differs]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* run(change), { ...whole, ...differs })
    })
  )

  it.effect("BND-02 metrics can be left out, and the rest stays", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* run(undefined, false), { ...whole, processed: 0 })
    })
  )
})
