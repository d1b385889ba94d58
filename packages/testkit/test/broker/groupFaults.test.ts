import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Clock, Effect } from "effect"
import { eventuallyTrue, publish, quietTime, texts } from "../../src/contract/harness.ts"
import { failedWith, join } from "../../src/contract/probe.ts"
import { onBroker, setUp } from "./faultyBroker.ts"

describe("faults of groups", () => {
  it.effect("OFF-08: a refused commit changes nothing; the next one is accepted", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* probe.owns(1)
      assert.strictEqual((yield* Effect.flip(probe.commit("t", 0, 1n)))._tag, "RebalanceInProgress")
      assert.strictEqual(yield* memory.committed("g", "t", 0), undefined)
      yield* probe.commit("t", 0, 1n)
      assert.strictEqual(yield* memory.committed("g", "t", 0), 1n)
    }).pipe(
      onBroker([
        FaultPlan.nth(
          1,
          { operation: "commit", groupId: "g" },
          { _tag: "Refuse", error: new BrokerError.RebalanceInProgress({ groupId: "g" }) }
        )
      ])
    )
  )

  it.effect("a commit whose answer gets lost takes effect", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* probe.owns(1)
      assert.strictEqual((yield* Effect.flip(probe.commit("t", 0, 1n)))._tag, "RequestTimedOut")
      assert.strictEqual(yield* memory.committed("g", "t", 0), 1n)
    }).pipe(onBroker([FaultPlan.nth(1, { operation: "commit" }, { _tag: "LoseResponse" })]))
  )

  it.effect("commits fail with CoordinatorUnavailable while the coordinator moves, and members do not expire", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const probe = yield* join({ groupId: "g", topics: ["t"], sessionTimeout: "6 seconds" })
      yield* probe.owns(1)
      yield* memory.inject({ _tag: "CoordinatorMoved", duration: "20 seconds" })
      assert.strictEqual((yield* Effect.flip(probe.commit("t", 0, 1n)))._tag, "CoordinatorUnavailable")
      yield* Effect.sleep("21 seconds")
      yield* probe.commit("t", 0, 1n)
      assert.strictEqual(probe.of("Lost").length, 0)
    }).pipe(onBroker())
  )

  it.effect("OFF-09: an expired member learns it at its next heartbeat; until then its commits are refused", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const probe = yield* join({ groupId: "g", topics: ["t"], heartbeatInterval: "2 seconds" })
      yield* probe.owns(1)
      const { generation } = probe.own("t")
      yield* memory.inject({ _tag: "SessionExpired", groupId: "g" })
      assert.strictEqual((yield* Effect.flip(probe.commit("t", 0, 1n)))._tag, "StaleAssignment")
      yield* eventuallyTrue(() => assert.strictEqual(probe.of("Lost").length, 1))
      yield* probe.owns(1)
      assert.isAbove(probe.own("t").generation, generation)
      yield* probe.commit("t", 0, 1n)
      assert.strictEqual((yield* memory.group("g")).members.length, 1)
    }).pipe(onBroker())
  )

  it.effect("a lost partition is assigned again in a new generation", () =>
    Effect.gen(function* () {
      const memory = yield* setUp(2)
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* probe.owns(2)
      const { generation } = probe.own("t", 1)
      yield* memory.inject({ _tag: "PartitionLost", topic: "t", partition: 1 })
      yield* eventuallyTrue(() => {
        assert.deepStrictEqual(probe.of("Lost")[0]?.partitions, [{ topic: "t", partition: 1 }])
        assert.isAbove(probe.own("t", 1).generation, generation)
        assert.strictEqual(probe.own("t", 0).generation, generation)
      })
    }).pipe(onBroker())
  )

  it.effect(
    "a dropped connection ends the session with an error, and its partitions move after the session timeout",
    () =>
      Effect.gen(function* () {
        const memory = yield* setUp()
        const first = yield* join({ groupId: "g", topics: ["t"], clientId: "first" })
        yield* first.owns(1)
        const second = yield* join({ groupId: "g", topics: ["t"], clientId: "second" })
        yield* memory.inject({ _tag: "ConnectionDropped", clientId: "first" })
        yield* eventuallyTrue(() => assert.strictEqual(failedWith(first)?._tag, "BrokerUnavailable"))
        assert.strictEqual(first.of("Lost").length, 1)
        assert.strictEqual(second.owned.size, 0)
        yield* second.owns(1)
      }).pipe(onBroker())
  )

  it.effect("ruling 81: a static member whose session has failed takes its name from no other process", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const twin = { groupId: "g", topics: ["t"], groupInstanceId: "twin" } as const
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* join({ ...twin, clientId: "first" })
          yield* first.owns(1)
          yield* memory.inject({ _tag: "ConnectionDropped", clientId: "first" })
          yield* eventuallyTrue(() => assert.strictEqual(failedWith(first)?._tag, "BrokerUnavailable"))
        })
      )
      const second = yield* join({ ...twin, clientId: "second" })
      yield* second.owns(1)
      const again = yield* join({ ...twin, clientId: "first" })
      yield* eventuallyTrue(() => assert.strictEqual(failedWith(again)?._tag, "InstanceFenced"))
      yield* quietTime
      assert.isUndefined(failedWith(second))
      const decided = yield* join({ ...twin, clientId: "first" })
      yield* decided.owns(1)
    }).pipe(onBroker())
  )

  it.effect("REB-12: after kill -9 nothing arrives any more, and the session timeout removes the member", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      yield* publish("t", texts("v", 3))
      const first = yield* join({ groupId: "g", topics: ["t"], clientId: "first", sessionTimeout: "10 seconds" })
      yield* first.collects(3)
      yield* first.commit("t", 0, 1n)
      yield* memory.kill(first.session)
      const killedAt = yield* Clock.currentTimeMillis
      assert.strictEqual((yield* Effect.flip(first.commit("t", 0, 3n)))._tag, "RequestTimedOut")
      const second = yield* join({ groupId: "g", topics: ["t"], clientId: "second" })
      yield* second.collects(2)
      assert.isAtLeast((yield* Clock.currentTimeMillis) - killedAt, 9000)
      assert.deepStrictEqual(second.values, ["v-1", "v-2"])
      assert.strictEqual(first.of("Lost").length + first.of("Revoked").length, 0)
      assert.strictEqual(yield* memory.committed("g", "t", 0), 1n)
    }).pipe(onBroker())
  )

  it.effect("a killed client's scope closes without a leave", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const probe = yield* join({ groupId: "g", topics: ["t"], clientId: "c", sessionTimeout: "10 seconds" })
          yield* probe.owns(1)
          yield* memory.kill("c")
        })
      )
      assert.strictEqual((yield* memory.group("g")).members.length, 1)
      yield* Effect.sleep("11 seconds")
      assert.strictEqual((yield* memory.group("g")).members.length, 0)
    }).pipe(onBroker())
  )

  it.effect(
    "OFF-09: a member that was isolated longer than its session timeout loses everything, and its late commit is refused",
    () =>
      Effect.gen(function* () {
        const memory = yield* setUp()
        const first = yield* join({ groupId: "g", topics: ["t"], clientId: "first" })
        yield* first.owns(1)
        const { generation } = first.own("t")
        const second = yield* join({ groupId: "g", topics: ["t"], clientId: "second" })
        yield* memory.inject({ _tag: "Isolated", clientId: "first", duration: "30 seconds" })
        yield* second.owns(1)
        assert.strictEqual(first.owned.size, 1)
        yield* second.commit("t", 0, 5n)
        yield* Effect.sleep("31 seconds")
        assert.strictEqual(first.of("Lost").length, 1)
        const late = yield* Effect.flip(first.session.commit([{ topic: "t", partition: 0, generation, offset: 2n }]))
        assert.strictEqual(late._tag, "StaleAssignment")
        assert.strictEqual(yield* memory.committed("g", "t", 0), 5n)
      }).pipe(onBroker())
  )

  it.effect("a timed fault applies at its time", () =>
    Effect.gen(function* () {
      yield* setUp()
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* Effect.sleep("4 seconds")
      assert.isUndefined(failedWith(probe))
      yield* Effect.sleep("2 seconds")
      assert.strictEqual(failedWith(probe)?._tag, "BrokerUnavailable")
    }).pipe(onBroker([FaultPlan.at("5 seconds", { _tag: "ConnectionDropped" })]))
  )
})
