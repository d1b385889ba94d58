import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import type { Broker } from "../../src/Broker.ts"
import { fork, joined, pass } from "../replay/replayProcesses.ts"
import { atOnce, commitAll, lettersCopied, runsOf } from "./runProcesses.ts"

/** Kafka before 2.8 gives topics no ids. */
const withoutIds = ({ broker }: MemoryBroker.MemoryBroker["Service"]): Broker["Service"] => ({
  ...broker,
  reader: (options) =>
    Effect.map(broker.reader(options), ({ read }) => ({
      read: (position) => Effect.map(read(position), (found) => ({ ...found, topicId: undefined }))
    }))
})

const values = (prefix: string) => Array.from({ length: 50 }, (_, index) => `${prefix}-${index}`)

const setUp = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  yield* append("orders.DLT", 0, values("old"))
  return yield* runsOf("host-a", { broker: withoutIds(memory) })
})

const remake = (size: number) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* advance("1 minute")
    const admin = yield* memory.broker.admin
    yield* admin.deleteTopics(["orders.DLT"])
    yield* memory.createTopic("orders.DLT")
    yield* append("orders.DLT", 0, values("new").slice(0, size))
  }).pipe(Effect.scoped, Effect.orDie)

const stale = { _tag: "PlanStale", changes: ["topic 'orders.DLT' was made again"] } as const

describe("a dead letter topic that is made again in a cluster without topic ids", () => {
  for (const size of [50, 20]) {
    scenario(`OPS-07 a plan copies no letter that it never showed (${size} new letters)`, () =>
      Effect.gen(function* () {
        const runs = yield* setUp
        const plan = yield* inTime(runs.plan(atOnce))
        yield* remake(size)
        assert.deepInclude(yield* inTime(Effect.flip(runs.apply(plan.id))), stale)
        assert.lengthOf(yield* lettersCopied(plan.id), 0)
      })
    )
  }

  scenario("OPS-08 OPS-09 a paused run is not resumed, and its receipt says that returns may be gone", () =>
    Effect.gen(function* () {
      const runs = yield* setUp
      const plan = yield* inTime(runs.plan({ ...atOnce, rate: 10 }), "250 millis")
      const fiber = yield* fork(runs.apply(plan.id))
      yield* pass(2)
      yield* inTime(runs.pause(plan.id, "lunch"), "250 millis")
      const { dealtWith } = yield* joined(fiber)
      assert.isBelow(dealtWith, 50)
      yield* remake(50)
      assert.deepInclude(yield* inTime(Effect.flip(runs.resume(plan.id))), stale)
      assert.lengthOf(yield* lettersCopied(plan.id), dealtWith)
      yield* commitAll
      assert.deepInclude(yield* inTime(runs.receipt(plan.id)), { passed: 0, unknown: dealtWith })
    })
  )

  scenario("OPS-08 a topic that is the same one lets the run go on", () =>
    Effect.gen(function* () {
      const runs = yield* setUp
      const plan = yield* inTime(runs.plan({ ...atOnce, rate: 10 }), "250 millis")
      const fiber = yield* fork(runs.apply(plan.id))
      yield* pass(2)
      yield* inTime(runs.pause(plan.id, "lunch"), "250 millis")
      yield* joined(fiber)
      assert.deepInclude(yield* inTime(runs.resume(plan.id), "250 millis"), { state: "done", dealtWith: 50 })
    })
  )
})
