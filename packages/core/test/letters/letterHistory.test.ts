import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect } from "effect"
import { advance, append, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import * as LetterPages from "../../src/internal/letters/letterPages.ts"
import * as OneLetter from "../../src/internal/letters/oneLetter.ts"
import type { PlanRequest } from "../../src/ReplayPlan.ts"
import * as Serde from "../../src/Serde.ts"
import { ordersReplay } from "../replay/ordersReplay.ts"
import { atOnce, runsOf } from "../runs/runProcesses.ts"

const at = (...offsets: ReadonlyArray<number>) => offsets.map((offset) => ({ partition: 0, offset: BigInt(offset) }))

const setUp = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  yield* append("orders.DLT", 0, [..."abc"])
  const target = { ...ordersReplay, broker: memory.broker }
  const runs = yield* runsOf("host-a")
  const apply = Effect.fnUntraced(function* (request: Omit<PlanRequest, "select">, ...offsets: ReadonlyArray<number>) {
    yield* advance("1 minute")
    const plan = yield* inTime(runs.plan({ ...request, select: { records: at(...offsets) } }))
    yield* inTime(runs.apply(plan.id))
    return plan.id
  })
  const history = Effect.map(
    inTime(LetterPages.page([target])),
    ({ letters }) => new Map(letters.map((letter) => [letter.offset, letter.history]))
  )
  const serdes = { key: Serde.bytes, value: Serde.string }
  const one = (offset: number) => inTime(OneLetter.letter(target, serdes, at(offset)[0]!))
  return { memory, apply, history, one }
})

describe("what was done about a dead letter", () => {
  scenario("OPS-03 a letter says which run has copied it, when, and where its copy is", () =>
    Effect.gen(function* () {
      const { apply, history, one } = yield* setUp
      const run = yield* apply({ ...atOnce, by: "ann" }, 1)
      const nowMillis = yield* Clock.currentTimeMillis
      const all = yield* history
      assert.deepStrictEqual([all.get(0n), all.get(2n)], [[], []])
      const [event, ...more] = all.get(1n)!
      assert.lengthOf(more, 0)
      assert.deepInclude(event, { action: "replayed", runId: run, by: "ann", reason: "the gateway is back" })
      assert.deepStrictEqual(event!.copy, { topic: "orders", partition: 0, offset: 0n })
      assert.isBelow(Math.abs(event!.atMillis - nowMillis), 10_000)
      assert.deepStrictEqual((yield* one(1))?.history, all.get(1n))
    })
  )

  scenario("OPS-03 OPS-04 a letter says who gave it up and who brought it back, in which runs", () =>
    Effect.gen(function* () {
      const { apply, history } = yield* setUp
      const discard = yield* apply({ action: "discard", reason: "a test", by: "ann" }, 0, 2)
      const restore = yield* apply({ action: "restore", reason: "it was none", by: "bob" }, 0)
      const all = yield* history
      const shown = (offset: bigint) =>
        all.get(offset)?.map(({ action, runId, by, reason }) => [action, runId, by, reason])
      assert.deepStrictEqual(shown(0n), [
        ["discarded", discard, "ann", "a test"],
        ["restored", restore, "bob", "it was none"]
      ])
      assert.deepStrictEqual(shown(1n), [])
      assert.deepStrictEqual(shown(2n), [["discarded", discard, "ann", "a test"]])
    })
  )

  scenario("OPS-03 a letter of a topic that was made again has no history of the former one", () =>
    Effect.gen(function* () {
      const { memory, apply, history } = yield* setUp
      yield* apply(atOnce, 0)
      yield* apply({ action: "discard", reason: "a test" }, 1)
      yield* advance("1 minute")
      yield* Effect.flatMap(memory.broker.admin, (admin) => admin.deleteTopics(["orders.DLT"])).pipe(Effect.scoped)
      yield* memory.createTopic("orders.DLT")
      yield* append("orders.DLT", 0, [..."xy"])
      assert.deepStrictEqual(Array.from(yield* history), [
        [1n, []],
        [0n, []]
      ])
    })
  )
})
