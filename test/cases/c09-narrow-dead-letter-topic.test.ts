import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route, TopicName } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, bytes, headersOf, orders, scenario, settle, start, until } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

/** One failing record in each of six partitions, and one without key. */
const fill = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 6 })
  for (let partition = 0; partition < 6; partition++) {
    yield* memory.append("orders", partition, [{ key: bytes(`k${partition}`), value: bytes("bad") }])
  }
  yield* memory.append("orders", 5, [{ key: null, value: bytes("bad") }])
})

const failing = (missingTopics: "create" | "wait") =>
  Binding.make("orders", { ...orders, missingTopics, retry: RetryPolicy.none, handler: () => Effect.die("always") })

const originsIn = (topic: string) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    const log = yield* memory.log(topic, 0)
    return log.map((letter) => headersOf(letter).get("x-eventbus-original-partition")).sort()
  })

describe("C09 the dead letter topic is narrower, missing or slow", () => {
  scenario("DLT-12 narrower: seven copies name their origin, and nothing stalls", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill
      yield* memory.createTopic("orders.DLT")
      yield* start(failing("create"))
      yield* settle
      assert.deepStrictEqual(yield* originsIn("orders.DLT"), ["0", "1", "2", "3", "4", "5", "5"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 5), 2n)
    })
  )

  scenario(
    "DLT-12 made anew with one partition: a record without a key whose partition is gone waits at most a second",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        const withoutKey = memory.append("orders", 5, [{ key: null, value: bytes("bad") }])
        yield* memory.createTopic("orders", { partitions: 6 })
        yield* memory.createTopic("orders.DLT", { partitions: 6 })
        const app = yield* start(failing("create"))
        yield* withoutKey
        yield* until(() => app.of("Settled").length === 1, "1 second")
        yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.deleteTopics(["orders.DLT"])))
        yield* memory.createTopic("orders.DLT")
        yield* advance("1 second")
        yield* withoutKey
        yield* advance("1 second")
        assert.deepStrictEqual(yield* originsIn("orders.DLT"), ["5"])
      })
  )

  scenario("DLT-02 missing: nothing committed, another binding works, creating it heals without a restart", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill
      const seen: Array<string> = []
      const other = Binding.make("other", {
        ...orders,
        groupId: "other",
        naming: TopicName.perGroup,
        handler: ({ value }) => Effect.sync(() => seen.push(value))
      })
      yield* start(failing("wait"), other)
      yield* advance("1 minute")
      assert.strictEqual(seen.length, 7)
      for (let partition = 0; partition < 6; partition++) {
        assert.isAtMost(Number((yield* memory.committed("billing", "orders", partition)) ?? 0n), 0)
      }
      yield* memory.createTopic("orders.DLT")
      yield* advance("10 seconds")
      yield* advance("10 seconds")
      assert.deepStrictEqual(yield* originsIn("orders.DLT"), ["0", "1", "2", "3", "4", "5", "5"])
    })
  )

  scenario("DLT-02 acknowledged after 20 s: one copy, not two", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("bad") }])
      yield* memory.addFault(FaultPlan.nth(1, { operation: "produce" }, { _tag: "Delay", duration: "20 seconds" }))
      const app = yield* start(failing("create"))
      yield* until(() => app.of("Committed").some(({ offset }) => offset === 1n), "1 second")
      assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 1)
    })
  )
})

/** Fails on the main topic; what it handled in the tier of 1 s. */
const retrying = (missingTopics: "create" | "wait", handled: Array<string>) =>
  Binding.make("orders", {
    ...orders,
    missingTopics,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] }),
    onError: { Down: Route.retry },
    handler: ({ value, tier, record }) =>
      tier === 0
        ? Effect.fail(new Down())
        : Effect.sync(() => handled.push(`${value} of ${headersOf(record).get("x-eventbus-original-partition")}`))
  })

const all = ["bad of 0", "bad of 1", "bad of 2", "bad of 3", "bad of 4", "bad of 5", "bad of 5"]

const committedOnMain = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  return yield* Effect.forEach([0, 1, 2, 3, 4, 5], (partition) => memory.committed("billing", "orders", partition))
})

describe("C09 the retry topic is narrower, missing, slow or deleted", () => {
  scenario(
    "RTY-17 RTY-23 narrower: each record is retried once, names its origin, and equal keys share a partition",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* fill
        yield* memory.createTopic("orders.retry-1", { partitions: 2 })
        for (let partition = 0; partition < 6; partition++) {
          yield* memory.append("orders", partition, [{ key: bytes("same"), value: bytes("bad") }])
        }
        const handled: Array<string> = []
        yield* start(retrying("create", handled))
        yield* advance("1 second")
        yield* settle
        assert.deepStrictEqual(
          handled.toSorted(),
          [...all, ...[0, 1, 2, 3, 4, 5].map((partition) => `bad of ${partition}`)].toSorted()
        )
        const logs = [yield* memory.log("orders.retry-1", 0), yield* memory.log("orders.retry-1", 1)]
        const withSameKey = logs.map((log) => log.filter(({ key }) => key?.length === 4).length)
        assert.sameMembers(withSameKey, [0, 6])
        assert.deepStrictEqual(yield* committedOnMain, [2n, 2n, 2n, 2n, 2n, 3n])
      })
  )

  scenario("RTY-23 missing: nothing is committed, later records are handled, creating it heals without a restart", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill
      const handled: Array<string> = []
      const app = yield* start(retrying("wait", handled))
      yield* advance("1 minute")
      for (const committed of yield* committedOnMain) assert.isAtMost(Number(committed ?? 0n), 0)
      assert.isAbove(app.of("PublishFailed").length, 0)
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      yield* memory.createTopic("orders.retry-1", { partitions: 6 })
      // The copies, and the group's discovery of the topic, may take their longest wait.
      yield* until(() => handled.length === 7, "5 seconds")
      yield* advance("1 minute")
      assert.deepStrictEqual(handled.toSorted(), all)
      assert.deepStrictEqual(yield* committedOnMain, [1n, 1n, 1n, 1n, 1n, 2n])
    })
  )

  scenario("RTY-23 RTY-24 acknowledged after 20 s: the due time counts from the publish, one copy", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.retry-1")
      yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("bad") }])
      yield* memory.addFault(FaultPlan.nth(1, { operation: "produce" }, { _tag: "Delay", duration: "20 seconds" }))
      const handled: Array<string> = []
      yield* start(retrying("create", handled))
      yield* until(() => handled.length > 0, "1 second")
      yield* advance("1 minute")
      assert.deepStrictEqual(handled, ["bad of 0"])
      assert.strictEqual((yield* memory.log("orders.retry-1", 0)).length, 1)
    })
  )

  scenario(
    "RTY-23 deleted after it was read, made again shorter than the committed offset: no record in it is skipped",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const append = (value: string) => memory.append("orders", 0, [{ key: bytes("k"), value: bytes(value) }])
        const handled: Array<string> = []
        const app = yield* start(retrying("create", handled))
        for (let index = 0; index < 5; index++) yield* append(`before-${index}`)
        yield* until(() => handled.length === 5, "1 second")
        yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.deleteTopics(["orders.retry-1"])))
        for (let index = 0; index < 3; index++) yield* append(`after-${index}`)
        yield* until(() => handled.length === 8, "5 seconds")
        for (let index = 3; index < 9; index++) yield* append(`after-${index}`)
        yield* until(() => handled.length === 14, "5 seconds")
        yield* advance("1 minute")
        assert.strictEqual(new Set(handled).size, 14)
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      })
  )
})
