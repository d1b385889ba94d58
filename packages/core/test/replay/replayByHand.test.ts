import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { bytes, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import * as Listing from "../../src/internal/deadLetters/replayListing.ts"
import * as Stats from "../../src/internal/deadLetters/replayStats.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"

const letter = (value: string, replays = "0") => ({
  key: bytes("k"),
  value: bytes(value),
  headers: Object.entries({
    "x-eventbus-original-topic": "orders",
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": "7",
    "x-eventbus-last-exception-class": "Down",
    "x-eventbus-replay-count": replays,
    "x-eventbus-copy-owner": "orders.DLT/billing"
  }).map(([key, header]) => ({ key, value: bytes(header) }))
})

const setUp = Effect.fnUntraced(function* (ownsPosition = true) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  yield* memory.append(
    "orders.DLT",
    0,
    [..."abcde"].map((value) => letter(value))
  )
  const target = {
    broker: memory.broker,
    groupId: "billing",
    adopts: [],
    deadLetterTopic: "orders.DLT",
    maxReplays: 3,
    maxBufferedBytes: 16_777_216
  }
  const replays = Replay.make({
    ...{ ...target, sourceTopic: "orders", ownsPosition, hostname: "host-a" },
    tiers: Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, [])
  })
  const states = Effect.map(inTime(Listing.list(target, { partition: 0, count: 9 })), (all) =>
    all.map(({ letter, state }) => `${text(letter.value)} ${state}`)
  )
  const copies = Effect.map(memory.log("orders", 0), (records) => records.map(({ value }) => text(value)))
  return { memory, target, replays, states, copies }
})

const at = (...offsets: ReadonlyArray<number>) => offsets.map((offset) => ({ partition: 0, offset: BigInt(offset) }))

describe("dead letters replayed and discarded by hand", () => {
  for (const ownsPosition of [true, false]) {
    scenario(
      `DLT-31 chosen records are replayed once, and later replays leave them out (position is ${ownsPosition ? "ours" : "a handler's"})`,
      () =>
        Effect.gen(function* () {
          const { replays, states, copies } = yield* setUp(ownsPosition)
          assert.strictEqual((yield* inTime(replays.replayRecords(at(3, 1, 99)))).replayed, 2)
          assert.strictEqual((yield* inTime(replays.replayRecords(at(3)))).replayed, 0)
          assert.deepStrictEqual(yield* copies, ["b", "d"])
          assert.deepStrictEqual(yield* states, ["a waiting", "b dealt-with", "c waiting", "d dealt-with", "e waiting"])
          assert.strictEqual((yield* inTime(replays.replay(2))).replayed, 2)
          assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 1)
          assert.deepStrictEqual(yield* copies, ["b", "d", "a", "c", "e"])
        })
    )
  }

  scenario("DLT-31 a discarded record is not replayed and not counted, and its reason stays in the journal", () =>
    Effect.gen(function* () {
      const { memory, target, replays, copies } = yield* setUp()
      yield* memory.append("orders.DLT", 0, [letter("f", "3")])
      assert.strictEqual(yield* inTime(replays.discard(at(1, 5), "customer is gone")), 2)
      assert.strictEqual(yield* inTime(replays.discard(at(1), "again")), 0)
      assert.strictEqual((yield* inTime(Stats.stats(target))).count, 4)
      assert.strictEqual((yield* inTime(replays.replayWindow(0, 1e15))).replayed, 4)
      assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 0)
      assert.deepStrictEqual(yield* copies, ["a", "c", "d", "e"])
      assert.lengthOf(yield* memory.log("orders.DLT", 0), 6)
      const audits = yield* inTime(Listing.discarded(target))
      assert.deepStrictEqual(
        audits.map(({ offset, reason, originalOffset, exceptionClass }) => [
          offset,
          reason,
          originalOffset,
          exceptionClass
        ]),
        [
          ["1", "customer is gone", "7", "Down"],
          ["5", "customer is gone", "7", "Down"]
        ]
      )
    })
  )

  scenario("DLT-31 invalid journal entries, and entries of another group, are ignored", () =>
    Effect.gen(function* () {
      const { memory, target, replays } = yield* setUp()
      yield* memory.createTopic("orders.DLT.replays")
      const entries: ReadonlyArray<readonly [string, string | null]> = [
        ["position/0/shipping", "5"],
        ["position/0/billing", "NaN"],
        ["position/0/billing", "99999999999999999999"],
        ["taken/0/1/shipping", "0"],
        ["taken/0/1/billing", "x"],
        ["taken/0/2/billing", "123456"],
        ["discarded/0/1/billing", "{"],
        ["__proto__", "1"],
        ["", null]
      ]
      yield* memory.append(
        "orders.DLT.replays",
        0,
        entries.map(([key, value]) => ({ key: bytes(key), value: value === null ? null : bytes(value) }))
      )
      assert.deepStrictEqual(yield* inTime(Listing.discarded(target)), [])
      assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 5)
    })
  )

  scenario("a page begins at the given position and ends; an unknown partition has no page", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp()
      const page = yield* inTime(Listing.list(target, { partition: 0, from: 2n, count: 2 }))
      assert.deepStrictEqual(
        page.map(({ letter }) => letter.record.offset),
        [2n, 3n]
      )
      assert.deepStrictEqual(yield* inTime(Listing.list(target, { partition: 0, from: 5n, count: 2 })), [])
      assert.deepStrictEqual(yield* inTime(Listing.list(target, { partition: 3, count: 2 })), [])
    })
  )
})
