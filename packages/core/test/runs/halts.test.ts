import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber } from "effect"
import { advance, append, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import type { LetterTransform } from "../../src/LetterTransform.ts"
import { fork, joined, killed, pass, processOf, setUp, timed } from "../replay/replayProcesses.ts"
import { withOrders } from "./ordersBinding.ts"
import { atOnce, commitAll, lettersCopied, runsOf } from "./runProcesses.ts"

const failure = <A, E, R>(effect: Effect.Effect<A, E, R>) => inTime(Effect.flip(effect), "250 millis")

/** A run of 600 letters with a transform, which works beside the test. */
const transforming = Effect.fnUntraced(function* (transform: LetterTransform<unknown, unknown>) {
  yield* setUp()
  const transforms = new Map([["repair", transform]])
  const runs = yield* runsOf("host-a", { transforms })
  const plan = yield* inTime(runs.plan({ ...atOnce, transform: "repair" }), "250 millis")
  const fiber = yield* fork(runs.apply(plan.id))
  yield* pass(3)
  return { id: plan.id, fiber, other: yield* runsOf("host-b", { transforms }) }
})

describe("runs that operators pause or cancel", () => {
  scenario(
    "OPS-08 a pause waits for no transform that hangs: it is obeyed within 5 seconds, and the lease is free",
    () =>
      Effect.gen(function* () {
        const { id, fiber, other } = yield* transforming(() => Effect.never)
        yield* inTime(other.pause(id, "lunch"), "250 millis")
        const { result, seconds } = yield* timed(Fiber.join(fiber))
        assert.isBelow(seconds, 5)
        assert.deepInclude(result, { state: "paused", stateReason: "lunch", dealtWith: 0 })
        const replayed = yield* inTime((yield* processOf("host-c")).replayRecords([{ partition: 0, offset: 5n }]))
        assert.strictEqual(replayed.replayed, 1)
      })
  )

  scenario("OPS-08 nothing is copied once a receipt has said that the run is cancelled", () =>
    Effect.gen(function* () {
      const { id, fiber, other } = yield* transforming((letter) =>
        Effect.delay(Effect.succeed({ value: text(letter.value) }), "1 second")
      )
      yield* inTime(other.cancel(id, "the wrong transform"), "250 millis")
      assert.strictEqual((yield* inTime(other.receipt(id), "250 millis")).state, "cancelled")
      assert.strictEqual((yield* joined(fiber)).state, "cancelled")
      yield* pass(150)
      assert.lengthOf(yield* lettersCopied(id), 0)
    })
  )

  scenario("OPS-08 a pause ends the wait for a rate that an operator has lowered meanwhile", () =>
    Effect.gen(function* () {
      yield* setUp()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan({ ...atOnce, rate: 100 }), "250 millis")
      const fiber = yield* fork(runs.apply(plan.id))
      yield* pass(0.5)
      yield* inTime(runs.setRate(plan.id, 1), "250 millis")
      yield* pass(4)
      yield* inTime(runs.pause(plan.id, "lunch"), "250 millis")
      const { result, seconds } = yield* timed(Fiber.join(fiber))
      assert.isBelow(seconds, 5)
      assert.strictEqual(result.state, "paused")
    })
  )

  scenario("OPS-08 OPS-09 a run that is cancelled after its process was killed is over: its receipt closes", () =>
    Effect.gen(function* () {
      yield* setUp()
      const first = yield* runsOf("host-a", {}, killed)
      const other = yield* runsOf("host-b")
      const plan = yield* inTime(first.plan(atOnce), "250 millis")
      yield* fork(first.apply(plan.id))
      yield* pass(5)
      yield* inTime(other.cancel(plan.id, "enough"), "250 millis")
      yield* commitAll
      yield* pass(60)
      const expected = { state: "cancelled", stateReason: "enough", waiting: 0, closed: true, host: "host-a" } as const
      assert.deepInclude(yield* inTime(other.receipt(plan.id), "250 millis"), expected)
      assert.deepInclude(yield* failure(other.resume(plan.id)), { _tag: "RunOver", state: "cancelled" })
    })
  )

  scenario("OPS-09 the counts of a run that was interrupted and then cancelled stay what they are after a purge", () =>
    Effect.gen(function* () {
      const { failing, runs, letters } = yield* withOrders(["0", "1", "2", "3"])
      for (const value of ["0", "1"]) failing.set(value, () => true)
      const plan = yield* inTime(runs.plan({ ...atOnce, rate: 1 }))
      const fiber = yield* fork(runs.apply(plan.id))
      for (let step = 0; step < 10; step++) yield* advance("250 millis")
      yield* Fiber.interrupt(fiber)
      yield* inTime(runs.cancel(plan.id, "enough"))
      for (let step = 0; step < 15; step++) yield* advance("10 seconds")
      const closed = yield* inTime(runs.receipt(plan.id))
      assert.deepInclude(closed, { state: "cancelled", waiting: 0, closed: true })
      assert.isAbove(closed.cameBack, 0)
      yield* inTime(letters.purge(Number.POSITIVE_INFINITY))
      assert.deepStrictEqual(yield* inTime(runs.receipt(plan.id)), closed)
    })
  )

  scenario("OPS-09 the receipt of a run that was paused and then cancelled closes", () =>
    Effect.gen(function* () {
      yield* setUp()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan({ ...atOnce, rate: 10 }), "250 millis")
      const fiber = yield* fork(runs.apply(plan.id))
      yield* pass(3)
      yield* inTime(runs.pause(plan.id, "lunch"), "250 millis")
      yield* joined(fiber)
      yield* inTime(runs.cancel(plan.id, "enough"), "250 millis")
      yield* commitAll
      assert.deepInclude(yield* inTime(runs.receipt(plan.id), "250 millis"), { state: "cancelled", closed: true })
    })
  )

  scenario("OPS-08 a pause is obeyed while the run comes to letters that it leaves", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      for (let batch = 0; batch < 40; batch++) yield* append("orders.DLT", 0, ["a"])
      const reads = { count: 0 }
      const broker = {
        ...memory.broker,
        reader: (options: Parameters<typeof memory.broker.reader>[0]) =>
          Effect.map(memory.broker.reader({ ...options, maxPartitionFetchBytes: 1 }), (reader) => ({
            read: (position: Parameters<typeof reader.read>[0]) =>
              position.topic === "orders.DLT"
                ? Effect.delay(
                    Effect.suspend(() => {
                      reads.count++
                      return reader.read(position)
                    }),
                    "1 second"
                  )
                : reader.read(position)
          }))
      }
      const runs = yield* runsOf("host-a")
      const slow = yield* runsOf("host-b", { broker })
      const select = { records: [{ partition: 0, offset: 39n }] }
      const plan = yield* inTime(runs.plan({ ...atOnce, select }), "250 millis")
      const fiber = yield* fork(slow.apply(plan.id))
      for (let step = 0; step < 400 && (yield* inTime(runs.list, "250 millis")).length === 0; step++) yield* pass(1)
      yield* pass(3)
      yield* inTime(runs.pause(plan.id, "lunch"), "250 millis")
      const before = reads.count
      const { result } = yield* timed(Fiber.join(fiber))
      assert.strictEqual(result.state, "paused")
      assert.isBelow(reads.count - before, 10)
      assert.lengthOf(yield* lettersCopied(plan.id), 0)
    })
  )
})
