import { assert, describe } from "@effect/vitest"
import { Binding, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Random } from "effect"
import { advance, append, orders, scenario, settle, start, until } from "../bus.ts"

const noting = (handled: Array<string>, name = "orders", groupId = "billing") =>
  Binding.make(name, {
    ...orders,
    groupId,
    naming: TopicName.perGroup,
    handler: ({ value }) => Effect.sync(() => handled.push(value))
  })

describe("a client that dies", () => {
  scenario("LIF-17 shows in the snapshot, restarts with backoff, and resumes at its committed offset", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a"])
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* memory.inject({ _tag: "ConnectionDropped" })
      yield* settle
      const [snapshot] = yield* app.connector.listBindings
      assert.deepStrictEqual(
        snapshot?.consumers.map(({ status, hasRun, crashes }) => ({ status, hasRun, crashes })),
        [{ status: "crashed", hasRun: true, crashes: 1 }]
      )
      assert.strictEqual(snapshot?.consumers[0]?.error?._tag, "BrokerUnavailable")
      yield* append("orders", 0, ["b"])
      yield* until(() => handled.length === 2, "1 second")
      assert.deepStrictEqual(handled, ["a", "b"])
      const [consumer] = (yield* app.connector.snapshot("orders")).consumers
      assert.deepStrictEqual([consumer?.status, consumer?.error], ["running", undefined])
      assert.deepStrictEqual(
        app.of("SessionCrashed").map(({ restartInMillis }) => restartInMillis),
        [1000]
      )
    })
  )

  scenario(
    "LIF-17 when the broker is down at the start, the client tries again at growing intervals up to 30 s, then works",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["a"])
        yield* memory.inject({ _tag: "BrokerDown", duration: "3 minutes" })
        const handled: Array<string> = []
        const app = yield* start(noting(handled))
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        yield* until(() => handled.length === 1, "1 second")
        const waits = app.of("SessionCrashed").map(({ restartInMillis }) => restartInMillis)
        assert.deepStrictEqual(waits.slice(0, 7), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
      })
  )

  scenario("LIF-17 a session that lasted for a while resets the backoff", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const app = yield* start(noting([]))
      for (const wait of ["1 second", "2 seconds", "2 minutes"] as const) {
        yield* memory.inject({ _tag: "ConnectionDropped" })
        yield* settle
        yield* advance(wait)
      }
      yield* memory.inject({ _tag: "ConnectionDropped" })
      yield* settle
      assert.strictEqual(app.of("SessionCrashed").at(-1)?.restartInMillis, 1000)
    })
  )

  scenario("LIF-17 LIF-12 a binding can be stopped and started while its client is down", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a"])
      yield* memory.inject({ _tag: "BrokerDown", duration: "1 minute" })
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* app.connector.stop("orders")
      yield* advance("10 minutes")
      assert.deepStrictEqual(handled, [])
      yield* app.connector.start("orders")
      yield* settle
      assert.deepStrictEqual(handled, ["a"])
    })
  )

  scenario("LIF-18 NFR-05 affects no other binding", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const first: Array<string> = []
      const second: Array<string> = []
      const app = yield* start(noting(first), noting(second, "second", "audit"))
      const [victim] = (yield* memory.group("billing")).members
      yield* memory.inject({ _tag: "ConnectionDropped", clientId: victim!.clientId })
      yield* append("orders", 0, ["a"])
      yield* settle
      assert.deepStrictEqual(second, ["a"])
      yield* until(() => first.length === 1, "1 second")
      const assigned = app.of("PartitionAssigned").filter(({ binding }) => binding === "second")
      assert.strictEqual(assigned.length, 1)
    })
  )

  scenario("NFR-01 a record that was being handled when the client died is delivered again", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a"])
      let calls = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () => Effect.suspend(() => (++calls === 1 ? Effect.never : Effect.void))
        })
      )
      yield* memory.inject({ _tag: "ConnectionDropped" })
      yield* until(() => app.of("Committed").length === 1, "1 second")
      assert.strictEqual(calls, 2)
      assert.deepStrictEqual(app.of("AttemptFailed"), [])
    })
  )

  scenario(
    "LIF-17 CARD-07 a defect of the connector ends no partition silently: the session starts again, and no record is lost",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["a", "b"])
        const random = yield* Random.Random
        let broken = true
        const hostile: typeof random = {
          nextIntUnsafe: () => random.nextIntUnsafe(),
          nextDoubleUnsafe: () => {
            if (!broken) return random.nextDoubleUnsafe()
            broken = false
            throw new Error("no chance")
          }
        }
        const handled: Array<string> = []
        let calls = 0
        const app = yield* start(
          Binding.make("orders", {
            ...orders,
            handler: ({ value }) =>
              Effect.suspend(() => (++calls === 1 ? Effect.die("once") : Effect.sync(() => handled.push(value))))
          })
        ).pipe(Effect.provideService(Random.Random, hostile))
        yield* until(() => handled.length === 2, "1 second")
        assert.deepStrictEqual(handled, ["a", "b"])
        assert.strictEqual(app.of("SessionCrashed").length, 1)
        assert.include(app.of("SessionCrashed")[0]?.error.message ?? "", "no chance")
      })
  )
})
