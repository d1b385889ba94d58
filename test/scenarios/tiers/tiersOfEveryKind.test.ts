import { assert, describe } from "@effect/vitest"
import { Binding, IdempotencyStore, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, bytes, headersOf, scenario, settle, start, until, valuesOf } from "../bus.ts"
import { type Call, Down, kinds } from "../kinds.ts"

const cluster = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("out")
  return memory
})

const ten = Array.from({ length: 10 }, (_, index) => String(index))

for (const [kind, bindingOf] of Object.entries(kinds)) {
  describe(`retry tiers, ${kind}`, () => {
    scenario("RTY-05 RTY-09 failed records come back after their delay, all others go on, each is handled once", () =>
      Effect.gen(function* () {
        const memory = yield* cluster
        // By value: within a transaction that is aborted, those before the failed one are handled again.
        const handled = new Map<string | null, Call>()
        const app = yield* start(
          bindingOf({
            handle: (call) =>
              Effect.suspend(() => {
                const deliveries = call.tier === 0 ? 0 : call.attempt
                if (deliveries < Number(call.value) % 3) return Effect.fail(new Down())
                handled.set(call.value, call)
                return Effect.void
              })
          })
        )
        yield* append("orders", 0, ten)
        const finished = () => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length
        yield* until(() => finished() === 10, "1 second")
        yield* advance("5 minutes")
        assert.strictEqual(finished(), 10)
        assert.sameMembers(Array.from(handled.keys()), ten)
        for (const { value, atMillis } of handled.values()) {
          const due = (Number(value) % 3) * 10_000
          assert.isAtLeast(atMillis, due)
          assert.isAtMost(atMillis, due + 1_000)
        }
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), yield* end("orders"))
        assert.strictEqual(yield* memory.committed("billing", "orders.retry-1", 0), yield* end("orders.retry-1"))
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
        if (kind === "transactional") {
          assert.sameMembers(
            yield* valuesOf("out"),
            ten.map((value) => `${value}@${Number(value) % 3 === 0 ? 0 : 1}`)
          )
        }
      })
    )

    scenario(
      "DLT-03 SER-09 RTY-12 tombstones stay null in every tier and in the dead letter topic, null keys too",
      () =>
        Effect.gen(function* () {
          const memory = yield* cluster
          const records = [
            { key: bytes("k"), value: null },
            { key: null, value: null },
            { key: new Uint8Array(), value: new Uint8Array() },
            { key: null, value: bytes("null") }
          ]
          yield* memory.append("orders", 0, records)
          const seen: Array<Call> = []
          const app = yield* start(
            bindingOf({
              handle: (call) => {
                seen.push(call)
                return Effect.fail(new Down())
              }
            })
          )
          const isDead = () => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length === 4
          yield* until(isDead, "10 seconds")
          const pairs = (topic: string) =>
            Effect.map(memory.log(topic, 0), (log) => log.map(({ key, value }) => ({ key, value })))
          for (const topic of ["orders.retry-1", "orders.retry-2", "orders.DLT"]) {
            const copies = yield* pairs(topic)
            for (const record of records) assert.deepInclude(copies, record)
          }
          assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 4)
          for (const tier of [1, 2]) {
            assert.sameMembers(
              Array.from(new Set(seen.filter((call) => call.tier === tier).map(({ value }) => value))),
              [null, "", "null"]
            )
          }
        })
    )

    scenario("DLT-05 CLS-10 thrown values of every kind travel through a tier; the trail has a class for each", () =>
      Effect.gen(function* () {
        const memory = yield* cluster
        const hostile: ReadonlyArray<unknown> = [
          undefined,
          null,
          "",
          42,
          Object.create(null),
          Symbol("x"),
          new Proxy(new Error("x"), { get: () => assert.fail("read") }),
          new (class extends Error {
            override get message(): string {
              throw new Error("getter")
            }
          })(),
          Object.assign(new Error("m\u0000\ud800"), { name: "" }),
          () => "function"
        ]
        yield* append("orders", 0, ten)
        const app = yield* start(bindingOf({ handle: ({ value }) => Effect.die(hostile[Number(value)]) }))
        const isDead = () => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length === 10
        yield* until(isDead, "10 seconds")
        const letters = yield* memory.log("orders.DLT", 0)
        assert.strictEqual(letters.length, 10)
        for (const headers of letters.map(headersOf)) {
          for (const tier of [0, 1, 2]) {
            assert.isAbove(headers.get(`x-eventbus-tier${tier}-exception`)?.length ?? 0, 0)
          }
          assert.isString(headers.get("x-eventbus-last-exception-message"))
          assert.strictEqual(headers.get("x-eventbus-total-attempts"), "7")
        }
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
    )

    scenario(
      "CB-07 CB-08 CB-09 ruling 28 in an outage no copy is published after the breaker opened, and afterwards each record is handled",
      () =>
        Effect.gen(function* () {
          yield* cluster
          let isDown = true
          const handled: Array<string | null> = []
          let callsWhileDown = 0
          const app = yield* start(
            bindingOf({
              circuitBreaker: {
                minimumNumberOfCalls: 2,
                slidingWindowSize: 2,
                permittedNumberOfCallsInHalfOpenState: 1,
                waitDurationInOpenState: "20 seconds"
              },
              handle: ({ value }) =>
                Effect.suspend(() => {
                  if (isDown) {
                    callsWhileDown++
                    return Effect.fail(new Down())
                  }
                  handled.push(value)
                  return Effect.void
                })
            })
          )
          yield* append("orders", 0, ten)
          yield* advance("5 seconds")
          const opened = callsWhileDown
          for (let half = 0; half < 30; half++) yield* advance("20 seconds")
          // A trial call each time, of one record or one batch.
          assert.isAtMost(callsWhileDown - opened, kind === "whole batches" ? 30 * 4 : 30)
          isDown = false
          yield* until(() => handled.length === 10, "10 seconds")
          yield* advance("5 minutes")
          assert.sameMembers(handled, ten)
          assert.deepStrictEqual(
            app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered"),
            []
          )
          assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        })
    )

    scenario("RTY-23 autoOffsetReset latest: a copy that was published before the tier was read is not skipped", () =>
      Effect.gen(function* () {
        yield* cluster
        const handled: Array<string | null> = []
        let isFirst = true
        const binding = bindingOf({
          autoOffsetReset: "latest",
          handle: ({ value }) =>
            Effect.suspend(() => {
              if (isFirst) {
                isFirst = false
                return Effect.fail(new Down())
              }
              handled.push(value)
              return Effect.void
            })
        })
        const first = yield* start(binding)
        yield* settle
        yield* append("orders", 0, ["x"])
        yield* advance("1 second")
        yield* first.close
        yield* advance("1 minute")
        yield* start(binding)
        yield* advance("10 seconds")
        assert.deepStrictEqual(handled, ["x"])
      })
    )
  })
}

describe("retry tiers and idempotency", () => {
  scenario("OFF-19 a retry does not count as a repetition; a second copy of a record in the tier does", () =>
    Effect.gen(function* () {
      const memory = yield* cluster
      const calls: Array<number> = []
      const app = yield* start(
        Binding.make("orders", {
          topic: "orders",
          groupId: "billing",
          value: Serde.string,
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 } }),
          onError: { Down: Route.retry },
          idempotency: {},
          handler: ({ tier }) =>
            Effect.suspend(() => {
              calls.push(tier)
              return calls.length < 3 ? Effect.fail(new Down()) : Effect.void
            })
        })
      ).pipe(Effect.provide(IdempotencyStore.layerMemory()))
      yield* append("orders", 0, ["x"])
      yield* advance("10 seconds")
      yield* advance("10 seconds")
      assert.deepStrictEqual(calls, [0, 1, 1])
      const copy = (yield* memory.log("orders.retry-1", 0))[1]!
      yield* memory.append("orders.retry-1", 0, [copy])
      yield* advance("10 seconds")
      assert.deepStrictEqual(calls, [0, 1, 1])
      assert.strictEqual(app.of("Settled").at(-1)?.settlement, "Skipped")
    })
  )
})

describe("attempts in place and idempotency", () => {
  scenario(
    "OFF-19 a record that another consumer handles before its next attempt is done: no failure, no dead letter",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        let calls = 0
        const app = yield* start(
          Binding.make("orders", {
            topic: "orders",
            groupId: "billing",
            value: Serde.string,
            retry: RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "1 second" }),
            onError: { Down: Route.retry },
            idempotency: { key: ({ value }: { readonly value: string }) => value },
            handler: () => Effect.suspend(() => (++calls === 1 ? Effect.fail(new Down()) : Effect.void))
          })
        ).pipe(Effect.provide(IdempotencyStore.layerMemory()))
        yield* append("orders", 0, ["x"])
        yield* settle
        yield* append("orders", 1, ["x"])
        yield* settle
        yield* advance("2 seconds")
        assert.strictEqual(calls, 2)
        assert.deepStrictEqual(
          app.of("Settled").map(({ partition, settlement }) => [partition, settlement]),
          [
            [1, "Handled"],
            [0, "Skipped"]
          ]
        )
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      })
  )
})

const end = (topic: string) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) =>
    Effect.scoped(
      Effect.flatMap(broker.admin, (admin) => Effect.map(admin.topicOffsets(topic), ([first]) => first?.logEnd))
    )
  )
