import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber, Stream } from "effect"
import { advance, bytes, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import * as Stats from "../../src/internal/deadLetters/replayStats.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as TopicScan from "../../src/internal/replay/topicScan.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"

const deadLetterTopic = "orders.DLT"

const options = (broker: MemoryBroker.MemoryBroker["Service"]["broker"]) => ({
  ...{ broker, groupId: "billing", adopts: [], sourceTopic: "orders", deadLetterTopic },
  tiers: Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, []),
  ...{ maxReplays: 3, ownsPosition: true, hostname: "host-a", maxBufferedBytes: 16_777_216 }
})

const letters = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ key: bytes(String(n)), value: bytes(String(n)) }))

const remake = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* inTime(
    Effect.scoped(Effect.flatMap(memory.broker.admin, ({ deleteTopics }) => deleteTopics([deadLetterTopic])))
  )
  yield* memory.createTopic(deadLetterTopic, { partitions: 2 })
  yield* advance("1 minute")
})

describe("a dead letter topic is deleted and made again", () => {
  scenario(
    "CLN-13 DLT-26 the position that a replay of the former topic has committed late hides no dead letter of the new one",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const topic of ["orders", deadLetterTopic]) yield* memory.createTopic(topic)
        yield* memory.append(deadLetterTopic, 0, letters(3))
        const replays = Replay.make(options(memory.broker))
        assert.strictEqual((yield* inTime(replays.replay(3))).replayed, 3)
        yield* remake
        // Kafka takes the offset of a transaction that began before the topic was deleted.
        yield* memory.setCommitted("billing.dlt", deadLetterTopic, 0, 3n)
        yield* memory.append(deadLetterTopic, 0, letters(5))
        assert.strictEqual((yield* inTime(Stats.stats(options(memory.broker)))).count, 5)
        assert.strictEqual((yield* inTime(replays.replay(100))).replayed, 5)
        assert.strictEqual((yield* inTime(replays.replay(100))).replayed, 0)
      })
  )

  scenario("CLN-13 a scan that has begun with the former topic fails, and reads nothing of the new one", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic(deadLetterTopic, { partitions: 2 })
      for (const partition of [0, 1]) yield* memory.append(deadLetterTopic, partition, letters(3))
      const scan = yield* TopicScan.open({ broker: memory.broker, admin: yield* memory.broker.admin })
      const read = (partition: number, from: bigint) =>
        Stream.runCollect(scan.read({ topic: deadLetterTopic, partition, from, to: 3n }))
      assert.lengthOf(yield* inTime(read(0, 0n)), 3)
      yield* remake
      yield* memory.append(deadLetterTopic, 1, letters(9))
      const further = yield* Effect.forkScoped(Effect.flip(read(1, 1n)))
      yield* advance("10 seconds")
      assert.strictEqual((yield* Fiber.join(further))._tag, "UnknownTopic")
    })
  )
})
