/** The record of a held key is read again when somebody decides about it: from its retry topic, or from its source where that has lost it. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, scenario, start, valuesOf } from "../bus.ts"
import { keyed, locks, publishKeyed } from "./keys.ts"

const tier = "orders.retry-1"

/** Deletes all records of a topic below an offset. */
const purge = (topic: string, before?: bigint) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, (memory) =>
    Effect.scoped(
      Effect.gen(function* () {
        const admin = yield* memory.broker.admin
        const [log] = yield* admin.topicOffsets(topic)
        yield* admin.deleteRecords(topic, [{ partition: 0, before: before ?? log!.logEnd }])
      })
    )
  )

/** Key a is held by a1, and a2 waits behind it. The handler of a1 works from now on; that of b1 fails once. */
const held = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  const wrong = ["a1"]
  const { binding, handled } = keyed({ wrong, fails: { b1: 1 }, perKey: { onDeadLetter: "hold" } })
  const app = yield* start(binding)
  yield* publishKeyed("a1", "a2")
  yield* advance("2 seconds")
  assert.strictEqual((yield* locks).length, 1)
  wrong.pop()
  return { app, handled, parked: yield* app.connector.parked("orders") }
})

describe("bodies of held records", () => {
  scenario("PKO-05 a held record that its retry topic has lost is handled as its source has it", () =>
    Effect.gen(function* () {
      const { handled, parked } = yield* held
      yield* purge(tier)
      yield* advance("2 seconds")
      yield* parked.retry("a", "it works again")
      yield* advance("2 seconds")
      assert.deepStrictEqual(handled, ["a1", "a2"])
    })
  )

  scenario("PKO-05 it is dead-lettered as its source has it, too", () =>
    Effect.gen(function* () {
      const { handled, parked } = yield* held
      yield* purge(tier)
      yield* parked.skip("a", "nobody needs it")
      yield* advance("2 seconds")
      assert.deepStrictEqual([handled, yield* valuesOf("orders.DLT")], [["a2"], ["a1"]])
    })
  )

  scenario("PKO-05 where nobody has it any more, that is said, and its key goes on behind it", () =>
    Effect.gen(function* () {
      const { app, handled, parked } = yield* held
      yield* purge(tier)
      yield* purge("orders", 1n)
      yield* parked.retry("a", "it works again")
      yield* advance("2 seconds")
      assert.deepStrictEqual(handled, ["a2"])
      const gone = app.of("RecordsGone").filter(({ topic }) => topic === "orders")
      assert.deepStrictEqual(
        gone.map(({ from, to, gone, keys }) => [from, to, gone, keys]),
        [[0n, 1n, 1n, 1]]
      )
    })
  )

  scenario("PKO-05 that is found, too, where its lock makes way for another key, and nobody has decided", () =>
    Effect.gen(function* () {
      const { app, handled } = yield* held
      yield* publishKeyed("b1")
      yield* advance("1 second")
      const [, ofB] = yield* locks
      yield* purge(tier, ofB!.offset)
      yield* purge("orders", 1n)
      yield* advance("1 minute")
      assert.deepStrictEqual(handled.toSorted(), ["a2", "b1"])
      const gone = app.of("RecordsGone").filter(({ topic }) => topic === "orders")
      assert.deepStrictEqual(
        gone.map(({ from, to, gone, keys }) => [from, to, gone, keys]),
        [[0n, 1n, 1n, 1]]
      )
    })
  )
})
