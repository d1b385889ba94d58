import { assert, describe } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, headersOf, incompressible, inTime, orders, scenario, start } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

const limit = 3_000
const text = new TextEncoder().encode("compressible ".repeat(2_000))
const retry = RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 second", maxAttempts: 1 }] })

/** A record in the main topic, which takes 100 kB, and retry and dead letter topics that take `limit`. Its handler fails for the first `failures` calls. */
const copied = Effect.fnUntraced(function* (
  value: Uint8Array,
  failures: number,
  settings: { readonly compression?: "zstd"; readonly copyCompression?: "lz4" } = {}
) {
  const memory = yield* MemoryBroker.MemoryBroker
  const config = (bytes: number) => ({ config: new Map([["max.message.bytes", String(bytes)]]) })
  yield* memory.createTopic("orders", config(100_000))
  for (const topic of ["orders.retry-1", "orders.DLT"]) yield* memory.createTopic(topic, config(limit))
  const { send } = yield* (yield* Broker.Broker).producer()
  const { compression, ...copies } = settings
  yield* inTime(send({ topic: "orders", key: null, value, compression }))
  const handled: Array<Uint8Array | null> = []
  let calls = 0
  const app = yield* start(
    Binding.make("orders", {
      ...{ ...orders, ...copies, value: Serde.bytes, retry },
      onError: { Down: Route.retry },
      handler: (delivery) =>
        Effect.suspend(() => {
          if (++calls <= failures) return Effect.fail(new Down())
          handled.push(delivery.value)
          return Effect.void
        })
    })
  )
  for (let second = 0; second < 10; second++) yield* advance("1 second")
  const codecsIn = (topic: string) =>
    Effect.map(memory.log(topic, 0), (log) => log.map((record) => record.compression ?? "none"))
  const committed = memory.committed("billing", "orders", 0)
  return { app, memory, handled, codecsIn, committed }
})

describe("C48 a copy fits wherever its source did (ruling 78)", () => {
  scenario(
    "CLN-02 CLN-03 C48 a copy has the codec of its source, and so it fits: retried, handled, dead-lettered once",
    () =>
      Effect.gen(function* () {
        const once = yield* copied(text, 1, { compression: "zstd" })
        assert.deepStrictEqual(once.handled, [text])
        assert.deepStrictEqual(yield* once.codecsIn("orders.retry-1"), ["zstd"])
        assert.strictEqual(yield* once.committed, 1n)
        assert.lengthOf(once.app.of("PublishFailed"), 0)
      })
  )

  scenario("CLN-03 CLN-05 C48 a copy can be read wherever its source was: in the tier, by a replay, and after it", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic)
      const value = new Uint8Array(10_000)
      // Exactly at the bound: every header that is added goes beyond it.
      const headers = [{ key: "mine", value: new Uint8Array(96) }]
      const { send } = yield* (yield* Broker.Broker).producer()
      yield* inTime(send({ topic: "orders", key: null, value, headers, compression: "gzip" }))
      const handled: Array<string> = []
      let isDown = true
      const app = yield* start(
        Binding.make("orders", {
          ...{ ...orders, value: Serde.bytes, retry, maxBufferedBytes: 10_100 },
          onError: { Down: Route.retry },
          handler: (delivery) =>
            Effect.suspend(() => {
              handled.push(`${delivery.tier} ${delivery.value?.length} ${isDown ? "fails" : "succeeds"}`)
              return isDown ? Effect.fail(new Down()) : Effect.void
            })
        })
      )
      yield* advance("10 seconds")
      assert.deepStrictEqual(handled, ["0 10000 fails", "1 10000 fails"])
      const commands = yield* app.connector.deadLetters("orders")
      const round = Effect.gen(function* () {
        assert.deepInclude(yield* inTime(commands.stats), { count: 1, unreadable: 0 })
        assert.deepInclude(yield* inTime(commands.replay(1)), { replayed: 1 })
        yield* advance("10 seconds")
      })
      yield* round
      isDown = false
      yield* round
      assert.deepStrictEqual(handled.slice(2), ["0 10000 fails", "1 10000 fails", "0 10000 succeeds"])
      assert.lengthOf(app.of("BatchUnreadable"), 0)
      assert.strictEqual((yield* app.connector.health).status, "UP")
    })
  )

  scenario("CLN-03 C48 a record that always fails is dead-lettered once, with its value", () =>
    Effect.gen(function* () {
      const always = yield* copied(text, Number.POSITIVE_INFINITY, { compression: "zstd" })
      assert.deepStrictEqual(yield* always.codecsIn("orders.DLT"), ["zstd"])
      const [letter] = yield* always.memory.log("orders.DLT", 0)
      assert.deepStrictEqual(letter!.value, text)
      assert.strictEqual(yield* always.committed, 1n)
    })
  )

  scenario("CLN-03 C48 a copy of an uncompressed record that is too large goes with gzip, with all its headers", () =>
    Effect.gen(function* () {
      const { app, codecsIn, memory } = yield* copied(text, Number.POSITIVE_INFINITY)
      assert.deepStrictEqual(yield* codecsIn("orders.retry-1"), ["gzip"])
      const [retried] = yield* memory.log("orders.retry-1", 0)
      assert.isTrue(headersOf(retried).has("x-eventbus-original-topic"))
      assert.deepStrictEqual(yield* codecsIn("orders.DLT"), ["gzip"])
      assert.lengthOf(app.of("PublishFailed"), 0)
    })
  )

  scenario("CLN-02 a binding chooses the codec of its copies", () =>
    Effect.gen(function* () {
      const { codecsIn } = yield* copied(text, Number.POSITIVE_INFINITY, {
        compression: "zstd",
        copyCompression: "lz4"
      })
      assert.deepStrictEqual(yield* codecsIn("orders.retry-1"), ["lz4"])
      assert.deepStrictEqual(yield* codecsIn("orders.DLT"), ["lz4"])
    })
  )

  scenario("CLN-03 a copy that no codec makes small enough is reported with the setting to raise, and shown", () =>
    Effect.gen(function* () {
      const { app, committed } = yield* copied(incompressible(5_000), Number.POSITIVE_INFINITY)
      assert.strictEqual((yield* committed) ?? 0n, 0n)
      const { error } = app.of("PublishFailed").at(-1)!
      assert.match(error.message, /max\.message\.bytes/)
      const { unpublished } = yield* app.connector.snapshot("orders")
      assert.deepStrictEqual([unpublished?.topic, unpublished?.copies], ["orders.retry-1", 1])
      assert.deepStrictEqual(
        (yield* app.connector.health).reasons.map(({ _tag }) => _tag),
        ["PublisherFailing"]
      )
    })
  )
})
