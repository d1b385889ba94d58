/** Replay, statistics, purge and trail on a real Kafka: its transactions, its compacted journal, its groups. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Exit, Fiber } from "effect"
import * as Bus from "../../../../test/integration/bus.ts"
import * as Broker from "../../src/Broker.ts"
import * as DeadLetter from "../../src/DeadLetter.ts"
import * as Stats from "../../src/internal/deadLetters/replayStats.ts"
import * as Strategy from "../../src/internal/deadLetters/strategy.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"
import * as Trail from "../../src/Trail.ts"

const letter = (topic: string, index: number, offset: bigint) => ({
  topic: `${topic}.DLT`,
  partition: index % 2,
  key: Bus.bytes(`k${index}`),
  value: Bus.bytes(String(index)),
  headers: Object.entries({
    "x-eventbus-original-topic": topic,
    "x-eventbus-original-partition": String(index % 2),
    "x-eventbus-original-offset": String(offset),
    "x-eventbus-dlt-timestamp": String(index),
    "x-eventbus-last-exception-class": "Down"
  }).map(([key, value]) => ({ key, value: Bus.bytes(value) }))
})

const setUp = Effect.fnUntraced(function* (count: number) {
  const broker = yield* Broker.Broker
  const name = Bus.fresh("replayed")
  yield* Bus.createTopic(name, 2)
  yield* Bus.createTopic(`${name}.DLT`, 2)
  yield* Bus.publish(Array.from({ length: count }, (_, index) => letter(name, index, BigInt(Math.floor(index / 2)))))
  const target = {
    broker,
    groupId: name,
    adopts: [],
    deadLetterTopic: `${name}.DLT`,
    maxReplays: 3,
    maxBufferedBytes: 16_777_216
  }
  const make = (ownsPosition = true) =>
    Replay.make({
      ...{ ...target, sourceTopic: name, ownsPosition, hostname: "host-a" },
      tiers: Tiers.make({ topic: name, groupId: name }, TopicName.standard, [])
    })
  const replayed = Effect.map(Bus.readAll(name), (records) =>
    records.map(({ value }) => Number(Bus.text(value))).sort((a, b) => a - b)
  )
  return { name, target, make, replayed }
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

KafkaSuite.shared("dead letters", (bootstrap) => {
  Bus.story(
    bootstrap,
    "DLT-23 DLT-24 DLT-26 DLT-30 replays by window and by position take each record once; another process knows",
    () =>
      Effect.gen(function* () {
        const { name, target, make, replayed } = yield* setUp(300)
        assert.strictEqual((yield* make().replayWindow(100, 110)).replayed, 10)
        assert.strictEqual((yield* make().replayWindow(100, 110)).replayed, 0)
        assert.strictEqual((yield* make().replay(120)).replayed, 120)
        const { count, stored, byExceptionClass } = yield* Stats.stats(target)
        assert.deepStrictEqual([count, stored, byExceptionClass.get("Down")], [170, 300, 170])
        assert.strictEqual((yield* make().replay(1000)).replayed, 170)
        assert.strictEqual((yield* make().replay(1000)).replayed, 0)
        assert.deepStrictEqual(yield* replayed, numbers(300))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const admin = yield* target.broker.admin
            const groups = (yield* admin.listGroups).filter((group) => group.startsWith(name))
            assert.deepStrictEqual(groups, [`${name}.dlt`])
            // As after seven days without a commit: the journal still knows.
            yield* admin.deleteGroups([`${name}.dlt`])
          })
        )
        assert.strictEqual((yield* make().replay(1000)).replayed, 0)
        assert.strictEqual(yield* Stats.purge(target, 150), 150)
        assert.strictEqual((yield* Stats.stats(target)).stored, 150)
      })
  )

  Bus.story(bootstrap, "DLT-26 replays at once, interrupted ones among them: each record once", () =>
    Effect.gen(function* () {
      const { make, replayed } = yield* setUp(500)
      const cut = yield* Effect.forkChild(make().replay(500))
      yield* Effect.sleep("4 seconds")
      yield* Fiber.interrupt(cut)
      const both = yield* Effect.all([Effect.exit(make().replay(500)), Effect.exit(make().replay(500))], {
        concurrency: "unbounded"
      })
      assert.isTrue(both.some(Exit.isSuccess))
      yield* make().replay(500)
      assert.deepStrictEqual(yield* replayed, numbers(500))
    })
  )

  Bus.story(bootstrap, "the trail of one record, as it lies in the cluster", () =>
    Effect.gen(function* () {
      const { name, make } = yield* setUp(3)
      yield* make().replay(1)
      const hops = yield* Trail.trail({ topic: name, groupId: name }, { key: "k0" })
      assert.deepStrictEqual(
        hops.map(({ kind, partition }) => [kind, partition]),
        [
          ["main", 0],
          ["dead-letter", 0],
          ["replay", 0]
        ]
      )
    })
  )

  Bus.story(
    bootstrap,
    "DLT-20 ruling 33 a custom handler in two processes gets each record once, failing ones too, and goes on after a restart",
    () =>
      Effect.gen(function* () {
        const { target, make } = yield* setUp(60)
        const got: Array<number> = []
        const deadLetter = DeadLetter.custom(({ value }) =>
          Effect.suspend(() => {
            const number = Number(Bus.text(value))
            got.push(number)
            return number % 10 === 0 ? Effect.fail("no") : Effect.void
          })
        )
        const failures = { failed: () => {}, worked: () => {} }
        const limits = { handlerTimeoutMillis: 420_000 }
        const options = { ...target, ...limits, deadLetter, replays: make(false), onEvent: () => {}, failures }
        const both = Effect.andThen(Strategy.run(options), Strategy.run(options))
        yield* Effect.scoped(
          Effect.andThen(
            both,
            Bus.until("all are handled", () => got.length >= 60)
          )
        )
        yield* Bus.lagIsZero(TopicName.deadLetterGroup(target.groupId), target.deadLetterTopic)
        assert.deepStrictEqual(
          [...got].sort((a, b) => a - b),
          numbers(60)
        )
        yield* Bus.publish([letter(target.groupId, 60, 30n)])
        yield* Effect.scoped(
          Effect.andThen(
            both,
            Bus.until("the new one is handled", () => got.length >= 61)
          )
        )
        assert.deepStrictEqual(got.slice(60), [60])
      })
  )
})
