import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"
import * as RenamedSettings from "../../src/internal/settings/renamedSettings.ts"

const options = { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void }

const problemsOf = (binding: Binding.Binding<unknown>) =>
  (Binding.problems([binding]).get(0) ?? []).map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)

/** Every former name and the present one, written here again: a name that is forgotten would be ignored in silence. */
const formerNames: RenamedSettings.Renamed = {
  exceptions: "retryableExceptions, nonRetryableExceptions and skipToTierMapping of `retry`",
  isolation: "isolationLevel",
  maxBytesPerPartition: "maxPartitionFetchBytes",
  maxWait: "fetchMaxWait",
  membership: "staticMembership"
}

describe("settings that were renamed", () => {
  it("CFG-20 no former name is left out of these tests", () => {
    assert.deepStrictEqual(RenamedSettings.ofBinding, formerNames)
    assert.deepStrictEqual(RenamedSettings.ofAlerts, { timeout: "alertTimeout" })
    const ofBlocking: RenamedSettings.Renamed = { initialInterval: "initialBackoff", maxInterval: "maxBackoff" }
    assert.deepStrictEqual(RenamedSettings.ofBlocking, ofBlocking)
  })

  for (const [former, current] of Object.entries(formerNames)) {
    it(`CFG-20 ${former} is refused with a hint that names ${current}, by every kind of binding`, () => {
      const old = { ...options, handleBatch: () => Effect.void, [former]: undefined }
      const refused = [`${former}: a setting that was renamed; ${current}, its new name`]
      assert.deepStrictEqual(problemsOf(Binding.make("orders", old)), refused)
      assert.deepStrictEqual(problemsOf(Binding.makeBatch("orders", old)), refused)
      assert.deepStrictEqual(problemsOf(Binding.makeTransactional("orders", old)), refused)
      // The new names are no former names of anything.
      for (const name of current.match(/[a-z][A-Za-z]+(?=,|$| and| of)/g) ?? []) assert.notProperty(formerNames, name)
    })
  }

  it("former names of the attempts in place are refused with a hint, at the top and below tiers", () => {
    const old = { initialInterval: "1 second", maxInterval: "1 second" } as RetryPolicy.BlockingOptions
    const refused = [
      "blocking.initialInterval is a setting that was renamed; allowed: initialBackoff, its new name",
      "blocking.maxInterval is a setting that was renamed; allowed: maxBackoff, its new name"
    ].join("\n")
    assert.throws(() => RetryPolicy.blocking(old), refused)
    assert.throws(() => RetryPolicy.tiered({ blocking: old }), refused)
  })

  it("CFG-20 a duration that is none is named as it was written, and the number NaN is none", () => {
    const wrong = { ...options, commitInterval: "soon", fetchMaxWait: Number.NaN, shutdownTimeout: -1 }
    const allowed = (least: number) =>
      `a duration such as "10 seconds", or a whole number of ms, ${least} ms to 2147483647 ms`
    // @ts-expect-error: "soon" is no duration
    assert.deepStrictEqual(problemsOf(Binding.make("orders", wrong)), [
      `commitInterval: 'soon'; ${allowed(0)}`,
      `fetchMaxWait: NaN; ${allowed(0)}`,
      `shutdownTimeout: -1; ${allowed(0)}`
    ])
  })

  it("the new names are taken", () => {
    const renamed = {
      isolationLevel: "read_uncommitted",
      maxPartitionFetchBytes: 1,
      fetchMaxWait: 1,
      staticMembership: true
    } as const
    assert.deepStrictEqual(problemsOf(Binding.make("orders", { ...options, ...renamed })), [])
  })
})
