import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, Metric } from "effect"
import { advance, append, orders, scenario, start } from "../scenarios/bus.ts"

const kinds = {
  "one record at a time": (handled: Array<string>) =>
    Binding.make("orders", { ...orders, handler: ({ value }) => Effect.sync(() => handled.push(value)) }),
  "in transactions": (handled: Array<string>) =>
    Binding.makeTransactional("orders", { ...orders, handler: ({ value }) => Effect.sync(() => handled.push(value)) })
}

const valueOf = (name: string) =>
  Effect.map(Metric.snapshot, (all) =>
    all.flatMap((series) => {
      if (series.id !== name) return []
      if (series.type === "Gauge") return [Number(series.state.value)]
      return series.type === "Counter" ? [Number(series.state.count)] : []
    })
  )

const letters = ["a", "b", "c", "d", "e", "f"]

for (const [kind, bindingOf] of Object.entries(kinds)) {
  describe(`C47 retention removes what a paused binding has not read, ${kind}`, () => {
    for (const [kept, before, lost] of [
      ["all of it", -1n, 6],
      ["a part of it", 4n, 4]
    ] as const) {
      scenario(`ruling 75 OBS-08 ${kept}: no phantom lag, and the loss is in event, log and metric`, () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          const handled: Array<string> = []
          const lines: Array<string> = []
          const capture = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
          const app = yield* Effect.provide(start(bindingOf(handled)), capture)
          const { connector } = app
          yield* connector.pause("orders")
          yield* append("orders", 0, letters)
          yield* advance("1 minute")
          assert.deepStrictEqual(yield* valueOf("eventbus.consumer.lag"), [6])
          yield* Effect.scoped(
            Effect.flatMap(memory.broker.admin, (admin) => admin.deleteRecords("orders", [{ partition: 0, before }]))
          )
          yield* advance("1 minute")
          assert.deepStrictEqual(yield* valueOf("eventbus.consumer.lag"), [6 - lost])
          assert.deepStrictEqual(
            app.of("RecordsGone").map(({ from, to, gone, cause }) => ({ from, to, gone, cause })),
            [{ from: 0n, to: BigInt(lost), gone: BigInt(lost), cause: "retention" }]
          )
          assert.deepStrictEqual(
            lines.filter((line) => line.includes("lost to retention")),
            [`lost to retention: ${lost}. Offset 0 no longer exists, continuing at ${lost}`]
          )
          assert.deepStrictEqual(yield* valueOf("eventbus.records.gone"), [lost])
          yield* connector.resume("orders")
          yield* append("orders", 0, ["new"])
          yield* advance("1 minute")
          assert.deepStrictEqual(handled, [...letters.slice(lost), "new"])
          // The session finds the same gap when it fetches again: it is told of once.
          assert.deepStrictEqual(yield* valueOf("eventbus.records.gone"), [lost])
          assert.deepStrictEqual(yield* valueOf("eventbus.consumer.lag"), [0])
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 7n)
        }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
      )
    }

    scenario("ruling 75 OBS-08 a process that begins behind the gap counts and commits it once", () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["first"])
        const before = yield* start(bindingOf([]))
        yield* advance("1 minute")
        yield* before.close
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
        yield* append("orders", 0, letters)
        yield* Effect.scoped(
          Effect.flatMap(memory.broker.admin, (admin) => admin.deleteRecords("orders", [{ partition: 0, before: -1n }]))
        )
        const after = yield* start(bindingOf([]))
        yield* advance("1 minute")
        assert.deepStrictEqual(yield* valueOf("eventbus.records.gone"), [6])
        assert.deepStrictEqual(yield* valueOf("eventbus.consumer.lag"), [0])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 7n)
        yield* after.close
        const last = yield* start(bindingOf([]))
        yield* advance("1 minute")
        assert.deepStrictEqual(last.of("RecordsGone"), [])
      }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
    )
  })
}
