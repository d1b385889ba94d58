import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, orders, scenario, start, until } from "../scenarios/bus.ts"

const slow = (started: Array<string>, handled: Array<string>) =>
  Binding.make("orders", {
    ...orders,
    handler: ({ value }) =>
      Effect.sync(() => started.push(value)).pipe(
        Effect.andThen(Effect.sleep("200 millis")),
        Effect.andThen(Effect.sync(() => handled.push(value)))
      )
  })

describe("C23 assigned and revoked in the same poll; lost and revoked", () => {
  scenario(
    "REB-05 REB-07 many members at once: a partition that a member holds only briefly is neither lost nor handled twice",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 3 })
        const handled: Array<string> = []
        const apps = yield* Effect.all(
          [1, 2, 3].map(() => start(slow([], handled))),
          { concurrency: "unbounded" }
        )
        for (const partition of [0, 1, 2]) yield* append("orders", partition, [`${partition}a`, `${partition}b`])
        yield* inTime(apps[0]!.close, "100 millis")
        yield* until(() => handled.length >= 6, "100 millis")
        yield* advance("2 seconds")
        assert.deepStrictEqual([...handled].sort(), ["0a", "0b", "1a", "1b", "2a", "2b"])
      })
  )

  scenario(
    "OFF-09 CLS-11 lost with a record in flight: the handler is interrupted, nothing is committed, and reading resumes at the committed offset",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 3 })
        yield* append("orders", 0, ["a", "b"])
        const started: Array<string> = []
        const handled: Array<string> = []
        const app = yield* start(slow(started, handled))
        yield* advance("300 millis")
        assert.deepStrictEqual([started, handled], [["a", "b"], ["a"]])
        yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
        yield* until(() => app.of("PartitionAssigned").length === 4)
        assert.strictEqual(app.of("PartitionAssigned").at(-1)?.position, 1n)
        yield* until(() => handled.length === 2, "100 millis")
        assert.deepStrictEqual(
          [started, handled],
          [
            ["a", "b", "b"],
            ["a", "b"]
          ]
        )
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
        const offsets = (yield* memory.commits("billing")).filter(({ partition }) => partition === 0)
        yield* advance("1 second")
        assert.deepStrictEqual(offsets.map(({ offset }) => offset).slice(0, 1), [1n])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
      })
  )
})
