import { assert, describe, it } from "@effect/vitest"
import { Binding, type BindingOptions, Serde } from "@eventbus/core"
import { Effect } from "effect"
import * as ConfigHash from "../../src/internal/fleet/configHash.ts"

const given = { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void } as const

const hashOf = (more: Pick<BindingOptions.CommonSettings, "orderingMode" | "perKey">) =>
  ConfigHash.make()([Binding.make("orders", { ...given, ...more }).definition])

describe("the hash of a process's settings", () => {
  it("differs by the ordering mode, and by each setting of the order per key", () => {
    const orderingMode = "PER_KEY"
    const hashes = [
      hashOf({}),
      hashOf({ orderingMode: "STRICT" }),
      hashOf({ orderingMode }),
      hashOf({ orderingMode, perKey: { onDeadLetter: "hold" } }),
      hashOf({ orderingMode, perKey: { holdFor: "1 hour" } }),
      hashOf({ orderingMode, perKey: { maxParkedKeys: 7 } }),
      hashOf({ orderingMode, perKey: { maxParkedBytes: 7 } })
    ]
    assert.strictEqual(new Set(hashes).size, hashes.length)
    assert.strictEqual(hashOf({ orderingMode, perKey: {} }), hashOf({ orderingMode }))
  })
})
