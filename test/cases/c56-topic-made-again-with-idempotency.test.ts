import { assert, describe, it } from "@effect/vitest"
import { Binding, type Broker, IdempotencyStore, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Duration, Effect, Layer, type Scope } from "effect"
import { onStores } from "../idempotency/stores.ts"
import { advance, append, layer, orders, start } from "../scenarios/bus.ts"

const values = (incarnation: string) => Array.from({ length: 10 }, (_, index) => `${incarnation}${index}`)
const { IdempotencyStore: Store } = IdempotencyStore

const admin = <A, E>(use: (admin: Broker.Admin) => Effect.Effect<A, E>) =>
  MemoryBroker.MemoryBroker.use((memory) => Effect.scoped(Effect.flatMap(memory.broker.admin, use)))

/** The keys that the first version of the connector leaves behind when it has handled these records. */
const handledByFirstVersion = (from: number, to: number) =>
  Store.use((store) =>
    Effect.gen(function* () {
      for (let offset = from; offset < to; offset++) {
        const claim = yield* store.begin(`billing:orders-0-${offset}`, { lease: Duration.minutes(1) })
        if (claim._tag !== "Started") return assert.fail(claim._tag)
        assert.isTrue(yield* store.complete(claim.token, { retention: Duration.hours(1) }))
      }
    })
  )

onStores("C56 a topic is deleted and made again, idempotency on", (store) => {
  /** A second of the cluster's time, or as long as the real store needs. */
  const pause = store.time === "virtual" ? advance("1 second") : Effect.sleep("20 millis")
  const eventually = (condition: () => boolean) =>
    Effect.gen(function* () {
      for (let round = 0; round < 200 && !condition(); round++) yield* pause
      // So that what is one too many shows as well.
      yield* pause
      assert.isTrue(condition())
    })
  const test = <E>(
    title: string,
    body: Effect.Effect<
      void,
      E,
      MemoryBroker.MemoryBroker | Broker.Broker | IdempotencyStore.IdempotencyStore | Scope.Scope
    >
  ) => {
    const run = () => Effect.provide(body, Layer.merge(layer(), store.layer))
    if (store.time === "virtual") it.effect(title, run)
    else it.live(title, run)
  }
  const binding = (handled: Array<string>, options: { readonly failOnce?: string } = {}) => {
    let failures = options.failOnce === undefined ? 0 : 1
    return Binding.make("orders", {
      ...orders,
      retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [10] }),
      idempotency: {},
      handler: ({ value }) =>
        Effect.suspend(() => {
          if (value === options.failOnce && failures-- > 0) return Effect.die("down")
          handled.push(value)
          return Effect.void
        })
    })
  }

  test(
    "ruling 77 all twenty records are handled, and the first ten once more neither after a rewind",
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const handled: Array<string> = []
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values("old"))
      const first = yield* start(binding(handled))
      yield* eventually(() => handled.length === 10)
      yield* first.close
      yield* memory.setCommitted("billing", "orders", 0, 0n)
      const again = yield* start(binding(handled))
      yield* pause
      assert.deepStrictEqual(handled, values("old"))
      yield* again.close
      yield* admin((topics) => topics.deleteTopics(["orders"]))
      yield* pause
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values("new"))
      const last = yield* start(binding(handled))
      yield* eventually(() => handled.length === 20)
      assert.deepStrictEqual(handled, [...values("old"), ...values("new")])
      yield* last.close
    })
  )

  test(
    "ruling 77 a record in a retry topic is known by the time of its first topic",
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const handled: Array<string> = []
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a"])
      const first = yield* start(binding(handled, { failOnce: "a" }))
      yield* eventually(() => handled.length === 1)
      yield* first.close
      yield* memory.setCommitted("billing", "orders", 0, 0n)
      const last = yield* start(binding(handled))
      yield* pause
      assert.deepStrictEqual(handled, ["a"])
      yield* last.close
    })
  )

  test(
    "rulings 77 and 89 records that the first version has handled are not handled again",
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const handled: Array<string> = []
      yield* handledByFirstVersion(0, 5)
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values("v"))
      const last = yield* start(binding(handled))
      yield* eventually(() => handled.length === 5)
      assert.deepStrictEqual(handled, values("v").slice(5))
      yield* last.close
    })
  )

  test(
    "rulings 77 and 89 a record that the first version is handling waits for its end",
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const shared = yield* Store
      const [done, failed] = [
        yield* shared.begin("billing:orders-0-0", { lease: Duration.minutes(1) }),
        yield* shared.begin("billing:orders-0-1", { lease: Duration.minutes(1) })
      ]
      assert(done._tag === "Started" && failed._tag === "Started")
      const handled: Array<string> = []
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b"])
      const last = yield* start(binding(handled))
      yield* pause
      assert.deepStrictEqual(handled, [])
      yield* shared.complete(done.token, { retention: Duration.hours(1) })
      yield* shared.abandon(failed.token)
      yield* eventually(() => handled.length === 1)
      assert.deepStrictEqual(handled, ["b"])
      yield* last.close
    })
  )
})

describe("C56 a store of the user", () => {
  it.effect("rulings 77 and 89 one that cannot look a key up claims it for a moment", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const { lookUp: _, ...plain } = yield* Store
      yield* handledByFirstVersion(0, 1)
      const handled: Array<string> = []
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b"])
      const binding = Binding.make("orders", {
        ...orders,
        idempotency: {},
        handler: ({ value }) => Effect.sync(() => handled.push(value))
      })
      yield* Effect.provideService(start(binding), Store, plain)
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["b"])
      assert.strictEqual((yield* plain.begin("billing:orders-0-1", { lease: Duration.minutes(1) }))._tag, "Started")
    }).pipe(Effect.provide(Layer.merge(layer(), IdempotencyStore.layerMemory())))
  )
})
