import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect, Fiber } from "effect"
import { inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { fork, joined, killed, pass, setUp } from "../replay/replayProcesses.ts"
import { atOnce, runsOf } from "./runProcesses.ts"

const soon = <A, E, R>(effect: Effect.Effect<A, E, R>) => inTime(effect, "250 millis")
const slow = { ...atOnce, rate: 10 }

describe("runs that no process works on", () => {
  scenario(
    "OPS-08 a run whose process was killed says since when nobody works on it, and that resume goes on with it",
    () =>
      Effect.gen(function* () {
        yield* setUp()
        const first = yield* runsOf("host-a", {}, killed)
        const other = yield* runsOf("host-b")
        const plan = yield* soon(first.plan(atOnce))
        yield* fork(first.apply(plan.id))
        yield* pass(1)
        const working = yield* soon(other.receipt(plan.id))
        assert.deepInclude(working, { state: "running", stateReason: undefined, abandonedSinceMillis: undefined })
        const workingMillis = yield* Clock.currentTimeMillis
        yield* pass(60)
        for (const run of [yield* soon(other.receipt(plan.id)), (yield* soon(other.list))[0]!]) {
          assert.strictEqual(run.state, "running")
          assert.isBelow(Math.abs(run.abandonedSinceMillis! - workingMillis), 10_000)
          const since = new Date(run.abandonedSinceMillis!).toISOString()
          assert.strictEqual(run.stateReason, `no process works on it since ${since}; resume it`)
        }
        const resumed = yield* soon(other.resume(plan.id))
        assert.deepInclude(resumed, { state: "done", stateReason: undefined, abandonedSinceMillis: undefined })
      })
  )

  scenario("OPS-08 a run that waits for longer than a lease without a copy is still worked on", () =>
    Effect.gen(function* () {
      yield* setUp()
      const runs = yield* runsOf("host-a")
      const plan = yield* soon(runs.plan({ ...atOnce, canary: 10, canaryWait: "5 minutes" }))
      yield* fork(runs.apply(plan.id))
      yield* pass(60)
      const found = yield* soon((yield* runsOf("host-b")).receipt(plan.id))
      assert.deepInclude(found, { state: "running", dealtWith: 10, abandonedSinceMillis: undefined })
    })
  )

  scenario("OPS-08 a process that has left one run and works on another one leaves the first one abandoned", () =>
    Effect.gen(function* () {
      yield* setUp()
      const runs = yield* runsOf("host-a")
      const left = yield* soon(runs.plan(slow))
      const leaving = yield* fork(runs.apply(left.id))
      yield* pass(3)
      yield* Fiber.interrupt(leaving)
      const leftMillis = yield* Clock.currentTimeMillis
      yield* pass(1)
      const first = yield* soon(runs.receipt(left.id))
      assert.strictEqual(first.abandonedSinceMillis, leftMillis)
      const next = yield* soon(runs.plan(slow))
      const working = yield* fork(runs.apply(next.id))
      yield* pass(3)
      const found = new Map((yield* soon(runs.list)).map((run) => [run.id, run.abandonedSinceMillis]))
      assert.isNumber(found.get(left.id))
      assert.isUndefined(found.get(next.id))
      yield* soon(runs.cancel(next.id, "enough"))
      assert.deepInclude(yield* joined(working), { state: "cancelled", abandonedSinceMillis: undefined })
    })
  )

  scenario("OPS-08 a run that ends while somebody looks at it is not shown as abandoned", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { broker } = yield* MemoryBroker.MemoryBroker
      // Leases are read without regard to transactions. This process gets them 30 seconds after the entries of the runs.
      const reader: typeof broker.reader = (options) =>
        options?.isolationLevel === "read_committed"
          ? broker.reader(options)
          : Effect.delay(broker.reader(options), "30 seconds")
      const runs = yield* runsOf("host-a")
      const slowly = yield* runsOf("host-b", { broker: { ...broker, reader } })
      const plan = yield* soon(runs.plan({ ...atOnce, rate: 100 }))
      const working = yield* fork(runs.apply(plan.id))
      yield* pass(1)
      const looks = yield* Effect.forEach(
        [slowly.receipt(plan.id), Effect.map(slowly.list, (all) => all[0]!)],
        (look) => fork(look)
      )
      yield* pass(90)
      assert.strictEqual((yield* joined(working)).state, "done")
      for (const look of looks)
        assert.deepInclude(yield* joined(look), {
          state: "done",
          stateReason: undefined,
          abandonedSinceMillis: undefined
        })
    })
  )
})
