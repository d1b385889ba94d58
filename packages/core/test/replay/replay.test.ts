import { assert, describe } from "@effect/vitest"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber } from "effect"
import { advance, bytes, headersOf, incompressible, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import type { Header } from "../../src/ConsumerRecord.ts"
import * as Stats from "../../src/internal/deadLetters/replayStats.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import type { Options } from "../../src/internal/replay/replayRun.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as TopicName from "../../src/TopicName.ts"

const retry = RetryPolicy.tiered({ tiers: ["10 seconds", "1 minute"] })

const options = (broker: Options["broker"], changes: Partial<Options> = {}): Options => ({
  broker,
  groupId: "billing",
  adopts: [],
  sourceTopic: "orders",
  deadLetterTopic: "orders.DLT",
  tiers: Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, retry.tiers),
  maxReplays: 3,
  maxBufferedBytes: 16_777_216,
  ownsPosition: true,
  hostname: "host-a",
  ...changes
})

const engine = (changes: Partial<Options> = {}) =>
  MemoryBroker.MemoryBroker.useSync(({ broker }) => Replay.make(options(broker, changes)))

const header = (key: string, value: string | null): Header => ({ key, value: value === null ? null : bytes(value) })

/** The mark of the group's own copies, which alone makes the replay count believed. */
const owned = { "x-eventbus-copy-owner": "orders.DLT/billing" }

/** A dead letter of record `value` of topic `orders`, as the connector writes it. */
const letter = (
  value: string | null,
  changes: Readonly<Record<string, string>> = {},
  own: ReadonlyArray<Header> = []
) => ({
  key: bytes("k"),
  value: value === null ? null : bytes(value),
  headers: [
    ...own,
    ...Object.entries({
      "x-eventbus-original-topic": "orders",
      "x-eventbus-original-partition": "0",
      "x-eventbus-original-offset": "7",
      "x-eventbus-original-timestamp": "42",
      "x-eventbus-dlt-reason": "RETRIES_EXHAUSTED",
      "x-eventbus-dlt-timestamp": "1000",
      "x-eventbus-total-attempts": "12",
      "x-eventbus-first-failure-timestamp": "500",
      "x-eventbus-last-exception-class": "Down",
      "x-eventbus-retry-tier": "2",
      "x-eventbus-retry-attempt": "3",
      "x-eventbus-tier0-exception": "Down",
      "x-eventbus-tier0-exhausted-at": "600",
      "x-eventbus-decode-target": "value",
      ...changes
    }).map(([key, value]) => header(key, value))
  ]
})

const withTopics = Effect.fnUntraced(function* (partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions })
  yield* memory.createTopic("orders.DLT", { partitions })
  return memory
})

const valuesIn = Effect.fnUntraced(function* (topic: string, partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  const logs = yield* Effect.forEach(
    Array.from({ length: partitions }, (_, index) => index),
    (partition) => memory.log(topic, partition)
  )
  return logs.flat().map((record) => text(record.value))
})

describe("replay (TST-06: dead letter replay)", () => {
  scenario("DLT-23 DLT-26 the next records go back in order, once, and the position is durable", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* memory.append(
        "orders.DLT",
        0,
        ["a", "b", "c", "d"].map((value) => letter(value))
      )
      const replays = yield* engine()
      assert.deepStrictEqual(yield* inTime(replays.replay(2)), {
        replayed: 2,
        passedOver: 0,
        refused: 0,
        foreign: new Map(),
        unreadable: 0
      })
      assert.deepStrictEqual(yield* valuesIn("orders"), ["a", "b"])
      assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 2n)
      // Another process goes on where this one ended.
      const later = yield* engine()
      assert.strictEqual((yield* inTime(later.replay(100))).replayed, 2)
      assert.strictEqual((yield* inTime(replays.replay(100))).replayed, 0)
      assert.deepStrictEqual(yield* valuesIn("orders"), ["a", "b", "c", "d"])
      assert.lengthOf(yield* memory.log("orders.DLT", 0), 4)
    })
  )

  scenario(
    "DLT-27 C06 ruling 30 retry headers are reset, origin and first failure stay, the user's headers are unchanged",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics()
        const own = [header("traceparent", "00-t"), header("a", null), header("a", ""), header("", "empty-name")]
        yield* memory.append("orders.DLT", 0, [
          letter("x", { ...owned, "x-eventbus-replay-count": "1", "kafka_dlt-original-topic": "x" }, own)
        ])
        yield* advance("1 hour")
        yield* inTime((yield* engine()).replay(1))
        const [copy] = yield* memory.log("orders", 0)
        assert.deepStrictEqual([copy?.key, copy?.value], [bytes("k"), bytes("x")])
        assert.deepStrictEqual(copy?.headers, [
          ...own,
          header("x-eventbus-original-topic", "orders"),
          header("x-eventbus-original-partition", "0"),
          header("x-eventbus-original-offset", "7"),
          header("x-eventbus-original-timestamp", "42"),
          header("x-eventbus-first-failure-timestamp", "500"),
          header("x-eventbus-replay-count", "2"),
          header("x-eventbus-replay-group", "billing"),
          header("x-eventbus-replay-bond", `${(yield* memory.broker.admin).clusterId}/orders/0/${copy?.timestamp}`)
        ])
        assert.isAtLeast(copy?.timestamp ?? 0, 3_600_000)
      })
  )

  scenario("DLT-23 C13 null key and value stay null, and a record returns to its source partition", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics(3)
      const nulls = { ...letter(null, { "x-eventbus-original-partition": "2" }), key: null }
      yield* memory.append("orders.DLT", 0, [nulls])
      yield* inTime((yield* engine()).replay(1))
      const [copy] = yield* memory.log("orders", 2)
      assert.deepStrictEqual([copy?.key, copy?.value], [null, null])
    })
  )

  scenario("DLT-26 a record at maxReplays is passed over and stays", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* memory.append("orders.DLT", 0, [
        letter("old", { ...owned, "x-eventbus-replay-count": "3" }),
        letter("new")
      ])
      const replays = yield* engine()
      assert.deepStrictEqual(yield* inTime(replays.replay(1)), {
        replayed: 1,
        passedOver: 1,
        refused: 0,
        foreign: new Map(),
        unreadable: 0
      })
      assert.deepStrictEqual(yield* valuesIn("orders"), ["new"])
      assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 2n)
      // Each replay says again what it leaves.
      assert.deepStrictEqual(yield* inTime((yield* engine()).replay(9)), {
        replayed: 0,
        passedOver: 1,
        refused: 0,
        foreign: new Map(),
        unreadable: 0
      })
      assert.deepStrictEqual(yield* valuesIn("orders.DLT"), ["old", "new"])
    })
  )

  scenario(
    "DLT-24 ruling 31 a window selects by dlt-timestamp, half-open; repeating it, or replaying afterwards, does not double",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics(2)
        const at = (value: string, millis: number) => letter(value, { "x-eventbus-dlt-timestamp": String(millis) })
        yield* memory.append("orders.DLT", 0, [at("a", 10), at("b", 30), at("c", 20), at("d", 40)])
        yield* memory.append("orders.DLT", 1, [at("e", 20), at("f", 19)])
        const replays = yield* engine()
        assert.strictEqual((yield* inTime(replays.replayWindow(20, 40))).replayed, 3)
        assert.deepStrictEqual(yield* valuesIn("orders", 2), ["b", "c", "e"])
        assert.strictEqual((yield* inTime(replays.replayWindow(20, 40))).replayed, 0)
        assert.strictEqual((yield* inTime((yield* engine()).replayWindow(20, 41))).replayed, 1)
        const { broker } = memory
        const between = yield* inTime(Stats.stats(options(broker)))
        assert.deepStrictEqual([between.count, between.stored], [2, 6])
        assert.strictEqual((yield* inTime(replays.replay(100))).replayed, 2)
        assert.deepStrictEqual([...(yield* valuesIn("orders", 2))].sort(), ["a", "b", "c", "d", "e", "f"])
        assert.strictEqual((yield* inTime(replays.replayWindow(0, 100))).replayed, 0)
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 4n)
      })
  )

  scenario(
    "DLT-25 C06 to a tier: the record gets its first delivery there after the tier's delay; an unknown tier is refused",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics()
        yield* memory.createTopic("orders.retry-2")
        yield* memory.append("orders.DLT", 0, [letter("x", { "x-eventbus-retry-timestamp": "1" })])
        yield* advance("1 hour")
        const replays = yield* engine()
        for (const tier of [0, 3, 1.5, Number.NaN]) {
          assert.strictEqual((yield* inTime(Effect.flip(replays.replayToTier(tier, 1))))._tag, "UnknownTier")
        }
        const beforeMillis = 3_600_000
        assert.strictEqual((yield* inTime(replays.replayToTier(2, 5))).replayed, 1)
        const [copy] = yield* memory.log("orders.retry-2", 0)
        const headers = headersOf(copy)
        assert.strictEqual(headers.get("x-eventbus-retry-tier"), "2")
        assert.strictEqual(headers.get("x-eventbus-retry-attempt"), "1")
        assert.isAtLeast(Number(headers.get("x-eventbus-retry-timestamp")), beforeMillis)
        assert.strictEqual(headers.get("x-eventbus-total-attempts"), "0")
        assert.strictEqual(headers.get("x-eventbus-first-failure-timestamp"), "500")
        assert.strictEqual(headers.get("x-eventbus-original-offset"), "7")
        assert.strictEqual(headers.get("x-eventbus-replay-count"), "1")
        assert.isFalse(headers.has("x-eventbus-tier0-exception"))
        assert.isFalse(headers.has("x-eventbus-dlt-reason"))
        assert.strictEqual((yield* inTime(replays.replay(1))).replayed, 0)
      })
  )

  scenario("ruling 31 a topic that ends in markers and has holes is replayed to its end", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* memory.append("orders.DLT", 0, [letter("a"), letter("b"), letter("c")])
      yield* memory.appendAborted("orders.DLT", 0, [letter("never")])
      yield* memory.compact("orders.DLT", 0, (record) => text(record.value) === "b")
      assert.strictEqual((yield* inTime((yield* engine()).replay(9))).replayed, 2)
      const { logEnd } = yield* memory.offsets("orders.DLT", 0)
      assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), logEnd)
    })
  )

  scenario("a record that its topic refuses is passed over, and the others are replayed", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { config: new Map([["max.message.bytes", "2000"]]) })
      yield* memory.createTopic("orders.DLT")
      const elsewhere = { "x-eventbus-original-topic": "gone" }
      yield* memory.append("orders.DLT", 0, [
        letter("a"),
        letter(Buffer.from(incompressible(4_000)).toString("base64")),
        letter("b", elsewhere),
        letter("c")
      ])
      const { refusals = new Map(), ...report } = yield* inTime((yield* engine({ origins: ["gone"] })).replay(9))
      const nothingElse = { passedOver: 0, foreign: new Map(), unreadable: 0 }
      assert.deepStrictEqual(report, { replayed: 2, refused: 2, ...nothingElse })
      const [missing, large, ...others] = Array.from(refusals).sort().reverse()
      assert.deepStrictEqual(
        [missing, others],
        [["Topic 'gone' does not exist. Create it, or correct the name.", 1], []]
      )
      assert.match(String(large), /^A record of \d+ bytes is larger than topic 'orders' takes.*,1$/)
      assert.deepStrictEqual(yield* valuesIn("orders"), ["a", "c"])
    })
  )

  scenario("without the source topic nothing is replayed, and nothing is lost", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders.DLT")
      yield* memory.append("orders.DLT", 0, [letter("a")])
      const replays = yield* engine()
      assert.strictEqual((yield* inTime(Effect.flip(replays.replay(1))))._tag, "UnknownTopic")
      yield* memory.createTopic("orders")
      assert.strictEqual((yield* inTime(replays.replay(1))).replayed, 1)
    })
  )

  scenario(
    "a record of unknown origin goes to the source topic; a dead letter of Spring goes to its original topic",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics(2)
        const spring = [
          header("kafka_dlt-original-topic", "orders"),
          { key: "kafka_dlt-original-partition", value: Uint8Array.of(0, 0, 0, 1) },
          { key: "kafka_dlt-original-offset", value: Uint8Array.of(0, 0, 0, 0, 0, 0, 1, 0) }
        ]
        yield* memory.append("orders.DLT", 0, [
          { key: null, value: bytes("bare") },
          { key: bytes("k"), value: bytes("spring"), headers: spring },
          letter("circle", { "x-eventbus-original-topic": "orders.DLT" })
        ])
        assert.strictEqual((yield* inTime((yield* engine()).replay(9))).replayed, 3)
        assert.include(
          (yield* memory.log("orders", 1)).map(({ value }) => text(value)),
          "spring"
        )
        assert.deepStrictEqual([...(yield* valuesIn("orders", 2))].sort(), ["bare", "circle", "spring"])
        assert.lengthOf(yield* memory.log("orders.DLT", 0), 3)
      })
  )

  scenario("DLT-26 the position survives the loss of the committed offset, but not of the topic", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* memory.append("orders.DLT", 0, [letter("a"), letter("b")])
      yield* inTime((yield* engine()).replay(9))
      const admin = yield* memory.broker.admin
      yield* admin.deleteGroups(["billing.dlt"])
      assert.strictEqual((yield* inTime((yield* engine()).replay(9))).replayed, 0)
      yield* admin.deleteGroups(["billing.dlt"]).pipe(Effect.ignore)
      yield* admin.deleteTopics(["orders.DLT"])
      yield* memory.createTopic("orders.DLT")
      yield* advance("1 minute")
      yield* memory.append("orders.DLT", 0, [letter("c"), letter("d"), letter("e")])
      assert.strictEqual((yield* inTime((yield* engine()).replay(9))).replayed, 3)
    })
  )

  scenario(
    "ruling 34 beside a custom handler a replay leaves the handler's offset alone and still does not double",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics()
        yield* memory.append(
          "orders.DLT",
          0,
          ["a", "b", "c", "d", "e"].map((value) => letter(value))
        )
        yield* memory.setCommitted("billing.dlt", "orders.DLT", 0, 2n)
        const replays = yield* engine({ ownsPosition: false })
        assert.strictEqual((yield* inTime(replays.replay(2))).replayed, 2)
        assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 1)
        assert.strictEqual((yield* inTime(replays.replay(9))).replayed, 0)
        assert.deepStrictEqual(yield* valuesIn("orders"), ["c", "d", "e"])
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 2n)
      })
  )

  for (const nth of [1, 2, 3, 5, 8, 12]) {
    scenario(
      `DLT-26 requests fail or lose their answers from number ${nth} on: the replay repeats until done, and each record is there once`,
      () =>
        Effect.gen(function* () {
          const memory = yield* withTopics(2)
          const all = Array.from({ length: 250 }, (_, index) => `v${index}`)
          yield* memory.append(
            "orders.DLT",
            0,
            all.slice(0, 130).map((value) => letter(value))
          )
          yield* memory.append(
            "orders.DLT",
            1,
            all.slice(130).map((value) => letter(value))
          )
          for (const operation of ["produce", "endTransaction", "sendOffsets"] as const) {
            yield* memory.addFault(FaultPlan.nth(nth, { operation }, { _tag: "LoseResponse" }))
          }
          const replays = yield* engine()
          for (let round = 0; round < 20; round++) yield* inTime(Effect.ignore(replays.replay(60)), "10 seconds")
          const copies = [...(yield* valuesIn("orders", 2))]
          assert.deepStrictEqual(copies.sort(), [...all].sort())
        })
    )
  }

  for (const delayMillis of [0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 230, 260, 300]) {
    scenario(
      `DLT-26 a replay that begins ${delayMillis} ms after another one: each record once`,
      () =>
        Effect.gen(function* () {
          const memory = yield* withTopics()
          const all = Array.from({ length: 300 }, (_, index) => `v${index}`)
          yield* memory.append(
            "orders.DLT",
            0,
            all.map((value) => letter(value))
          )
          const one = yield* Effect.forkChild(Effect.exit((yield* engine()).replay(1000)), { startImmediately: true })
          for (let elapsed = 0; elapsed < delayMillis; elapsed += 10) yield* advance("10 millis")
          const other = yield* Effect.forkChild(Effect.exit((yield* engine()).replay(1000)), { startImmediately: true })
          yield* inTime(Effect.all([Fiber.join(one), Fiber.join(other)]), "10 millis")
          yield* inTime((yield* engine()).replay(1000), "10 millis")
          assert.deepStrictEqual(yield* valuesIn("orders"), all)
        }),
      { latency: { admin: 20, produce: 20, endTransaction: 20, sendOffsets: 10, fetch: 10, join: 10 } }
    )
  }
})
