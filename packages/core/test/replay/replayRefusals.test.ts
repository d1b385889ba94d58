import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { bytes, incompressible, inTime, scenario, valuesOf } from "../../../../test/scenarios/bus.ts"
import type * as Broker from "../../src/Broker.ts"
import * as BrokerError from "../../src/BrokerError.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"

const large = Buffer.from(incompressible(4_000)).toString("base64")

const letter = (value: string) => ({
  ...{ key: bytes("k"), value: bytes(value) },
  headers: Object.entries({ topic: "orders", partition: "0", offset: "7" }).map(([name, text]) => ({
    key: `x-eventbus-original-${name}`,
    value: bytes(text)
  }))
})

/** A replay whose source topic takes 2 kB, and how many transactions it has begun: each costs several requests. */
const engine = Effect.fnUntraced(function* (values: ReadonlyArray<string>, changes: Partial<Broker.Admin> = {}) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { config: new Map([["max.message.bytes", "2000"]]) })
  yield* memory.createTopic("orders.DLT")
  yield* memory.append("orders.DLT", 0, values.map(letter))
  const counted = { transactions: 0 }
  const replays = Replay.make({
    broker: {
      ...memory.broker,
      admin: Effect.map(memory.broker.admin, (admin) => ({ ...admin, ...changes })),
      transactionalProducer: (options) =>
        Effect.map(memory.broker.transactionalProducer(options), (producer) => ({
          transaction: (use) =>
            Effect.suspend(() => {
              counted.transactions++
              return producer.transaction(use)
            })
        }))
    },
    ...{ groupId: "billing", adopts: [], sourceTopic: "orders", deadLetterTopic: "orders.DLT" },
    tiers: Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, []),
    ...{ maxReplays: 3, maxBufferedBytes: 16_777_216, ownsPosition: true, hostname: "host-a" }
  })
  /** The report of a run, and its transactions. */
  const run = Effect.fnUntraced(function* (count: number) {
    const before = counted.transactions
    const { refused, replayed } = yield* inTime(replays.replay(count))
    return { refused, replayed, transactions: counted.transactions - before }
  })
  return { memory, run }
})

const manyLarge = [...Array.from({ length: 60 }, () => large), "small", "another"]

describe("DLT-23 many dead letters that their topic refuses", () => {
  scenario("DLT-23 cost a replay by count a few transactions, on each run again", () =>
    Effect.gen(function* () {
      const { run } = yield* engine(manyLarge)
      const first = yield* run(1)
      assert.deepInclude(first, { refused: 60, replayed: 1 })
      assert.isAtMost(first.transactions, 3)
      const again = yield* run(1)
      assert.deepInclude(again, { refused: 60, replayed: 1 })
      assert.strictEqual(again.transactions, 1)
      assert.deepStrictEqual(yield* valuesOf("orders"), ["small", "another"])
    })
  )

  scenario("DLT-23 cost a few transactions also where the limit of the topic may not be read", () =>
    Effect.gen(function* () {
      const denied = new BrokerError.AuthorizationFailed({ resource: "topic", name: "orders", operation: "describe" })
      const { run } = yield* engine(manyLarge, { topicConfig: () => Effect.fail(denied) })
      const first = yield* run(1)
      assert.deepInclude(first, { refused: 60, replayed: 1 })
      assert.isAtMost(first.transactions, 4)
      assert.deepStrictEqual(yield* valuesOf("orders"), ["small"])
    })
  )

  scenario("DLT-23 are all replayed, once each, when the topic takes them", () =>
    Effect.gen(function* () {
      const { memory, run } = yield* engine(manyLarge)
      yield* run(100)
      const admin = yield* memory.broker.admin
      yield* admin.alterTopicConfig("orders", new Map([["max.message.bytes", "20000"]]))
      assert.deepInclude(yield* run(1), { refused: 0, replayed: 1 })
      assert.deepInclude(yield* run(100), { refused: 0, replayed: 59 })
      assert.deepInclude(yield* run(100), { refused: 0, replayed: 0 })
      assert.lengthOf(yield* valuesOf("orders"), manyLarge.length)
    })
  )
})
