import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { bytes, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import * as Listing from "../../src/internal/deadLetters/replayListing.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"
import { ordersReplay } from "../replay/ordersReplay.ts"
import { runsOf } from "./runProcesses.ts"

const at = (...offsets: ReadonlyArray<number>) => offsets.map((offset) => ({ partition: 0, offset: BigInt(offset) }))

/** Letters of group `old`, a former name of `billing`. */
const setUp = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  yield* memory.append(
    "orders.DLT",
    0,
    [..."abc"].map((value) => ({
      ...{ key: bytes("k"), value: bytes(value) },
      headers: [{ key: "x-eventbus-copy-owner", value: bytes("orders.DLT/old") }]
    }))
  )
  const adopting = { ...ordersReplay, broker: memory.broker, adopts: ["old"] }
  const tiers = Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, [])
  const states = Effect.map(inTime(Listing.list(adopting, { partition: 0, count: 9 })), (all) =>
    all.map(({ letter, state }) => `${text(letter.value)} ${state}`)
  )
  return {
    states,
    runs: yield* runsOf("host-a", { adopts: ["old"] }),
    replays: Replay.make({ ...adopting, tiers }),
    before: Replay.make({ ...adopting, adopts: [], groupId: "old", tiers }),
    discarded: Effect.map(inTime(Listing.discarded(adopting)), (all) => all.map(({ offset }) => offset)),
    restored: Effect.map(inTime(Listing.restored(adopting)), (all) => all.map(({ offset }) => offset)),
    copied: Effect.map(memory.log("orders", 0), (copies) => copies.map(({ value }) => text(value)))
  }
})

const restore = { action: "restore", select: { records: at(1) }, reason: "it was not" } as const

describe("letters of a former name that are given up, and restored", () => {
  scenario("OPS-04 the group that gave them up under its new name restores them, and they are replayed once", () =>
    Effect.gen(function* () {
      const { runs, replays, states, discarded, restored, copied } = yield* setUp
      assert.strictEqual(yield* inTime(replays.discard(at(0, 1), "test data")), 2)
      assert.deepStrictEqual(yield* discarded, ["0", "1"])
      const plan = yield* inTime(runs.plan(restore))
      assert.strictEqual(plan.count, 1)
      assert.strictEqual((yield* inTime(runs.apply(plan.id))).dealtWith, 1)
      assert.deepStrictEqual(yield* states, ["a dealt-with", "b waiting", "c waiting"])
      assert.deepStrictEqual([yield* discarded, yield* restored], [["0"], ["1"]])
      assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 2)
      assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 0)
      assert.deepStrictEqual(yield* copied, ["b", "c"])
    })
  )

  for (const isPassed of [false, true]) {
    scenario(
      `OPS-04 those that were given up under the former name are restored, too (${isPassed ? "behind" : "above"} its position)`,
      () =>
        Effect.gen(function* () {
          const { runs, replays, before, states, discarded, copied } = yield* setUp
          assert.strictEqual(yield* inTime(before.discard(at(0, 1), "test data")), 2)
          if (isPassed) yield* inTime(before.replay(9))
          const others = isPassed ? "dealt-with" : "waiting"
          assert.deepStrictEqual(yield* states, ["a dealt-with", "b dealt-with", `c ${others}`])
          const plan = yield* inTime(runs.plan(restore))
          assert.strictEqual((yield* inTime(runs.apply(plan.id))).dealtWith, 1)
          assert.deepStrictEqual(yield* states, ["a dealt-with", "b waiting", `c ${others}`])
          assert.deepStrictEqual(yield* discarded, ["0"])
          yield* inTime(replays.replay(9))
          assert.deepStrictEqual(yield* states, ["a dealt-with", "b dealt-with", "c dealt-with"])
          assert.deepStrictEqual([...(yield* copied)].sort(), ["b", "c"])
        })
    )
  }

  scenario("OPS-04 a letter that was replayed is not restored", () =>
    Effect.gen(function* () {
      const { runs, replays } = yield* setUp
      yield* inTime(replays.replayRecords(at(1)))
      assert.strictEqual((yield* inTime(runs.plan(restore))).count, 0)
    })
  )
})
