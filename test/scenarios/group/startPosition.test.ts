import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, settle, start, until } from "../bus.ts"

/** A binding that notes the values that it handles. */
const noting = (
  handled: Array<string>,
  settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}
): Binding.Binding<never> =>
  Binding.make("orders", { ...orders, ...settings, handler: ({ value }) => Effect.sync(() => handled.push(value)) })

const values = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`)

describe("where reading starts", () => {
  scenario("OFF-10 a new group reads from the beginning by default", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(3))
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      assert.deepStrictEqual(handled, values(3))
      assert.deepStrictEqual(app.of("RecordsGone"), [])
    })
  )

  scenario("OFF-10 with autoOffsetReset latest a new group reads records that come after its first assignment", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["old"])
      const handled: Array<string> = []
      yield* start(noting(handled, { autoOffsetReset: "latest" }))
      yield* append("orders", 0, ["new"])
      yield* settle
      assert.deepStrictEqual(handled, ["new"])
    })
  )

  scenario("OFF-10 latest: a first record that was not finished when the process died is not skipped", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["old"])
      yield* start(
        Binding.make("orders", {
          ...orders,
          autoOffsetReset: "latest",
          shutdownTimeout: 0,
          handler: () => Effect.never
        })
      )
      yield* append("orders", 0, ["first", "second"])
      yield* settle
      const [member] = (yield* memory.group("billing")).members
      yield* memory.kill(member!.clientId)
      const handled: Array<string> = []
      yield* start(noting(handled, { autoOffsetReset: "latest" }))
      yield* until(() => handled.length > 1, "5 seconds")
      assert.deepStrictEqual(handled, ["first", "second"])
    })
  )

  scenario("OFF-02 a group resumes at its committed offset, whatever autoOffsetReset is", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(4))
      yield* memory.setCommitted("billing", "orders", 0, 2n)
      const handled: Array<string> = []
      yield* start(noting(handled, { autoOffsetReset: "latest" }))
      assert.deepStrictEqual(handled, ["v2", "v3"])
    })
  )

  scenario("OFF-02 a committed offset at the end waits for the next record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(2))
      yield* memory.setCommitted("billing", "orders", 0, 2n)
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      assert.deepStrictEqual(handled, [])
      yield* append("orders", 0, ["new"])
      yield* settle
      assert.deepStrictEqual(handled, ["new"])
      assert.deepStrictEqual(app.of("RecordsGone"), [])
    })
  )
})

describe("gaps", () => {
  scenario("OFF-10 an offset below the log resumes at the earliest and says how many records are gone, once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { firstOffset: 10n })
      yield* memory.setCommitted("billing", "orders", 0, 3n)
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      assert.deepStrictEqual(
        app.of("RecordsGone").map(({ from, to, gone, cause }) => ({ from, to, gone, cause })),
        [{ from: 3n, to: 10n, gone: 7n, cause: "retention" }]
      )
      yield* app.close
      const again = yield* start(noting(handled))
      assert.deepStrictEqual(again.of("RecordsGone"), [])
      yield* append("orders", 0, ["new"])
      yield* settle
      assert.deepStrictEqual(handled, ["new"])
    })
  )

  scenario("OFF-10 a negative committed offset resumes at the earliest and is reported", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(2))
      yield* memory.setCommitted("billing", "orders", 0, -7n)
      const handled: Array<string> = []
      const app = yield* start(noting(handled, { autoOffsetReset: "latest" }))
      assert.deepStrictEqual(handled, values(2))
      assert.deepStrictEqual(
        app.of("RecordsGone").map(({ cause, gone }) => ({ cause, gone })),
        [{ cause: "invalid-commit", gone: undefined }]
      )
    })
  )

  scenario("OFF-10 an offset beyond the end means another log: it is read from its beginning", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(2))
      yield* memory.setCommitted("billing", "orders", 0, 50n)
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* settle
      assert.deepStrictEqual(handled, values(2))
      assert.deepStrictEqual(
        app.of("RecordsGone").map(({ cause, gone }) => ({ cause, gone })),
        [{ cause: "log-replaced", gone: undefined }]
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario("OFF-10 retention that overtakes a paused consumer is reported on resume; fetched records are handled", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const handled: Array<string> = []
      const app = yield* start(noting(handled))
      yield* app.connector.pause("orders")
      yield* append("orders", 0, values(10))
      yield* settle
      yield* Effect.scoped(
        Effect.flatMap(memory.broker.admin, (admin) => admin.deleteRecords("orders", [{ partition: 0, before: 6n }]))
      )
      yield* app.connector.resume("orders")
      yield* settle
      assert.deepStrictEqual(handled, ["v6", "v7", "v8", "v9"])
      assert.deepStrictEqual(
        app.of("RecordsGone").map(({ from, to, gone }) => ({ from, to, gone })),
        [{ from: 0n, to: 6n, gone: 6n }]
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 10n)
    })
  )

  scenario(
    "OFF-10 when retention overtakes the reader, fetched records that are not handled yet are not committed",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, values(5))
        const handled: Array<string> = []
        const takesTime = ({ value }: { readonly value: string }) =>
          Effect.andThen(
            Effect.sleep("1 second"),
            Effect.sync(() => handled.push(value))
          )
        const app = yield* start(Binding.make("orders", { ...orders, handler: takesTime }))
        yield* advance("10 millis")
        yield* append("orders", 0, ["v5", "v6", "v7", "v8", "v9"])
        yield* Effect.scoped(
          Effect.flatMap(memory.broker.admin, (admin) => admin.deleteRecords("orders", [{ partition: 0, before: 8n }]))
        )
        yield* until(() => app.of("RecordsGone").length > 0, "10 millis")
        yield* until(() => handled.length > 0, "1 second")
        yield* until(() => app.of("Committed").length > 0)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        yield* until(() => app.of("Committed").some(({ offset }) => offset === 10n), "1 second")
        assert.deepStrictEqual(handled, ["v0", "v1", "v2", "v3", "v4", "v8", "v9"])
      }),
    { latency: { fetch: "10 millis" } }
  )

  scenario("OFF-10 when retention deletes every record, the committed offset moves, so that lag reaches 0", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const app = yield* start(noting([]))
      yield* app.connector.pause("orders")
      yield* append("orders", 0, values(5))
      yield* Effect.scoped(
        Effect.flatMap(memory.broker.admin, (admin) => admin.deleteRecords("orders", [{ partition: 0, before: -1n }]))
      )
      yield* app.connector.resume("orders")
      yield* until(() => app.of("Committed").some(({ offset }) => offset === 5n), "100 millis")
    })
  )

  scenario("REB-07 a topic that is deleted and made anew under a running binding is read from its beginning", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, values(5))
      const handled: Array<string> = []
      yield* start(noting(handled))
      yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.deleteTopics(["orders"])))
      yield* settle
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["n0", "n1"])
      yield* until(() => handled.length === 7, "1 second")
      assert.deepStrictEqual(handled.slice(5), ["n0", "n1"])
      yield* settle
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )
})
