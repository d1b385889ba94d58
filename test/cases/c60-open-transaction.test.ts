import { assert, describe } from "@effect/vitest"
import { Binding, Health } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Latch } from "effect"
import { advance, append, bytes, orders, scenario, settle, start, until } from "../scenarios/bus.ts"

const behind = Array.from({ length: 500 }, (_, index) => `v${index}`)

const kinds = {
  "one record at a time": (handled: Array<string>) =>
    Binding.make("orders", { ...orders, handler: ({ value }) => Effect.sync(() => handled.push(value)) }),
  "in transactions": (handled: Array<string>) =>
    Binding.makeTransactional("orders", { ...orders, handler: ({ value }) => Effect.sync(() => handled.push(value)) })
}

describe("C60 a producer dies in a transaction", () => {
  for (const [kind, bindingOf] of Object.entries(kinds)) {
    for (const arrives of ["before the binding starts", "while the binding is idle", "while the binding is paused"]) {
      scenario(`ruling 75 ${arrives}, ${kind}: lag counts what lies behind, health names the partition`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 2 })
          const handled: Array<string> = []
          const ends = Latch.makeUnsafe(false)
          const occupy = Effect.gen(function* () {
            const transactionTimeout = "15 minutes"
            const producer = yield* memory.broker.transactionalProducer({ transactionalId: "dead", transactionTimeout })
            const record = { topic: "orders", partition: 1, key: null, value: bytes("never committed") }
            const dies = Effect.andThen(ends.await, Effect.fail("the transaction is aborted" as const))
            yield* producer
              .transaction(({ send }) => Effect.andThen(send(record), dies))
              .pipe(Effect.ignore, (open) => Effect.forkScoped(open, { startImmediately: true }))
            yield* settle
            yield* append("orders", 1, behind)
          })
          if (arrives.startsWith("before")) yield* occupy
          const { connector } = yield* start(bindingOf(handled))
          if (arrives.endsWith("paused")) yield* connector.pause("orders")
          if (!arrives.startsWith("before")) yield* occupy
          yield* advance("20 seconds")
          const lags = Effect.map(connector.snapshot("orders"), ({ partitions }) => partitions.map(({ lag }) => lag))
          assert.deepStrictEqual(yield* lags, [0n, 501n])
          yield* advance("1 minute")
          const { live, ready, reasons } = yield* connector.health
          assert.deepStrictEqual({ live, ready }, { live: true, ready: false })
          const shown = reasons.map(Health.describe).join("\n")
          assert.match(
            shown,
            /orders-1 is held by an open transaction since 1970-01-01T00:00:\d\d\.\d{3}Z, with a lag of 501/
          )
          yield* connector.resume("orders").pipe(Effect.when(Effect.succeed(arrives.endsWith("paused"))))
          ends.openUnsafe()
          yield* until(() => handled.length >= behind.length, "1 second")
          yield* advance("20 seconds")
          assert.deepStrictEqual(handled, behind)
          assert.deepStrictEqual(yield* lags, [0n, 0n])
          assert.strictEqual((yield* connector.health).status, "UP")
        })
      )
    }
  }
})
