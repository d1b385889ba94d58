import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import * as Listing from "../../src/internal/deadLetters/replayListing.ts"
import * as Stats from "../../src/internal/deadLetters/replayStats.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"
import { ordersReplay } from "../replay/ordersReplay.ts"
import { atOnce, runsOf } from "./runProcesses.ts"

const at = (...offsets: ReadonlyArray<number>) => offsets.map((offset) => ({ partition: 0, offset: BigInt(offset) }))

const setUp = Effect.fnUntraced(function* (ownsPosition = true) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  yield* append("orders.DLT", 0, [..."abcde"])
  const target = { ...ordersReplay, broker: memory.broker, ownsPosition }
  const tiers = Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, [])
  const replays = Replay.make({ ...target, tiers })
  const runs = yield* runsOf("host-a", { ownsPosition })
  const states = Effect.map(inTime(Listing.list(target, { partition: 0, count: 9 })), (all) =>
    all.map(({ letter, state }) => `${text(letter.value)} ${state}`)
  )
  const apply = Effect.fnUntraced(function* (request: Parameters<typeof runs.plan>[0]) {
    const plan = yield* inTime(runs.plan(request))
    return yield* inTime(runs.apply(plan.id))
  })
  return { memory, target, replays, runs, states, apply }
})

describe("letters that are given up, and restored", () => {
  for (const ownsPosition of [true, false]) {
    scenario(
      `OPS-04 a restored letter waits again, and the journal keeps who, why and when (position is ${ownsPosition ? "ours" : "a handler's"})`,
      () =>
        Effect.gen(function* () {
          const { target, replays, states, apply, memory } = yield* setUp(ownsPosition)
          yield* apply({ action: "discard", select: { records: at(1, 3) }, reason: "test data", by: "ann" })
          yield* advance("1 minute")
          const discarded = yield* inTime(Listing.discarded(target))
          assert.deepStrictEqual(
            discarded.map(({ offset, reason, by }) => [offset, reason, by]),
            [
              ["1", "test data", "ann"],
              ["3", "test data", "ann"]
            ]
          )
          // Replays of the others move the position past the letters that are given up.
          assert.strictEqual((yield* inTime(replays.replay(3))).replayed, 3)
          const receipt = yield* apply({
            action: "restore",
            select: { all: true, except: at(3) },
            reason: "it was not",
            by: "bob"
          })
          assert.deepInclude(receipt, { state: "done", dealtWith: 1, closed: true })
          const [restored, ...others] = yield* inTime(Listing.restored(target))
          assert.lengthOf(others, 0)
          assert.deepInclude(restored, {
            ...{ offset: "1", reason: "it was not", by: "bob", discardedBecause: "test data", discardedBy: "ann" },
            discardedAt: discarded[0]!.discardedAt
          })
          assert.isAtLeast((restored?.restoredAt ?? 0) - discarded[0]!.discardedAt, 60_000)
          assert.deepStrictEqual(
            (yield* inTime(Listing.discarded(target))).map(({ offset }) => offset),
            ["3"]
          )
          assert.deepStrictEqual(yield* states, [
            ...["a dealt-with", "b waiting", "c dealt-with", "d dealt-with", "e dealt-with"]
          ])
          assert.strictEqual((yield* inTime(Stats.stats(target))).count, 1)
          assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 1)
          assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 0)
          const copies = (yield* memory.log("orders", 0)).map(({ value }) => text(value))
          assert.deepStrictEqual(copies, ["a", "c", "e", "b"])
        })
    )
  }

  scenario("OPS-04 only letters that were given up are restored; one that was replayed is not", () =>
    Effect.gen(function* () {
      const { runs, replays, apply } = yield* setUp()
      yield* inTime(replays.replayRecords(at(0)))
      yield* apply({ action: "discard", select: { records: at(1) }, reason: "test data" })
      const plan = yield* inTime(runs.plan({ action: "restore", select: { all: true }, reason: "it was not" }))
      assert.deepInclude(plan, { count: 1, sample: at(1), targets: new Map(), canary: 0 })
      yield* inTime(runs.apply(plan.id))
      assert.strictEqual((yield* inTime(runs.plan({ ...atOnce, action: "replay" }))).count, 4)
    })
  )
})
