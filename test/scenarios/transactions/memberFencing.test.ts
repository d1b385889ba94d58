/** Transactional bindings whose member the group has put out, or has in another generation (KIP-447). */
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, CurrentTransaction, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect } from "effect"
import { advance, append, bytes, layer, start, valuesOf } from "../bus.ts"

/** Publishes every value to `out`, and ends when `wait` does. */
const copying = (wait: Effect.Effect<void>) =>
  Binding.makeTransactional("copying", {
    topic: "in",
    groupId: "copiers",
    value: Serde.string,
    maxPollInterval: "5 minutes",
    // Without retry topics, whose partitions would move.
    retry: RetryPolicy.blocking(),
    handler: ({ value }) =>
      Effect.orDie(Effect.andThen(CurrentTransaction.send({ topic: "out", key: null, value: bytes(value) }), wait))
  })

const cluster = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("in")
  yield* memory.createTopic("out")
  return memory
})

/** The consumers of this process have a client id of their own, so that they can be cut off without its producers. */
const withMemberNamed = (clientId: string) =>
  Effect.updateService(Broker.Broker, (broker) => ({
    ...broker,
    consumer: (options) => broker.consumer({ ...options, clientId })
  }))

describe("transactional bindings and their group", () => {
  it.effect(
    "CLN-14 OFF-17 a member that the group has put out commits nothing, and handles the record again once it is back",
    () =>
      Effect.gen(function* () {
        const memory = yield* cluster
        yield* append("in", 0, ["a"])
        let calls = 0
        const slow = Effect.suspend(() => (calls++ === 0 ? Effect.sleep("50 seconds") : Effect.void))
        const app = yield* withMemberNamed("cut off")(start(copying(slow)))
        yield* memory.inject({ _tag: "Isolated", clientId: "cut off", duration: "100 seconds" })
        // The session timeout is 45 seconds.
        for (let second = 0; second < 70; second++) yield* advance("1 second")
        assert.strictEqual((yield* memory.group("copiers")).members.length, 0)
        assert.deepStrictEqual(yield* valuesOf("out"), [])
        assert.isUndefined(yield* memory.committed("copiers", "in", 0))
        for (let second = 0; second < 60; second++) yield* advance("1 second")
        assert.deepStrictEqual(yield* valuesOf("out"), ["a"])
        assert.strictEqual(yield* memory.committed("copiers", "in", 0), 1n)
        assert.isAtMost(app.of("TransactionFailed").length, 2)
        assert.strictEqual(calls, 2)
      }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "CLN-14 REB-03 a transaction that is open during a rebalance is committed by the member that keeps its partition",
    () =>
      Effect.gen(function* () {
        const memory = yield* cluster
        const gate = yield* Deferred.make<void>()
        yield* append("in", 0, ["a"])
        const first = yield* start(copying(Deferred.await(gate)))
        // The group has another generation now, which the first member learns at its next heartbeat.
        const second = yield* start(copying(Effect.void))
        yield* advance("1 second")
        yield* Deferred.succeed(gate, undefined)
        for (let millis = 0; millis < 20; millis++) yield* advance("100 millis")
        assert.deepStrictEqual(yield* valuesOf("out"), ["a"])
        assert.deepStrictEqual([...first.of("TransactionFailed"), ...second.of("TransactionFailed")], [])
        assert.strictEqual(yield* memory.committed("copiers", "in", 0), 1n)
      }).pipe(Effect.provide(layer()))
  )
})
