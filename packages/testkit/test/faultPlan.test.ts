import { assert, describe, it } from "@effect/vitest"
import { Broker, BrokerError } from "@eventbus/core"
import { FaultPlan, MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Clock, Effect, Exit, Layer } from "effect"
import { eventuallyTrue, publish, record, text, texts } from "../src/contract/harness.ts"
import { failedWith, join } from "../src/contract/probe.ts"

const onBroker =
  (faults: ReadonlyArray<FaultPlan.Fault> = [], options: MemoryBroker.Options = {}) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    test.pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(MemoryBroker.layer({ ...options, faults: FaultPlan.make(faults) }), VirtualClock.layer)
      )
    )

const values = (topic: string) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, (memory) =>
    Effect.map(memory.log(topic, 0), (log) => log.map((one) => text(one.value)))
  )

const setUp = Effect.fnUntraced(function* (partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("t", { partitions })
  return memory
})

const send = (value: string, options: Broker.ProducerOptions = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const producer = yield* broker.producer(options)
      return yield* producer.send(record("t", value))
    })
  )

const down = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "as planned" })
const produce = { operation: "produce", topic: "t" } as const

describe("faults of publishing", () => {
  it.effect("a lost request is sent again and written once", () =>
    Effect.gen(function* () {
      yield* setUp()
      yield* send("a")
      assert.deepStrictEqual(yield* values("t"), ["a"])
    }).pipe(onBroker([FaultPlan.nth(1, produce, { _tag: "LoseRequest" })]))
  )

  it.effect("a lost acknowledgement: the idempotent producer writes once, the other one twice", () =>
    Effect.gen(function* () {
      yield* setUp()
      assert.strictEqual((yield* send("a")).offset, 0n)
      assert.strictEqual((yield* send("b", { idempotent: false })).offset, 2n)
      assert.deepStrictEqual(yield* values("t"), ["a", "b", "b"])
    }).pipe(
      onBroker([
        FaultPlan.nth(1, produce, { _tag: "LoseResponse" }),
        FaultPlan.nth(3, produce, { _tag: "LoseResponse" })
      ])
    )
  )

  it.effect("a refused request has no effect, and the caller gets the error", () =>
    Effect.gen(function* () {
      yield* setUp()
      assert.strictEqual(yield* Effect.flip(send("a")), down)
      yield* send("b")
      assert.deepStrictEqual(yield* values("t"), ["b"])
    }).pipe(onBroker([FaultPlan.nth(1, produce, { _tag: "Refuse", error: down })]))
  )

  it.effect("what a transaction left open whose abort or commit was refused is no part of the next one", () =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* setUp()
        const broker = yield* Broker.Broker
        const producer = yield* broker.transactionalProducer({ transactionalId: "tx" })
        const sent = (value: string) => producer.transaction((transaction) => transaction.send(record("t", value)))
        yield* Effect.exit(
          producer.transaction((transaction) => Effect.andThen(transaction.send(record("t", "a")), Effect.fail("no")))
        )
        yield* sent("b")
        yield* Effect.flip(sent("c"))
        yield* sent("d")
        assert.deepStrictEqual(yield* values("t"), ["b", "d"])
      })
      // The first is the claim of the id; then an abort, its repetition, a commit, and another one.
    ).pipe(
      onBroker([
        FaultPlan.nth(2, { operation: "endTransaction" }, { _tag: "Refuse", error: down }),
        FaultPlan.nth(5, { operation: "endTransaction" }, { _tag: "Refuse", error: down })
      ])
    )
  )

  it.effect("applied, and yet the caller gets the error", () =>
    Effect.gen(function* () {
      yield* setUp()
      assert.strictEqual(yield* Effect.flip(send("a")), down)
      assert.deepStrictEqual(yield* values("t"), ["a"])
    }).pipe(onBroker([FaultPlan.nth(1, produce, { _tag: "ApplyThenFail", error: down })]))
  )

  it.effect("a duplicated request is written twice, a corrupted one with a changed value", () =>
    Effect.gen(function* () {
      yield* setUp()
      yield* send("a")
      yield* send("b")
      const written = yield* values("t")
      assert.deepStrictEqual(written.slice(0, 2), ["a", "a"])
      assert.strictEqual(written.length, 3)
      assert.notStrictEqual(written[2], "b")
    }).pipe(
      onBroker([FaultPlan.nth(1, produce, { _tag: "Duplicate" }), FaultPlan.nth(2, produce, { _tag: "Corrupt" })])
    )
  )

  it.effect("a slow broker delays the acknowledgement; longer than the delivery timeout it is RequestTimedOut", () =>
    Effect.gen(function* () {
      yield* setUp()
      const begin = yield* Clock.currentTimeMillis
      yield* send("a")
      assert.isAtLeast((yield* Clock.currentTimeMillis) - begin, 5000)
      const error = yield* Effect.flip(send("b", { deliveryTimeout: "2 seconds" }))
      assert.strictEqual(error._tag, "RequestTimedOut")
    }).pipe(
      onBroker([
        FaultPlan.nth(1, produce, { _tag: "Delay", duration: "5 seconds" }),
        FaultPlan.chance(1, produce, { _tag: "Delay", duration: "3 seconds" })
      ])
    )
  )

  it.effect("while the broker is down sends wait, in order; past the delivery timeout they fail", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const broker = yield* Broker.Broker
      const producer = yield* broker.producer({ deliveryTimeout: "20 seconds" })
      yield* memory.inject({ _tag: "BrokerDown", duration: "10 seconds" })
      yield* Effect.forEach(texts("v", 5), (value) => producer.send(record("t", value)), { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* values("t"), [...texts("v", 5)])
      yield* memory.inject({ _tag: "BrokerDown", duration: "1 minute" })
      assert.strictEqual((yield* Effect.flip(producer.send(record("t", "late"))))._tag, "RequestTimedOut")
      assert.deepStrictEqual(yield* values("t"), [...texts("v", 5)])
    }).pipe(onBroker())
  )

  it.effect("a fault for one topic does not touch another", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      yield* memory.createTopic("u")
      const broker = yield* Broker.Broker
      const producer = yield* broker.producer()
      const [bad, good] = yield* Effect.all(
        [Effect.exit(producer.send(record("t", "a"))), Effect.exit(producer.send(record("u", "b")))],
        { concurrency: 2 }
      )
      assert.isTrue(Exit.isFailure(bad))
      assert.isTrue(Exit.isSuccess(good))
    }).pipe(onBroker([FaultPlan.chance(1, produce, { _tag: "Refuse", error: down })]))
  )
})

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

  it.effect("a commit whose answer is lost has taken effect", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* probe.owns(1)
      assert.strictEqual((yield* Effect.flip(probe.commit("t", 0, 1n)))._tag, "RequestTimedOut")
      assert.strictEqual(yield* memory.committed("g", "t", 0), 1n)
    }).pipe(onBroker([FaultPlan.nth(1, { operation: "commit" }, { _tag: "LoseResponse" })]))
  )

  it.effect("while the coordinator moves commits say so; members are not expired", () =>
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

  it.effect("OFF-09: an expired session learns it at its next heartbeat; until then its commits are refused", () =>
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

  it.effect("a lost partition is assigned anew in a new generation", () =>
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

  it.effect("a dropped connection ends the session loudly; its partitions move after the session timeout", () =>
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

  it.effect("REB-12: after kill -9 nothing arrives any more, and the group notices by the session timeout", () =>
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
    "OFF-09: a member that was cut off longer than its session lost everything, and its late commit is refused",
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

  it.effect("a fault strikes at its time", () =>
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

  it.effect("the same seed gives the same journal, another seed another one", () =>
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

  it("a random plan is a value that its seed decides, and intensity 0 is no trouble at all", () => {
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
