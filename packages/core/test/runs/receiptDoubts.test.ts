import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { fork, pass, setUp } from "../replay/replayProcesses.ts"
import { withOrders } from "./ordersBinding.ts"
import { atOnce, commitAll, returned, runsOf } from "./runProcesses.ts"

const at = (...offsets: ReadonlyArray<number>) => offsets.map((offset) => ({ partition: 0, offset: BigInt(offset) }))

/** Another service leaves a transaction open in a topic for so long. */
const openTransaction = Effect.fnUntraced(function* (
  topic: string,
  partitions: ReadonlyArray<number>,
  seconds: number
) {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const other = yield* broker.transactionalProducer({ transactionalId: `other-${topic}` })
  const records = partitions.map((partition) => ({ topic, partition, key: bytes("k"), value: bytes("other") }))
  yield* fork(
    other.transaction((transaction) => Effect.andThen(transaction.sendAll(records), Effect.sleep(`${seconds} seconds`)))
  )
})

describe("receipts of runs that cannot know everything (ruling 75)", () => {
  scenario("OPS-09 while an open transaction hides what came back, copies wait, and the receipt stays open", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan({ ...atOnce, select: { records: at(0, 1, 2) } }))
      yield* inTime(runs.apply(plan.id))
      yield* openTransaction("orders.DLT", [0], 20)
      yield* pass(1)
      yield* memory.append(
        "orders.DLT",
        0,
        at(0, 1, 2).map((letter) => returned(plan.id, letter))
      )
      yield* commitAll
      const open = yield* inTime(runs.receipt(plan.id), "250 millis")
      assert.deepInclude(open, { passed: 0, cameBack: 0, waiting: 3, closed: false })
      yield* pass(30)
      const closed = yield* inTime(runs.receipt(plan.id), "250 millis")
      assert.deepInclude(closed, { passed: 0, cameBack: 3, waiting: 0, closed: true })
      assert.notProperty(closed, "unknown")
    }).pipe(Effect.scoped)
  )

  scenario("OPS-09 while an open transaction hides a tier, the copies that it may hold wait", () =>
    Effect.gen(function* () {
      const { failing, runs } = yield* withOrders(["0", "1", "2"])
      for (const value of ["0", "1", "2"]) failing.set(value, (tier) => tier === 0)
      const plan = yield* inTime(runs.plan(atOnce))
      yield* openTransaction("orders.retry-1", [0, 1], 50)
      yield* advance("1 second")
      yield* inTime(runs.apply(plan.id), "100 millis")
      for (let step = 0; step < 20; step++) yield* advance("500 millis")
      const open = yield* inTime(runs.receipt(plan.id), "100 millis")
      assert.deepInclude(open, { passed: 0, cameBack: 0, waiting: 3, closed: false })
      for (let step = 0; step < 20; step++) yield* advance("10 seconds")
      assert.deepInclude(yield* inTime(runs.receipt(plan.id)), { passed: 3, cameBack: 0, waiting: 0, closed: true })
    }).pipe(Effect.scoped)
  )

  scenario("OPS-08 an open transaction in the dead letter topic decides no canary", () =>
    Effect.gen(function* () {
      yield* setUp()
      const runs = yield* runsOf("host-a")
      const plan = yield* inTime(runs.plan({ ...atOnce, canary: 10, canaryWait: "1 minute" }), "250 millis")
      yield* openTransaction("orders.DLT", [0], 30)
      yield* fork(runs.apply(plan.id))
      yield* pass(5)
      yield* commitAll
      yield* pass(10)
      assert.strictEqual((yield* inTime(runs.receipt(plan.id), "250 millis")).dealtWith, 10)
      yield* pass(30)
      assert.strictEqual((yield* inTime(runs.receipt(plan.id), "250 millis")).dealtWith, 600)
    }).pipe(Effect.scoped)
  )

  scenario("OPS-09 copies whose letters were purged before anybody had read them did not pass: nobody knows", () =>
    Effect.gen(function* () {
      const { failing, runs, letters } = yield* withOrders(["0", "1", "2"])
      for (const value of ["0", "1", "2"]) failing.set(value, () => true)
      const plan = yield* inTime(runs.plan(atOnce))
      yield* inTime(runs.apply(plan.id))
      for (let step = 0; step < 12; step++) yield* advance("10 seconds")
      yield* inTime(letters.purge(Number.POSITIVE_INFINITY))
      const receipt = yield* inTime(runs.receipt(plan.id))
      assert.deepInclude(receipt, { passed: 0, cameBack: 0, unknown: 3, waiting: 0, closed: true })
      // As the journal keeps it.
      assert.deepStrictEqual(yield* inTime(runs.receipt(plan.id)), receipt)
    })
  )

  scenario("OPS-09 a batch of the dead letter topic that cannot be read may hold copies that came back", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const config = new Map([["max.message.bytes", "104857600"]])
      for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic, { config })
      yield* memory.append("orders.DLT", 0, [{ key: bytes("k"), value: bytes("a"), headers: [] }])
      const runs = yield* runsOf("host-a", { maxBufferedBytes: 65_536 })
      const plan = yield* inTime(runs.plan(atOnce))
      yield* inTime(runs.apply(plan.id))
      yield* memory.append("orders.DLT", 0, [
        { key: bytes("k"), value: new Uint8Array(1_000_000), headers: [], compression: "gzip" }
      ])
      yield* commitAll
      assert.deepInclude(yield* inTime(runs.receipt(plan.id)), { passed: 0, unknown: 1, closed: true })
    })
  )
})
