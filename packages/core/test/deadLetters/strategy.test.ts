import { assert, describe, expect, it } from "@effect/vitest"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect, Exit, Scope } from "effect"
import { advance, bytes, inTime, now, scenario, settle, text, until } from "../../../../test/scenarios/bus.ts"
import { RequestTimedOut } from "../../src/BrokerError.ts"
import * as DeadLetter from "../../src/DeadLetter.ts"
import type { DeadLetterRecord } from "../../src/DeadLetterRecord.ts"
import * as Defaults from "../../src/Defaults.ts"
import type { StrategyEvent } from "../../src/EventBusEvent.ts"
import * as Strategy from "../../src/internal/deadLetters/strategy.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"

const source = { topic: "orders", groupId: "billing" }

/** Runs a strategy on the cluster of the test, in a scope that can be closed. */
const running = Effect.fnUntraced(function* (deadLetter: DeadLetter.DeadLetter) {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const events: Array<StrategyEvent> = []
  const replays = Replay.make({
    ...{ broker, groupId: "billing", adopts: [], sourceTopic: "orders", deadLetterTopic: "orders.DLT" },
    tiers: Tiers.make(source, TopicName.standard, []),
    maxBufferedBytes: 16_777_216,
    maxReplays: deadLetter.settings.maxReplays ?? 3,
    ownsPosition: deadLetter._tag !== "Custom",
    hostname: "host-a"
  })
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) => inTime(Scope.close(open, Exit.void)))
  const { onStored } = yield* Scope.provide(
    Strategy.run({
      ...{
        deadLetter,
        broker,
        groupId: "billing",
        adopts: [],
        deadLetterTopic: "orders.DLT",
        replays,
        maxBufferedBytes: 16_777_216,
        handlerTimeoutMillis: 420_000
      },
      onEvent: (event) => events.push(event),
      failures: { failed: () => {}, worked: () => {} }
    }),
    scope
  )
  yield* settle
  const tags = () => events.map(({ _tag }) => _tag)
  return { onStored, events, tags, close: inTime(Scope.close(scope, Exit.void), "1 second") }
})

const withTopics = Effect.fnUntraced(function* (partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions })
  yield* memory.createTopic("orders.DLT", { partitions })
  return memory
})

const stored = (value: string, changes: Readonly<Record<string, string>> = {}) => ({
  key: bytes("k"),
  value: bytes(value),
  headers: Object.entries({
    "x-eventbus-original-topic": "orders",
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": "7",
    "x-eventbus-last-exception-class": "Down",
    ...changes
  }).map(([key, header]) => ({ key, value: bytes(header) }))
})

const record = (value: string) => ({
  ...stored(value),
  ...{ topic: "orders.DLT", partition: 0, offset: 0n, timestamp: 0 }
})

const valuesOf = Effect.fnUntraced(function* (topic: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  return (yield* memory.log(topic, 0)).map(({ value }) => text(value))
})

const valueOf = (letter: DeadLetterRecord) => text(letter.value)

describe("dead letter strategies", () => {
  it("CFG DLT-18 DLT-21 settings out of range are refused, all at once; defaults are those of connector seed §4.1", () => {
    expect(DeadLetter.scheduledReplay()).toMatchObject({ cooldownMillis: 3_600_000, batchSize: 100 })
    expect(Defaults.deadLetter.maxReplays).toBe(3)
    expect(() => DeadLetter.scheduledReplay({ cooldown: Number.NaN, maxReplays: -1, batchSize: 1.5 })).toThrow(
      /cooldown[\s\S]*maxReplays[\s\S]*batchSize/
    )
    expect(() => DeadLetter.alertAndStore(() => Effect.void, { alertTimeout: 0 })).toThrow(/alertTimeout is 0/)
    const old = { timeout: "1 second" }
    expect(() => DeadLetter.alertAndStore(() => Effect.void, old as object)).toThrow(
      "timeout is a setting that was renamed; allowed: alertTimeout, its new name"
    )
    expect(() => DeadLetter.withSettings(DeadLetter.storeOnly, { topicSuffix: "no/name" })).toThrow(/topicSuffix/)
    expect(DeadLetter.withSettings({ topicSuffix: "dead" })(DeadLetter.storeOnly).settings.topicSuffix).toBe("dead")
    for (const maxReplays of [-1, 1.5, Number.NaN])
      expect(() => DeadLetter.withSettings(DeadLetter.storeOnly, { maxReplays })).toThrow(/^maxReplays is /)
    const five = DeadLetter.scheduledReplay({ maxReplays: 5 })
    expect(DeadLetter.withSettings(five, { maxReplays: undefined, topicSuffix: "dead" }).settings.maxReplays).toBe(5)
    expect(DeadLetter.withSettings(five, { maxReplays: 2 }).settings.maxReplays).toBe(2)
  })

  scenario("DLT-17 STORE_ONLY: nothing consumes the topic", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* memory.append("orders.DLT", 0, [stored("a")])
      yield* running(DeadLetter.storeOnly)
      yield* advance("1 day")
      const usage = yield* memory.usage
      assert.deepStrictEqual([usage.consumers, usage.producers, usage.members], [0, 0, 0])
    })
  )

  scenario(
    "DLT-18 ALERT_AND_STORE: each stored record reaches the handler, in order; failing, dying and hanging calls change nothing",
    () =>
      Effect.gen(function* () {
        const got: Array<string | null> = []
        const handler = (letter: DeadLetterRecord) =>
          Effect.suspend((): Effect.Effect<void, string> => {
            const value = valueOf(letter)
            got.push(value)
            assert.strictEqual(letter.lastExceptionClass, "Down")
            if (value === "fails") return Effect.fail("no pager")
            if (value === "dies") throw new RangeError("bug")
            if (value === "interrupts") return Effect.interrupt
            if (value === "hangs") return Effect.never
            return Effect.void
          })
        const { onStored, events } = yield* running(DeadLetter.alertAndStore(handler, { alertTimeout: "30 seconds" }))
        const all = ["a", "fails", "dies", "interrupts", "hangs", "b"]
        for (const value of all) onStored(record(value))
        yield* settle
        assert.deepStrictEqual(got, all.slice(0, 5))
        yield* advance("30 seconds")
        assert.deepStrictEqual(got, all)
        const failures = events.flatMap((event) => (event._tag === "AlertFailed" ? [event.failure.className] : []))
        assert.deepStrictEqual(failures, ["string", "RangeError", "Error", "AlertTimedOut"])
      })
  )

  scenario("DLT-18 waiting alerts are bounded and never delay storing; waiting alerts are delivered at the end", () =>
    Effect.gen(function* () {
      let given = 0
      const handler = () =>
        Effect.andThen(
          Effect.sleep("1 millis"),
          Effect.sync(() => given++)
        )
      const { onStored, tags, close } = yield* running(DeadLetter.alertAndStore(handler))
      for (let index = 0; index < 1500; index++) onStored(record("a"))
      assert.isAtLeast(tags().filter((tag) => tag === "AlertDropped").length, 499)
      yield* close
      assert.isAtLeast(given, 1000)
    })
  )

  scenario(
    "DLT-19 SCHEDULED_REPLAY: runs when the oldest record is due, at most once a minute, and replays due records in batches",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics()
        const at = (value: string, millis: number) => stored(value, { "x-eventbus-dlt-timestamp": String(millis) })
        yield* memory.append("orders.DLT", 0, [at("a", 0), at("b", 0), at("c", 0), at("d", 600_000)])
        yield* running(DeadLetter.scheduledReplay({ cooldown: "10 minutes", batchSize: 2 }))
        yield* advance("599 seconds")
        assert.deepStrictEqual(yield* valuesOf("orders"), [])
        yield* advance("1 second")
        assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b"])
        yield* advance("59 seconds")
        assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b"])
        yield* advance("1 second")
        assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b", "c"])
        yield* advance("539 seconds")
        assert.lengthOf(yield* valuesOf("orders"), 3)
        yield* advance("1 second")
        assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b", "c", "d"])
        yield* advance("1 day")
        assert.lengthOf(yield* valuesOf("orders"), 4)
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 4n)
      })
  )

  scenario("DLT-19 later records are found when they are due; a timestamp in the future delays no other record", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* running(DeadLetter.scheduledReplay({ cooldown: "1 hour" }))
      yield* advance("10 minutes")
      yield* memory.append("orders.DLT", 0, [
        stored("forged", { "x-eventbus-dlt-timestamp": "8000000000000000" }),
        stored("late", { "x-eventbus-dlt-timestamp": String(yield* now) })
      ])
      yield* advance("59 minutes")
      assert.deepStrictEqual(yield* valuesOf("orders"), [])
      yield* advance("1 minute")
      yield* advance("1 minute")
      assert.deepStrictEqual(yield* valuesOf("orders"), ["forged", "late"])
    })
  )

  scenario("C10 DLT-19 a cooldown of 30 days waits 30 days", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* memory.append("orders.DLT", 0, [stored("a", { "x-eventbus-dlt-timestamp": "0" })])
      yield* running(DeadLetter.scheduledReplay({ cooldown: 2_592_000_000 }))
      yield* advance(2_591_999_999)
      assert.deepStrictEqual(yield* valuesOf("orders"), [])
      yield* advance("1 minute")
      assert.deepStrictEqual(yield* valuesOf("orders"), ["a"])
    })
  )

  scenario("DLT-19 a broker failure is reported and tried again; two processes replay a record once", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      yield* memory.append("orders.DLT", 0, [stored("a"), stored("b")])
      const error = new RequestTimedOut({ operation: "x", millis: 1 })
      yield* memory.addFault(FaultPlan.nth(1, { operation: "admin" }, { _tag: "Refuse", error }))
      const first = yield* running(DeadLetter.scheduledReplay({ cooldown: 0 }))
      yield* running(DeadLetter.scheduledReplay({ cooldown: 0 }))
      for (let minute = 0; minute < 5; minute++) yield* advance("1 minute")
      assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b"])
      assert.include(first.tags(), "StrategyFailed")
    })
  )

  scenario(
    "DLT-20 ruling 33 CUSTOM: the handler gets each record once, in order, in group {groupId}.dlt; a failed record stays and is counted",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics()
        yield* memory.append(
          "orders.DLT",
          0,
          ["a", "fails", "dies", "b"].map((value) => stored(value))
        )
        const got: Array<string | null> = []
        const handler = (letter: DeadLetterRecord) =>
          Effect.suspend(() => {
            const value = valueOf(letter)
            got.push(value)
            if (value === "dies") throw new RangeError("bug")
            return value === "fails" ? Effect.fail("no") : Effect.void
          })
        const first = yield* running(DeadLetter.custom(handler))
        yield* until(() => got.length === 4, "1 second")
        yield* settle
        assert.deepStrictEqual(got, ["a", "fails", "dies", "b"])
        assert.deepStrictEqual(first.tags(), ["LetterHandlerFailed", "LetterHandlerFailed"])
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 4n)
        assert.lengthOf(yield* memory.log("orders.DLT", 0), 4)
        yield* first.close
        yield* running(DeadLetter.custom(handler))
        yield* memory.append("orders.DLT", 0, [stored("c")])
        yield* until(() => got.length === 5, "1 second")
        assert.deepStrictEqual(got.slice(4), ["c"])
      })
  )

  scenario(
    "DLT-20 CUSTOM: a stop waits for the running handler and leaves nothing; a hanging handler is cut off and its record comes again",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics()
        yield* memory.append("orders.DLT", 0, [stored("slow"), stored("hangs"), stored("c")])
        const got: Array<string | null> = []
        const ended: Array<string | null> = []
        const handler = (letter: DeadLetterRecord) =>
          Effect.gen(function* () {
            const value = valueOf(letter)
            got.push(value)
            yield* value === "slow" ? Effect.sleep("3 seconds") : value === "hangs" ? Effect.never : Effect.void
            ended.push(value)
          })
        const first = yield* running(DeadLetter.custom(handler))
        yield* first.close
        assert.deepStrictEqual([got, ended], [["slow"], ["slow"]])
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 1n)
        const second = yield* running(DeadLetter.custom(handler))
        const before = yield* now
        yield* second.close
        assert.isAtMost((yield* now) - before, 12_000)
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 1n)
        const { consumers, members } = yield* memory.usage
        assert.deepStrictEqual([got.at(-1), consumers, members], ["hangs", 0, 0])
      })
  )

  scenario(
    "DLT-20 CUSTOM: two processes share the partitions, and each record is handled once; a partition that hangs stops no other",
    () =>
      Effect.gen(function* () {
        const memory = yield* withTopics(4)
        const got: Array<string | null> = []
        const handler = (letter: DeadLetterRecord) =>
          Effect.suspend(() => {
            got.push(valueOf(letter))
            return valueOf(letter) === "0-0" ? Effect.never : Effect.void
          })
        yield* running(DeadLetter.custom(handler))
        yield* running(DeadLetter.custom(handler))
        yield* advance("1 second")
        for (const partition of [0, 1, 2, 3]) {
          yield* memory.append("orders.DLT", partition, [stored(`${partition}-0`), stored(`${partition}-1`)])
        }
        yield* until(() => got.length >= 7, "1 second")
        yield* advance("1 second")
        assert.deepStrictEqual([...got].sort(), ["0-0", "1-0", "1-1", "2-0", "2-1", "3-0", "3-1"])
      })
  )

  scenario("DLT-20 CUSTOM: a session that dies is reported and restarted", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics()
      const got: Array<string | null> = []
      const error = new RequestTimedOut({ operation: "join", millis: 1 })
      yield* memory.addFault(FaultPlan.nth(1, { operation: "join" }, { _tag: "Refuse", error }))
      const { tags } = yield* running(DeadLetter.custom((letter) => Effect.sync(() => got.push(valueOf(letter)))))
      yield* memory.append("orders.DLT", 0, [stored("a")])
      yield* until(() => got.length === 1, "1 second")
      assert.include(tags(), "StrategyFailed")
    })
  )
})
