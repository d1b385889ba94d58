/** Two services with default names share a dead letter topic and its journal, and so the journal's transactions. */
import { assert, describe } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Fiber, type Scope } from "effect"
import { advance, inTime, orders, publish, scenario, settle, start } from "../bus.ts"

const failing = Binding.make("orders", {
  ...orders,
  retry: RetryPolicy.none,
  handler: () => Effect.fail("no"),
  onError: () => Route.deadLetter()
})

/** Another service's replay, which has written to the journal and does not end its transaction before it is told to. */
const replayOfAnother = Effect.gen(function* () {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const begun = yield* Deferred.make<void>()
  const ended = yield* Deferred.make<void>()
  const begin = Effect.gen(function* () {
    const producer = yield* broker.transactionalProducer({ transactionalId: "invoicing/orders.DLT/replay" })
    yield* producer.transaction(({ send }) =>
      send({ topic: "orders.DLT.replays", key: new Uint8Array(1), value: new Uint8Array(1) }).pipe(
        Effect.andThen(Deferred.succeed(begun, undefined)),
        Effect.andThen(Deferred.await(ended))
      )
    )
  })
  yield* Effect.forkScoped(begin)
  yield* Deferred.await(begun)
  return Deferred.succeed(ended, undefined)
})

describe("a journal that two services share", () => {
  scenario("DLT-23 ruling 61 a transaction of another service hides no replay: a dead letter is replayed once", () =>
    Effect.gen(function* () {
      const { broker, createTopic } = yield* MemoryBroker.MemoryBroker
      yield* createTopic("orders")
      yield* createTopic("orders.DLT.replays", { config: new Map([["cleanup.policy", "compact"]]) })
      let endOther: Effect.Effect<unknown> = Effect.void
      /** The other service begins between what this one reads and what it writes. */
      const watched: Broker.Broker["Service"] = {
        ...broker,
        transactionalProducer: (options) =>
          Effect.map(broker.transactionalProducer(options), (producer) => ({
            transaction: (use) =>
              replayOfAnother.pipe(
                Effect.tap((end) => Effect.sync(() => (endOther = end))),
                Effect.provideContext(services),
                Effect.orDie,
                Effect.andThen(producer.transaction(use))
              )
          }))
      }
      const services = yield* Effect.context<MemoryBroker.MemoryBroker | Scope.Scope>()
      const { connector } = yield* Effect.provideService(start(failing), Broker.Broker, watched)
      yield* publish("orders", ["a"])
      yield* settle
      const letters = yield* connector.deadLetters("orders")
      const first = { partition: 0, offset: 0n }
      assert.strictEqual((yield* inTime(letters.replayRecords([first]))).replayed, 1)

      const again = yield* Effect.forkChild(letters.replayRecords([first]), { startImmediately: true })
      yield* advance("5 seconds")
      assert.isUndefined(again.pollUnsafe())
      yield* endOther
      yield* advance("5 seconds")
      assert.strictEqual((yield* Fiber.join(again)).replayed, 0)
    })
  )
})
