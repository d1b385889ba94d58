/** Replays beside a custom handler take what waits: neither what it has handled, under whatever name, nor more than the statistics count. */
import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, type Replay, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, inTime, orders, scenario, start, text, valuesOf } from "../bus.ts"

const header = (key: string, value: string) => ({ key: `x-eventbus-${key}`, value: bytes(value) })

/** A dead letter that a group made at second 1. */
const letter = (value: string, owner = "billing") => ({
  ...{ key: bytes(value), value: bytes(value) },
  headers: [
    ...[header("original-topic", "orders"), header("original-partition", "0"), header("original-offset", "7")],
    ...[header("dlt-timestamp", "1000"), header("copy-owner", `orders.DLT/${owner}`)]
  ]
})

const withLetters = Effect.fnUntraced(function* (letters: ReadonlyArray<ReturnType<typeof letter>>) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "orders.DLT", "orders.retry-1"]) yield* memory.createTopic(topic)
  yield* memory.append("orders.DLT", 0, letters)
})

const plain = {
  ...orders,
  retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] }),
  handler: () => Effect.void
}

/** A service whose custom handler fails for values that begin with "failed". It runs for a minute. */
const service = Effect.fnUntraced(function* (settings: { readonly groupId?: string; readonly adopts?: Array<string> }) {
  const seen: Array<string | null> = []
  const deadLetter = DeadLetter.custom(({ value }) =>
    Effect.suspend(() => {
      seen.push(text(value))
      return text(value)?.startsWith("failed") === true ? Effect.fail("no") : Effect.void
    })
  )
  const { close, connector } = yield* start(Binding.make("orders", { ...plain, ...settings, deadLetter }))
  yield* advance("1 minute")
  return { seen, close, letters: yield* connector.deadLetters("orders") }
})

const handledFirst = ["handled0", "handled1", "failed0", "handled2", "failed1", "failed2"]
const failedOnes = ["failed0", "failed1", "failed2"]

type Command = (letters: Replay.DeadLetters, count: number) => Effect.Effect<Replay.Report, { readonly _tag: string }>

const commands: Readonly<Record<string, readonly [string, Command]>> = {
  replay: ["orders", ({ replay }, count) => replay(count)],
  replayToTier: ["orders.retry-1", ({ replayToTier }, count) => replayToTier(1, count)],
  replayWindow: ["orders", ({ replayWindow }) => replayWindow(0, 2_000)]
}

describe("DLT-23 ruling 75 a replay beside a custom handler", () => {
  for (const [command, [topic, act]] of Object.entries(commands)) {
    scenario(
      `DLT-23 ruling 75 ${command} of what the statistics count takes the failed ones, and none that is handled`,
      () =>
        Effect.gen(function* () {
          yield* withLetters(handledFirst.map((value) => letter(value)))
          const { letters, seen } = yield* service({})
          assert.deepStrictEqual(seen, handledFirst)
          const { count, failed } = yield* inTime(letters.stats)
          assert.deepStrictEqual([count, failed], [3, 3])
          assert.strictEqual((yield* inTime(act(letters, count))).replayed, 3)
          assert.deepStrictEqual((yield* valuesOf(topic)).slice(0, 4), failedOnes)
          assert.strictEqual((yield* inTime(letters.stats)).count, 0)
          assert.strictEqual((yield* inTime(act(letters, 100))).replayed, 0)
        })
    )
  }

  scenario("DLT-23 by hand takes a handled one, too, once", () =>
    Effect.gen(function* () {
      yield* withLetters(handledFirst.map((value) => letter(value)))
      const { letters } = yield* service({})
      const second = [{ partition: 0, offset: 1n }]
      assert.strictEqual((yield* inTime(letters.replayRecords(second))).replayed, 1)
      assert.strictEqual((yield* inTime(letters.replayRecords(second))).replayed, 0)
      assert.deepStrictEqual(yield* valuesOf("orders"), ["handled1"])
    })
  )
})

describe("DLT-23 ruling 71 a custom handler of a group that was renamed", () => {
  const both = [letter("old0", "former"), letter("new0"), letter("old1", "former"), letter("new1")]

  scenario(
    "DLT-23 ruling 71 what its consumer had passed as another group's waits, and a replay takes that alone",
    () =>
      Effect.gen(function* () {
        yield* withLetters(both)
        const before = yield* service({})
        assert.deepStrictEqual(before.seen, ["new0", "new1"])
        yield* before.close
        const { letters, seen } = yield* service({ adopts: ["former"] })
        assert.deepStrictEqual(seen, [])
        assert.strictEqual((yield* inTime(letters.stats)).count, 2)
        assert.strictEqual((yield* inTime(letters.replay(100))).replayed, 2)
        assert.deepStrictEqual(yield* valuesOf("orders"), ["old0", "old1"])
        assert.strictEqual((yield* inTime(letters.stats)).count, 0)
        assert.strictEqual((yield* inTime(letters.replay(100))).replayed, 0)
      })
  )

  scenario("DLT-23 ruling 71 what it handled under either name is replayed under neither", () =>
    Effect.gen(function* () {
      yield* withLetters(both)
      const former = yield* service({ groupId: "former" })
      assert.deepStrictEqual(former.seen, ["old0", "old1"])
      yield* former.close
      const { close, letters, seen } = yield* service({ adopts: ["former"] })
      assert.deepStrictEqual(seen, ["old0", "new0", "old1", "new1"])
      assert.strictEqual((yield* inTime(letters.replay(100))).replayed, 0)
      yield* close
      const again = yield* service({ groupId: "former" })
      assert.strictEqual((yield* inTime(again.letters.replay(100))).replayed, 0)
      assert.deepStrictEqual(yield* valuesOf("orders"), [])
    })
  )
})
