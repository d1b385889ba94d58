import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { FaultPlan, MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { record, texts } from "../../src/contract/harness.ts"
import { join } from "../../src/contract/probe.ts"
import { setUp } from "./faultyBroker.ts"

describe("TST-01: seeds", () => {
  const journalOf = (seed: number) => {
    const journal: Array<string> = []
    const onEvent: MemoryBroker.Journal = (entry, atMillis) =>
      journal.push(
        JSON.stringify({ atMillis, ...entry }, (_, value) => (typeof value === "bigint" ? `${value}n` : value))
      )
    return Effect.gen(function* () {
      yield* setUp(4)
      const broker = yield* Broker.Broker
      const producer = yield* broker.producer({ clientId: "p" })
      const members = yield* Effect.forEach(["a", "b", "c"], (clientId) =>
        join({ groupId: "g", topics: ["t"], clientId, heartbeatInterval: "2 seconds" })
      )
      for (let round = 0; round < 30; round++) {
        yield* Effect.exit(
          producer.sendAll(texts(`r${round}`, 4).map((value, partition) => record("t", value, { partition })))
        )
        yield* Effect.forEach(members, (member) => Effect.exit(member.commitCollected([...member.owned.values()])))
        yield* Effect.sleep("10 seconds")
      }
      return journal
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(MemoryBroker.layer({ faults: FaultPlan.random(seed, 0.8), onEvent }), VirtualClock.layer)
      )
    )
  }

  it.effect("equal seeds give equal journals, another seed gives another journal", () =>
    Effect.gen(function* () {
      const first = yield* journalOf(7)
      assert.isAbove(first.length, 100)
      assert.isTrue(first.some((entry) => entry.includes("FaultInjected")))
      const second = yield* journalOf(7)
      assert.strictEqual(
        first.find((entry, index) => entry !== second[index]),
        undefined,
        "first difference"
      )
      assert.strictEqual(first.length, second.length)
      assert.notStrictEqual((yield* journalOf(8)).join(), first.join())
    })
  )

  it("the seed decides a random plan, and intensity 0 plans no faults", () => {
    assert.deepStrictEqual(FaultPlan.random(3, 0.5), FaultPlan.random(3, 0.5))
    assert.notDeepEqual(FaultPlan.random(3, 0.5), FaultPlan.random(4, 0.5))
    const calm = FaultPlan.random(3, 0)
    assert.isTrue(
      calm.faults.every(
        (fault) => fault._tag === "OnRequest" && fault.trigger._tag === "Chance" && fault.trigger.probability === 0
      )
    )
  })
})
