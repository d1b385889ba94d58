import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"

const fileOf = (retry: string) => `
eventbus:
  bindings:
    orders:
      topic: orders
      group-id: billing
      retry: ${retry}
`

describe("waits that grow, in a file", () => {
  it.effect("CFG-02 MSG-15 MSG-20 the tier of the binding has them, bounded by number and time", () =>
    Effect.gen(function* () {
      const text = fileOf(
        "{ max-elapsed-time-ms: 90s, tiers: [{ delay-ms: 1s, multiplier: 2, max-delay-ms: 30s, max-attempts: 7 }] }"
      )
      const configuration = yield* Configuration.parse(text)
      const [binding] = Configuration.withoutHandlers(configuration)
      const { retry, tiers } = binding!.definition
      assert.strictEqual(retry.maxElapsedMillis, 90_000)
      assert.deepStrictEqual(
        [1, 2, 3, 4, 5, 6, 7].map((attempt) => tiers.waitMillis(1, attempt)),
        [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
      )
    })
  )

  it.effect("CFG-04 mistakes are named by the keys of the file", () =>
    Effect.gen(function* () {
      const issuesOf = (retry: string) =>
        Effect.map(Effect.flip(Configuration.parse(fileOf(retry))), ({ issues }) =>
          issues.map(({ path }) => path.replace(/ .*/, ""))
        )
      const at = "eventbus.bindings.orders.retry"
      assert.deepStrictEqual(yield* issuesOf("{ tiers: [{ delay-ms: 10s, max-delay-ms: 1s }] }"), [
        `${at}.tiers[0].maxDelayMs`
      ])
      assert.deepStrictEqual(yield* issuesOf("{ tiers: [{ delay-ms: 10s, multiplier: 0.5 }] }"), [
        `${at}.tiers[0].multiplier`
      ])
      assert.deepStrictEqual(yield* issuesOf("{ tiers: [10s], max-elapsed-time-ms: 5s }"), [`${at}.maxElapsedTimeMs`])
    })
  )
})

describe("waits that grow, in a transactional binding", () => {
  it("MSG-20 are refused: its offsets move in order", () => {
    const retry = { tiers: [{ delay: "1 second" as const, multiplier: 2 }] }
    const binding = Binding.makeTransactional("orders", {
      ...{ topic: "orders", groupId: "billing", value: Serde.string },
      retry: RetryPolicy.tiered(retry),
      handler: () => Effect.void
    })
    assert.deepStrictEqual(
      Array.from(Binding.problems([binding]).values())
        .flat()
        .map(({ path }) => path),
      ["retry.tiers"]
    )
  })
})
