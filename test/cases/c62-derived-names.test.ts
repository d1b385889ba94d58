import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Binding, type BindingOptions, DeadLetter, EventBusError, RetryPolicy, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Result } from "effect"
import { orders, scenario, start } from "../scenarios/bus.ts"

const binding = (name: string, options: Partial<BindingOptions.Settings<Uint8Array | null, string>>) =>
  Binding.make(name, { ...orders, ...options, handler: () => Effect.void })

/** The problems of each binding as `path: found, allowed`. */
const problemsOf = (...bindings: ReadonlyArray<Binding.Binding<never>>) =>
  Array.from(Binding.problems(bindings), ([index, issues]) =>
    issues.map(({ path, found, allowed }) => `${index} ${path}: ${found}, ${allowed}`)
  ).flat()

describe("C62 derived names that nobody checks", () => {
  scenario("ruling 1 ruling 81 a binding on a journal is refused with the names and the rule", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders.DLT.replays")
      const { connector } = yield* start()
      const error = yield* Effect.flip(connector.register(binding("journal", { topic: "orders.DLT.replays" })))
      assert.instanceOf(error, EventBusError.ConfigurationValidation)
      assert.include(error.message, "topic: found 'orders.DLT.replays'")
      assert.include(error.message, "the name of the journal of dead letter topic 'orders.DLT'")
    })
  )

  it("ruling 1 a journal whose name another binding reads or derives is refused, whatever its naming", () => {
    const naming = { ...TopicName.standard, deadLetter: () => "dead" }
    const [reads] = problemsOf(binding("orders", { naming }), binding("other", { topic: "dead.replays" }))
    assert.include(reads, "'dead.replays'")
    const twice = problemsOf(
      binding("orders", { naming }),
      binding("other", {
        topic: "other",
        groupId: "other",
        naming: { ...TopicName.standard, deadLetter: () => "dead.replays" }
      })
    )
    assert.isTrue(twice.some((problem) => problem.includes("dead.replays")))
  })

  it("ruling 1 a topic name that leaves no room for a derived name is refused, with the name, its length and the limit", () => {
    const topic = "o".repeat(240)
    const [problem] = problemsOf(binding("orders", { topic }))
    assert.include(
      problem,
      `deadLetter.journal: '${topic}.DLT.replays', a legal topic name: it has 252 characters; at most 249 are allowed`
    )
    assert.deepStrictEqual(problemsOf(binding("orders", { topic: "o".repeat(237) })), [])
  })

  it("ruling 1 an empty suffix of a tier or of the dead letter topic is refused", () => {
    for (const topicSuffix of ["", ".", "a b", null as never]) {
      try {
        RetryPolicy.tiered({ tiers: [{ delay: 1_000, topicSuffix }] })
        assert.fail(`suffix ${JSON.stringify(topicSuffix)} was taken`)
      } catch (refused) {
        assert.instanceOf(refused, RetryPolicy.InvalidRetryPolicy)
        assert.include((refused as Error).message, "tiers[0].topicSuffix")
      }
    }
    assert.throws(() => DeadLetter.withSettings(DeadLetter.storeOnly, { topicSuffix: "" }), "topicSuffix")
  })

  it("ruling 81 containers and groups that two bindings would share are refused with both names", () => {
    const tiers = { retry: RetryPolicy.tiered({ tiers: [1_000], consumer: "separate" }) }
    const [container] = problemsOf(
      binding("orders", tiers),
      binding("orders-retry-1", { topic: "other", groupId: "other" })
    )
    assert.include(container, "container 'eventbus-orders-retry-1'")
    for (const groupId of ["billing.dlt", "billing.retry"]) {
      const [problem] = problemsOf(binding("orders", tiers), binding("other", { topic: "other", groupId }))
      assert.include(
        problem,
        `groupId: '${groupId}', another group: binding 'orders' of group 'billing' derives this one`
      )
    }
  })

  it.effect("CFG-21 a file refuses the same", () =>
    Effect.gen(function* () {
      const refusals = (data: object) =>
        Configuration.decode({ eventbus: { bindings: { orders: { topic: "orders", groupId: "g", ...data } } } }).pipe(
          Effect.result,
          Effect.map((result) => (Result.isFailure(result) ? result.failure.issues.map(({ path }) => path) : []))
        )
      const at = "eventbus.bindings.orders"
      assert.deepStrictEqual(yield* refusals({ topic: "orders.DLT.replays" }), [`${at}.topic`])
      assert.deepStrictEqual(yield* refusals({ topic: "o".repeat(240) }), [`${at}.naming`])
      assert.deepStrictEqual(yield* refusals({ retry: { tiers: [{ delayMs: 1_000, topicSuffix: "" }] } }), [
        `${at}.retry.tiers[0].topicSuffix`
      ])
    })
  )
})
