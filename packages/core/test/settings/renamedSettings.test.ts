import { assert, describe, it } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { Effect } from "effect"
import * as RenamedSettings from "../../src/internal/settings/renamedSettings.ts"

const options = { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void }

const problemsOf = (binding: Binding.Binding<unknown>) =>
  (Binding.problems([binding]).get(0) ?? []).map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)

describe("settings that were renamed", () => {
  for (const [former, current] of Object.entries(RenamedSettings.ofBinding)) {
    it(`${former} is refused with a hint that names ${current}, by every kind of binding`, () => {
      const old = { ...options, handleBatch: () => Effect.void, [former]: undefined }
      const refused = [`${former}: a setting that was renamed; ${current}, its new name`]
      assert.deepStrictEqual(problemsOf(Binding.make("orders", old)), refused)
      assert.deepStrictEqual(problemsOf(Binding.makeBatch("orders", old)), refused)
      assert.deepStrictEqual(problemsOf(Binding.makeTransactional("orders", old)), refused)
    })
  }

  it("the new names are taken", () => {
    const renamed = { isolationLevel: "read_uncommitted", maxPartitionFetchBytes: 1, fetchMaxWait: 1 } as const
    assert.deepStrictEqual(problemsOf(Binding.make("orders", { ...options, ...renamed })), [])
  })
})
