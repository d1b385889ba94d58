import { assert, describe, it } from "@effect/vitest"
import { Binding, type BindingOptions, Defaults, Serde } from "@eventbus/core"
import { Effect } from "effect"

const orders = { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void }

const perKey = (
  settings?: BindingOptions.PerKey,
  orderingMode: "PER_KEY" | "STRICT" | "RELAXED_IN_RETRY" = "PER_KEY"
) => Binding.make("orders", { ...orders, orderingMode, ...(settings === undefined ? {} : { perKey: settings }) })

const problems = (binding: Binding.Binding<unknown>) =>
  (Binding.problems([binding]).get(0) ?? []).map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)

describe("the settings of the order per key", () => {
  it("have their defaults, whatever the ordering mode is", () => {
    const defaults = {
      onDeadLetter: "continue",
      holdForMillis: 12 * 60 * 60 * 1000,
      maxParkedKeys: 50_000,
      maxParkedBytes: 16 * 1024 * 1024
    }
    assert.deepStrictEqual(Defaults.perKey, defaults as typeof Defaults.perKey)
    for (const binding of [perKey(), perKey({}), perKey(undefined, "STRICT"), Binding.make("orders", orders)]) {
      assert.deepStrictEqual(binding.definition.perKey, defaults as typeof binding.definition.perKey)
      assert.deepStrictEqual(problems(binding), [])
    }
  })

  it("are taken as they are given, each beside the defaults of the others", () => {
    const { definition } = perKey({ onDeadLetter: "hold", holdFor: "90 minutes" })
    const { maxParkedKeys, maxParkedBytes } = Defaults.perKey
    const expected = { onDeadLetter: "hold" as const, holdForMillis: 5_400_000, maxParkedKeys, maxParkedBytes }
    assert.deepStrictEqual(definition.perKey, expected)
    assert.deepStrictEqual(perKey({ maxParkedKeys: 1, maxParkedBytes: 2 }).definition.perKey, {
      ...Defaults.perKey,
      ...{ maxParkedKeys: 1, maxParkedBytes: 2 }
    })
  })

  it("out of range are refused, all at once and by their paths", () => {
    const wrong = { onDeadLetter: "stop", holdFor: 0, maxParkedKeys: 0, maxParkedBytes: "16 MiB" }
    assert.deepStrictEqual(problems(perKey(wrong as never)), [
      'perKey.onDeadLetter: \'stop\'; "continue" or "hold"',
      'perKey.holdFor: 0; a duration such as "10 seconds", or a whole number of ms, 1 ms to 9007199254740991 ms',
      "perKey.maxParkedKeys: 0; a whole number, 1 to 2147483647",
      "perKey.maxParkedBytes: '16 MiB'; a whole number, 1 to 9007199254740991"
    ])
  })

  it("are refused with another ordering mode, where they would have no effect", () => {
    const allowed = 'nothing, or orderingMode "PER_KEY" beside it: with another orderingMode it has no effect'
    const byDefault = Binding.make("orders", { ...orders, perKey: {} })
    assert.deepStrictEqual(problems(byDefault), [`perKey: given with orderingMode 'RELAXED_IN_RETRY'; ${allowed}`])
    const strict = perKey({ onDeadLetter: "hold" }, "STRICT")
    assert.deepStrictEqual(problems(strict), [`perKey: given with orderingMode 'STRICT'; ${allowed}`])
  })
})
