/** The order per key in a file: its settings, and what it refuses. */
import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Effect } from "effect"
import { issuesOf, withOrders } from "../issues.ts"

const definitionOf = (configuration: Configuration.Configuration) =>
  Configuration.withoutHandlers(configuration)[0]!.definition

const paths = (text: string) =>
  Effect.map(issuesOf(Configuration.parse(text)), (issues) => issues.map((issue) => issue.slice(0, issue.indexOf(":"))))

const orders = (key: string) => `eventbus.bindings.orders.${key}`

describe("the order per key in a file", () => {
  it.effect("has the defaults of code, and they stand in the settings", () =>
    Effect.gen(function* () {
      const configuration = yield* Configuration.parse(withOrders("ordering-mode: PER_KEY"))
      const { orderingMode, perKey, tiers } = definitionOf(configuration)
      assert.deepStrictEqual([orderingMode, tiers.count], ["PER_KEY", 3])
      const rest = { onDeadLetter: "continue", maxParkedKeys: 50_000, maxParkedBytes: 16_777_216 } as const
      assert.deepStrictEqual(perKey, { ...rest, holdForMillis: 43_200_000 })
      assert.deepStrictEqual(configuration.bindings[0]!.perKey, { ...rest, holdForMs: 43_200_000 })
      const relaxed = yield* Configuration.parse(withOrders())
      assert.isUndefined(relaxed.bindings[0]!.perKey)
    })
  )

  it.effect("takes its settings from the binding, from the defaults of the file and from variables", () =>
    Effect.gen(function* () {
      const inBinding = withOrders("ordering-mode: PER_KEY", "per-key: { on-dead-letter: hold, holdFor: 90m }")
      const env = {
        EVENTBUS_BINDINGS_ORDERS_PER_KEY_MAX_PARKED_KEYS: "7",
        EVENTBUS_DEFAULTS_PER_KEY_MAX_PARKED_BYTES: "1024"
      }
      const { perKey } = definitionOf(yield* Configuration.parse(inBinding, { env }))
      assert.deepStrictEqual(perKey, {
        ...{ onDeadLetter: "hold", holdForMillis: 5_400_000 },
        ...{ maxParkedKeys: 7, maxParkedBytes: 1024 }
      })
    })
  )

  it.effect("is refused beside what it cannot keep, by the keys of the file", () =>
    Effect.gen(function* () {
      for (const [line, path] of [
        ["retry: { tiers: [] }", "retry"],
        ["on-exhausted: halt", "onExhausted"],
        ["processing-order: unordered", "processingOrder"],
        ["listener-type: BATCH", "listenerType"],
        ["retry: { consumer: separate }", "retry.consumer"],
        ["retry: { tiers: [1s, { delay: 5s, multiplier: 2 }] }", "retry.tiers[1]"],
        ["group-protocol: consumer", "groupProtocol"],
        ["partition-assignment-strategy: [range]", "partitionAssignmentStrategy"]
      ] as const) {
        assert.deepStrictEqual(yield* paths(withOrders("ordering-mode: PER_KEY", line)), [orders(path)], line)
      }
    })
  )

  it.effect("its section is refused with another ordering mode", () =>
    Effect.gen(function* () {
      for (const lines of [["per-key: {}"], ["ordering-mode: STRICT", "per-key: { hold-for: 1h }"]])
        assert.deepStrictEqual(yield* paths(withOrders(...lines)), [orders("perKey")], lines.join())
    })
  )
})
