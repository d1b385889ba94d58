/** Options of a cluster in memory, and of a bus, where types do not hold: a test on another cluster than it says would prove nothing. */
import { assert, describe, it } from "@effect/vitest"
import { EventBusError } from "@eventbus/core"
import { FaultPlan, MemoryBroker, TestBus } from "@eventbus/testkit"
import { Cause, Effect, Exit } from "effect"

/** The paths of the problems. */
const paths = (refused: unknown): ReadonlyArray<string> => {
  assert.instanceOf(refused, EventBusError.ConfigurationValidation)
  return (refused as EventBusError.ConfigurationValidation).issues.map(({ path }) => path)
}

describe("ruling 84 options of the testkit", () => {
  for (const [path, wrong] of [
    ["defaultPartitions", { defaultPartitions: Number.NaN }],
    ["defaultPartitions", { defaultPartitions: 0 }],
    ["brokerCount", { brokerCount: "3" }],
    ["assignment", { assignment: "sticky" }],
    ["autoCreateTopics", { autoCreateTopics: true }],
    ["requestTimeout", { requestTimeout: "1 secnod" }],
    ["latency.produce", { latency: { produce: "1 secnod" } }],
    ["latency.prodcue", { latency: { prodcue: "1 second" } }],
    ["faults.seed", { faults: {} }],
    ["maxRecordsPerChunk", { maxRecordsPerChunk: 0 }],
    ["maxMessageBytes", { maxMessageBytes: {} }],
    ["onEvent", { onEvent: 5 }]
  ] as const)
    it.effect(`MemoryBroker refuses ${JSON.stringify(wrong)}`, () =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(MemoryBroker.make(wrong as unknown as MemoryBroker.Options))
        assert(Exit.isFailure(exit))
        assert.include(paths(Cause.squash(exit.cause)), `MemoryBroker.${path}`)
      })
    )

  it.effect("MemoryBroker takes what its types allow", () =>
    Effect.asVoid(
      MemoryBroker.make({
        ...{ defaultPartitions: 3, brokerCount: 1, maxRecordsPerChunk: 1, maxMessageBytes: 1_000 },
        ...{ autoCreateTopics: "on", assignment: "eager", requestTimeout: "50 millis", latency: { join: 0 } },
        ...{ faults: FaultPlan.none, onEvent: () => {} }
      })
    )
  )

  it("TestBus refuses what its types do not allow", () => {
    for (const [path, wrong] of [
      ["partitions", { partitions: 1.5 }],
      ["topics.payments", { topics: { payments: "3" } }],
      ["seed", { seed: "1" }],
      ["settleWithin", { settleWithin: Number.NaN }],
      ["broker.assignment", { broker: { assignment: "sticky" } }]
    ] as const) {
      for (const make of [TestBus.layer, TestBus.live]) {
        let refused: unknown
        try {
          make([], wrong as unknown as TestBus.Options)
        } catch (error) {
          refused = error
        }
        assert.deepStrictEqual(paths(refused), [`TestBus.${path}`])
      }
    }
  })
})
