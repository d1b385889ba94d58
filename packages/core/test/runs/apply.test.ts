import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect, Fiber } from "effect"
import { append, headersOf, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import type { Options } from "../../src/internal/runs/runOptions.ts"
import type { PlanRequest } from "../../src/ReplayPlan.ts"
import type { Receipt, Runs } from "../../src/ReplayRun.ts"
import { type Around, copies, fork, joined, pass, processOf, setUp, timed, values } from "../replay/replayProcesses.ts"
import { atOnce, commitAll, lettersCopied, returned, runsOf } from "./runProcesses.ts"

const steady = { action: "replay", select: { all: true }, reason: "the gateway is back" } as const

const failure = <A, E, R>(effect: Effect.Effect<A, E, R>) => inTime(Effect.flip(effect), "1 second")

/** A plan over the letters of `setUp`, and its run, which works beside the test. */
const running = Effect.fnUntraced(function* (
  request: PlanRequest,
  changes: Partial<Options> = {},
  around?: Around,
  host = "host-a"
) {
  const runs = yield* runsOf(host, changes, around)
  const plan = yield* inTime(runs.plan(request), "250 millis")
  const fiber = yield* fork(runs.apply(plan.id))
  return { id: plan.id, runs, fiber }
})

const count = (id: string) => Effect.map(lettersCopied(id), (letters) => letters.length)

/** Waits until so many copies are there; time passes in steps of 250 ms. */
const copied = Effect.fnUntraced(function* (id: string, least: number) {
  let found = 0
  for (let step = 0; step < 400 && found < least; step++) {
    yield* pass(0.25)
    found = yield* count(id)
  }
  assert.isAtLeast(found, least)
  return found
})

const ended = (fiber: Fiber.Fiber<Receipt, unknown>) => Effect.orDie(joined(fiber))

describe("runs of plans", () => {
  scenario("OPS-08 a run copies each letter once, with its id and its letter in a header", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan(atOnce))
      const receipt = yield* inTime(runs.apply(plan.id), "1 second")
      assert.deepInclude(receipt, {
        state: "done",
        count: 600,
        dealtWith: 600,
        refused: 0,
        waiting: 600,
        closed: false
      })
      assert.deepStrictEqual(yield* copies, values)
      const [copy] = yield* memory.log("orders", 0)
      assert.strictEqual(headersOf(copy).get("x-eventbus-run-id"), `${plan.id}/0@0`)
      assert.strictEqual(headersOf(copy).get("x-eventbus-replay-count"), "1")
    })
  )

  scenario("OPS-08 the canary comes first and alone; the others come at the rate of the plan", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { id, fiber } = yield* running({ ...steady, select: { records: at(0, 120) }, rate: 50 })
      assert.strictEqual(yield* copied(id, 1), 20)
      yield* pass(30)
      assert.strictEqual(yield* count(id), 20)
      yield* commitAll
      yield* copied(id, 21)
      const began = yield* Clock.currentTimeMillis
      yield* ended(fiber)
      assert.strictEqual(yield* count(id), 120)
      // 100 letters at 50 a second: the second half comes a second after the first.
      assert.isAtLeast((yield* Clock.currentTimeMillis) - began, 750)
    })
  )

  scenario("OPS-08 a run whose canary nobody handles stops itself and says so; resumed, it asks no more", () =>
    Effect.gen(function* () {
      yield* setUp()
      const carefully = { ...steady, canary: 5, canaryWait: "10 seconds", rate: 100_000 } as const
      const { id, runs, fiber } = yield* running(carefully)
      assert.strictEqual(yield* copied(id, 1), 5)
      yield* pass(15)
      const receipt = yield* ended(fiber)
      assert.deepInclude(receipt, { state: "stopped", dealtWith: 5, waiting: 5, closed: false })
      assert.strictEqual(
        receipt.stateReason,
        "none of the 5 copies of the canary passed or came back within 10s: is the binding paused or stopped, or do they wait for a retry? Resume the binding, then the run (eventbus dlt resume)"
      )
      assert.strictEqual(yield* count(id), 5)
      const again = yield* inTime(runs.resume(id), "1 second")
      assert.deepInclude(again, { state: "done", dealtWith: 600, waiting: 600 })
    })
  )

  for (const [what, change, handled] of [
    ["one copy of it has passed", { stopAbove: 5 }, 1n],
    ["it never stops (stopAbove 100)", { stopAbove: 100 }, 0n]
  ] as const) {
    scenario(`OPS-08 a run goes on behind an undecided canary when ${what}, no later than the plan says`, () =>
      Effect.gen(function* () {
        const memory = yield* setUp()
        const { id, fiber } = yield* running({
          ...steady,
          ...{ canary: 5, canaryWait: "10 seconds", rate: 100_000 },
          ...change
        })
        assert.strictEqual(yield* copied(id, 1), 5)
        const admin = yield* memory.broker.admin
        yield* admin.setCommittedOffsets("billing", [{ topic: "orders", partition: 0, offset: handled }])
        yield* pass(8)
        assert.strictEqual(yield* count(id), 5)
        yield* pass(4)
        yield* ended(fiber)
        assert.strictEqual(yield* count(id), 600)
      }).pipe(Effect.scoped)
    )
  }

  scenario("OPS-08 a rate is kept: 600 letters at 100 a second take more than 5 seconds", () =>
    Effect.gen(function* () {
      yield* setUp()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan({ ...steady, canary: 0, rate: 100 }))
      const { seconds } = yield* timed(runs.apply(plan.id))
      assert.isAtLeast(seconds, 5)
      assert.isAtMost(seconds, 10)
    })
  )

  scenario("OPS-08 a run stops itself when more than 5 % of the decided copies came back, and can be resumed", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const { id, runs, fiber } = yield* running(steady)
      yield* copied(id, 20)
      yield* memory.append("orders.DLT", 0, [returned(id, { partition: 0, offset: 3n })])
      yield* memory.append("orders.DLT", 0, [returned(id, { partition: 0, offset: 4n })])
      yield* commitAll
      const receipt = yield* ended(fiber)
      assert.deepInclude(receipt, {
        state: "stopped",
        dealtWith: 20,
        passed: 18,
        cameBack: 2,
        waiting: 0,
        closed: false
      })
      assert.strictEqual(receipt.stateReason, "2 of 20 decided copies came back, more than 5 %")
      assert.strictEqual(yield* count(id), 20)
      // Returns count anew: an operator has decided to go on.
      const resumed = yield* fork(runs.resume(id))
      yield* copied(id, 100)
      yield* pass(30)
      assert.deepInclude(yield* ended(resumed), { state: "done", dealtWith: 600, cameBack: 2 })
    })
  )

  scenario("OPS-08 one of twenty that came back, 5 %, does not stop a run", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const { id, fiber } = yield* running({ ...steady, rate: 100_000 })
      yield* copied(id, 20)
      yield* memory.append("orders.DLT", 0, [returned(id, { partition: 0, offset: 3n })])
      yield* commitAll
      assert.deepInclude(yield* ended(fiber), { state: "done", dealtWith: 600, passed: 19, cameBack: 1, waiting: 580 })
    })
  )

  scenario("OPS-08 a run stops itself when the circuit breaker of the binding opens", () =>
    Effect.gen(function* () {
      yield* setUp()
      let isOpen = false
      const { id, fiber } = yield* running({ ...steady, canary: 0 }, { isBreakerOpen: () => isOpen })
      yield* copied(id, 50)
      isOpen = true
      const receipt = yield* ended(fiber)
      assert.strictEqual(receipt.state, "stopped")
      assert.match(receipt.stateReason ?? "", /circuit breaker/)
      assert.isBelow(receipt.dealtWith, 300)
    })
  )

  scenario("OPS-08 another process pauses a run, a third one resumes it, and each letter is copied once", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { id, fiber } = yield* running({ ...steady, canary: 0 })
      yield* copied(id, 100)
      const other = yield* runsOf("host-b")
      yield* inTime(other.pause(id, "the shop is full"), "250 millis")
      const paused = yield* ended(fiber)
      assert.deepInclude(paused, { state: "paused", stateReason: "the shop is full" })
      assert.isBelow(paused.dealtWith, 600)
      yield* pass(60)
      assert.strictEqual(yield* count(id), paused.dealtWith)
      // A paused run holds no lease.
      const replayed = yield* inTime((yield* processOf("host-d")).replayRecords([{ partition: 0, offset: 599n }]))
      assert.strictEqual(replayed.replayed, 1)
      const third = yield* runsOf("host-c")
      assert.deepInclude(yield* inTime(third.resume(id), "1 second"), { state: "done", dealtWith: 599, host: "host-c" })
      assert.deepStrictEqual(yield* copies, values)
    })
  )

  scenario("OPS-08 a cancelled run is over for good, whether a process works on it or not", () =>
    Effect.gen(function* () {
      yield* setUp()
      const first = yield* running({ ...steady, canary: 0 })
      yield* copied(first.id, 50)
      yield* inTime(first.runs.cancel(first.id, "wrong letters"), "250 millis")
      const receipt = yield* ended(first.fiber)
      assert.deepInclude(receipt, { state: "cancelled", stateReason: "wrong letters" })
      assert.deepInclude(yield* failure(first.runs.resume(first.id)), { _tag: "RunOver", state: "cancelled" })
      const second = yield* running({ ...steady, canary: 5 })
      yield* copied(second.id, 5)
      yield* inTime(second.runs.pause(second.id, "lunch"), "250 millis")
      yield* ended(second.fiber)
      yield* inTime(second.runs.cancel(second.id, "wrong letters"))
      assert.deepInclude(yield* inTime(second.runs.receipt(second.id)), { state: "cancelled", dealtWith: 5 })
      assert.deepInclude(yield* failure(second.runs.resume(second.id)), { _tag: "RunOver", state: "cancelled" })
      assert.deepStrictEqual(
        (yield* inTime(first.runs.list)).map(({ id }) => id),
        [second.id, first.id]
      )
    })
  )

  scenario("OPS-08 a run that works is not resumed: the caller learns at once which process works on it", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { id, fiber } = yield* running({ ...steady, canary: 0, rate: 1 })
      yield* copied(id, 1)
      const other = yield* runsOf("host-b")
      const refused = yield* inTime(Effect.timeout(Effect.flip(other.resume(id)), "2 seconds"), "250 millis")
      assert.deepInclude(refused, { _tag: "RunAtWork", id, host: "host-a", pid: process.pid })
      assert.deepInclude(yield* inTime(other.receipt(id)), { state: "running", host: "host-a" })
      yield* Fiber.interrupt(fiber)
    })
  )

  scenario("OPS-08 a pause of a run that is paused, or that has stopped itself, leaves it with its reason", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { id, runs, fiber } = yield* running({ ...steady, canary: 0, rate: 1 })
      yield* copied(id, 1)
      yield* inTime(runs.pause(id, "the shop is full"), "250 millis")
      yield* inTime(runs.pause(id, "again"), "250 millis")
      assert.deepInclude(yield* ended(fiber), { state: "paused", stateReason: "the shop is full" })
      yield* inTime(runs.pause(id, "once more"), "250 millis")
      const paused = yield* inTime(runs.receipt(id))
      assert.deepInclude(paused, { state: "paused", stateReason: "the shop is full" })
    })
  )

  scenario("OPS-08 another process changes the rate of a run that works", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { id, fiber } = yield* running({ ...steady, canary: 0, rate: 1 })
      yield* pass(10)
      const slow = yield* count(id)
      assert.isAtMost(slow, 12)
      yield* inTime((yield* runsOf("host-b")).setRate(id, 10_000), "250 millis")
      assert.deepInclude(yield* ended(fiber), { state: "done", rate: 10_000, dealtWith: 600 })
    })
  )

  scenario("OPS-08 OPS-10 a replay meanwhile learns that a run works, and ends nothing", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { id, fiber } = yield* running({ ...steady, canary: 0, rate: 10 })
      yield* copied(id, 10)
      const refused = yield* failure((yield* processOf("host-b")).replay(5))
      assert.deepInclude(refused, { _tag: "ReplayRunning", host: "host-a" })
      yield* inTime((yield* runsOf("host-b")).setRate(id, 10_000), "250 millis")
      assert.deepInclude(yield* ended(fiber), { state: "done", dealtWith: 600 })
      assert.deepStrictEqual(yield* copies, values)
    })
  )

  scenario("OPS-08 two processes apply one plan at once: one does, the other learns by whom it was applied", () =>
    Effect.gen(function* () {
      yield* setUp()
      const [a, b] = [yield* runsOf("host-a"), yield* runsOf("host-b")]
      const plan = yield* inTime(a.plan(atOnce))
      const fibers = yield* Effect.forEach([a, b], (runs) => fork(Effect.result(runs.apply(plan.id))))
      const [one, two] = yield* Effect.forEach(fibers, joined)
      const won = one!._tag === "Success" ? one : two
      const lost = one!._tag === "Success" ? two : one
      assert.strictEqual(won?._tag === "Success" ? won.success.state : won, "done")
      assert.strictEqual(lost?._tag === "Failure" ? lost.failure._tag : lost, "PlanApplied")
      assert.deepStrictEqual(yield* copies, values)
    })
  )

  scenario("OPS-08 two processes apply one plan whose run is slow: the second does not wait for its end", () =>
    Effect.gen(function* () {
      yield* setUp()
      const { id, fiber } = yield* running({ ...steady, rate: 1, canary: 0 })
      const refused = yield* failure((yield* runsOf("host-b")).apply(id))
      assert.deepInclude(refused, { _tag: "PlanApplied", host: "host-a" })
      yield* Fiber.interrupt(fiber)
    })
  )

  for (const [what, phase] of [
    ["in a transaction", "sent"],
    ["before its transaction publishes anything", "begun"]
  ] as const) {
    scenario(
      `OPS-08 a run whose process is killed ${what} is resumed by another one, and each letter is copied once`,
      () =>
        Effect.gen(function* () {
          yield* setUp()
          // The plan, and the beginning of its run, are a transaction each. Each of the next six has 100 letters.
          const dies: Around = (moment) =>
            moment.phase === phase && moment.done === 4 ? Effect.andThen(moment.kill, Effect.never) : Effect.void
          const { id } = yield* running(atOnce, {}, dies)
          yield* pass(20)
          const other = yield* runsOf("host-b")
          const before = yield* inTime(other.receipt(id), "1 second")
          assert.deepInclude(before, { state: "running", dealtWith: 200, host: "host-a" })
          assert.strictEqual(before.waiting, yield* count(id))
          const receipt = yield* inTime(other.resume(id), "1 second")
          assert.deepInclude(receipt, { state: "done", dealtWith: 600, waiting: 600, host: "host-b" })
          assert.deepStrictEqual(yield* copies, values)
        })
    )
  }

  scenario(
    "OPS-08 a run whose process was suspended for longer than its lease says so; the other one finishes it",
    () =>
      Effect.gen(function* () {
        yield* setUp()
        const sleeps: Around = (moment) =>
          moment.phase === "begun" && moment.done === 4 ? moment.freeze(60) : Effect.void
        const { id, fiber } = yield* running(atOnce, {}, sleeps)
        yield* copied(id, 200)
        yield* pass(20)
        const receipt = yield* inTime((yield* runsOf("host-b")).resume(id), "1 second")
        assert.deepInclude(receipt, { state: "done", dealtWith: 600, host: "host-b" })
        yield* pass(60)
        assert.strictEqual((yield* Effect.flip(Fiber.join(fiber)))._tag, "ReplayTakenOver")
        assert.deepStrictEqual(yield* copies, values)
        assert.deepInclude(yield* inTime((yield* runsOf("host-c")).receipt(id)), { state: "done", dealtWith: 600 })
      })
  )

  scenario("OPS-08 letters whose copies the topic refuses stay, and the run counts them with the reason", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { config: new Map([["max.message.bytes", "2000"]]) })
      yield* memory.createTopic("orders.DLT")
      const large = Array.from({ length: 3_000 }, () => Math.random().toString(36).at(-1)).join("")
      yield* append("orders.DLT", 0, ["a", large, "b"])
      const runs: Omit<Runs, "ofTopic"> = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan(atOnce))
      const receipt = yield* inTime(runs.apply(plan.id))
      assert.deepInclude(receipt, { state: "done", dealtWith: 2, refused: 1 })
      assert.strictEqual(
        [...receipt.refusals.values()].reduce((sum, each) => sum + each, 0),
        receipt.refused
      )
    })
  )
})

const at = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({ partition: 0, offset: BigInt(first + index) }))
