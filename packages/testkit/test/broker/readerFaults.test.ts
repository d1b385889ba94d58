import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Clock, Effect, Fiber } from "effect"
import { text, texts, utf8 } from "../../src/contract/harness.ts"
import { down, onBroker, setUp } from "./faultyBroker.ts"

const fetch = { operation: "fetch", topic: "t", clientId: "me" } as const

/** A reader of a topic with three records. */
const reading = Effect.gen(function* () {
  const memory = yield* setUp()
  yield* memory.append(
    "t",
    0,
    texts("v", 3).map((value) => ({ value: utf8(value) }))
  )
  const broker = yield* Broker.Broker
  const { read } = yield* broker.reader({ clientId: "me" })
  return { memory, read: read({ topic: "t", partition: 0, offset: 0n }) }
})

const valuesOf = (found: Broker.ReadResult): string | ReadonlyArray<string | null> =>
  found._tag === "Fetched" ? found.chunk.records.map(({ value }) => text(value)) : found._tag

const took = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const before = yield* Clock.currentTimeMillis
  const result = yield* effect
  return [result, (yield* Clock.currentTimeMillis) - before] as const
})

describe("faults of reading", () => {
  it.effect("a refused fetch fails with the error, and the next one reads", () =>
    Effect.gen(function* () {
      const { read } = yield* reading
      assert.strictEqual(yield* Effect.flip(read), down)
      assert.deepStrictEqual(valuesOf(yield* read), texts("v", 3))
    }).pipe(onBroker([FaultPlan.nth(1, fetch, { _tag: "Refuse", error: down })]))
  )

  it.effect("a lost request and a lost answer end with RequestTimedOut", () =>
    Effect.gen(function* () {
      const { read } = yield* reading
      for (let lost = 0; lost < 2; lost++) {
        const [error, millis] = yield* took(Effect.flip(read))
        assert.deepStrictEqual([error._tag, millis], ["RequestTimedOut", 5_000])
      }
      assert.deepStrictEqual(valuesOf(yield* read), texts("v", 3))
    }).pipe(
      onBroker([FaultPlan.nth(1, fetch, { _tag: "LoseRequest" }), FaultPlan.nth(2, fetch, { _tag: "LoseResponse" })], {
        requestTimeout: "5 seconds"
      })
    )
  )

  it.effect("a read takes the latency of a fetch, and the delay of a fault", () =>
    Effect.gen(function* () {
      const { read } = yield* reading
      assert.deepStrictEqual((yield* took(read))[1], 2_010)
      assert.deepStrictEqual((yield* took(read))[1], 10)
    }).pipe(
      onBroker([FaultPlan.nth(1, fetch, { _tag: "Delay", duration: "2 seconds" })], { latency: { fetch: "10 millis" } })
    )
  )

  it.effect("nothing answers a reader that is killed or isolated, and a broker that is down refuses it", () =>
    Effect.gen(function* () {
      const { memory, read } = yield* reading
      yield* memory.inject({ _tag: "BrokerDown", duration: "1 second" })
      assert.strictEqual((yield* Effect.flip(read))._tag, "BrokerUnavailable")
      yield* Effect.sleep("2 seconds")
      yield* memory.inject({ _tag: "Isolated", clientId: "me", duration: "10 seconds" })
      assert.strictEqual((yield* Effect.flip(read))._tag, "RequestTimedOut")
      assert.deepStrictEqual(valuesOf(yield* read), texts("v", 3))
      yield* memory.kill("me")
      assert.strictEqual((yield* Effect.flip(read))._tag, "RequestTimedOut")
    }).pipe(onBroker())
  )

  it.effect("closing the scope ends a read that gets no answer, and disconnects", () =>
    Effect.gen(function* () {
      const { memory, fiber } = yield* Effect.scoped(
        Effect.gen(function* () {
          const { memory, read } = yield* reading
          assert.strictEqual((yield* memory.usage).readers, 1)
          return { memory, fiber: yield* Effect.forkDetach(Effect.flip(read), { startImmediately: true }) }
        })
      )
      const [error, millis] = yield* took(Fiber.join(fiber))
      assert.deepStrictEqual([error._tag, millis], ["BrokerUnavailable", 0])
      assert.strictEqual((yield* memory.usage).readers, 0)
    }).pipe(onBroker([FaultPlan.nth(1, fetch, { _tag: "LoseRequest" })]))
  )

  it.effect("markers and compacted records move the position alone", () =>
    Effect.gen(function* () {
      const { memory, read } = yield* reading
      yield* memory.appendControl("t", 0, 2)
      yield* memory.compact("t", 0, ({ offset }) => offset < 2n)
      const found = yield* read
      assert.deepStrictEqual(valuesOf(found), ["v-2"])
      yield* memory.compact("t", 0, () => true)
      const none = yield* read
      assert.deepInclude(none._tag === "Fetched" ? none.chunk : none, { records: [], nextOffset: 5n, bytes: 0 })
    }).pipe(onBroker())
  )
})
