import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Clock, Effect, Exit } from "effect"
import { record, texts } from "../../src/contract/harness.ts"
import { down, onBroker, produce, send, setUp, values } from "./faultyBroker.ts"

describe("faults of publishing", () => {
  it.effect("a lost request is retried and written once", () =>
    Effect.gen(function* () {
      yield* setUp()
      yield* send("a")
      assert.deepStrictEqual(yield* values("t"), ["a"])
    }).pipe(onBroker([FaultPlan.nth(1, produce, { _tag: "LoseRequest" })]))
  )

  it.effect("a lost acknowledgement: the idempotent producer writes once, a plain one twice", () =>
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

  it.effect("a transaction whose abort or commit was refused leaves nothing to the next one", () =>
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
      // InitProducerId, an abort, its retry, a commit, and another commit.
    ).pipe(
      onBroker([
        FaultPlan.nth(2, { operation: "endTransaction" }, { _tag: "Refuse", error: down }),
        FaultPlan.nth(5, { operation: "endTransaction" }, { _tag: "Refuse", error: down })
      ])
    )
  )

  it.effect("ApplyThenFail writes the records, and the caller gets the error", () =>
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

  it.effect("a slow broker delays the acknowledgement; a delay beyond the delivery timeout is RequestTimedOut", () =>
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

  it.effect("sends wait in order while the broker is down, and fail after the delivery timeout", () =>
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

  it.effect("a fault for one topic does not affect another", () =>
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
