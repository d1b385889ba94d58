import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Stream } from "effect"
import { advance, bytes, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import * as TopicScan from "../../src/internal/deadLetters/topicScan.ts"

const open = Effect.gen(function* () {
  const { broker } = yield* MemoryBroker.MemoryBroker
  return yield* TopicScan.open({ broker, groupId: "billing.dlt", topics: ["letters"] })
})

const valuesOf = (scan: TopicScan.TopicScan, partition: number, from: bigint, to: bigint) =>
  scan.read({ topic: "letters", partition, from, to }).pipe(
    Stream.map(({ value }) => text(value)),
    Stream.runCollect
  )

const values = (...all: ReadonlyArray<string>) => all.map((value) => ({ value: bytes(value) }))

describe("topicScan", () => {
  scenario("DLT-28 ruling 31 a range ends by position, after markers, aborted records and holes", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters", { partitions: 2 })
      yield* memory.append("letters", 0, values("a", "b", "c"))
      yield* memory.appendAborted("letters", 0, values("never"))
      yield* memory.append("letters", 0, values("d"))
      yield* memory.appendControl("letters", 0, 3)
      yield* memory.appendControl("letters", 1, 2)
      yield* memory.compact("letters", 0, ({ value }) => text(value) === "b")
      const scan = yield* open
      const { logEnd } = yield* memory.offsets("letters", 0)
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 0n, logEnd)), ["a", "c", "d"])
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 1, 0n, 2n)), [])
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 1n, 3n)), ["c"])
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 2n, 2n)), [])
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 0n, logEnd)), ["a", "c", "d"])
    })
  )

  scenario("DLT-28 pages report how far the range was read, markers at its end included", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      yield* memory.append("letters", 0, values("a"))
      yield* memory.appendControl("letters", 0)
      const scan = yield* open
      const pages = yield* inTime(Stream.runCollect(scan.pages({ topic: "letters", partition: 0, from: 0n, to: 2n })))
      assert.strictEqual(pages.at(-1)?.nextOffset, 2n)
    })
  )

  scenario("ruling 31 records that retention deletes during the scan are passed over", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      yield* memory.append("letters", 0, values("a", "b", "c"))
      const scan = yield* open
      const admin = yield* memory.broker.admin
      yield* admin.deleteRecords("letters", [{ partition: 0, before: 2n }])
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 0n, 3n)), ["c"])
      yield* admin.deleteRecords("letters", [{ partition: 0, before: 3n }])
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 0n, 3n)), [])
    })
  )

  scenario("a scan stops at records of an open transaction instead of waiting for them", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      yield* memory.append("letters", 0, values("a"))
      const producer = yield* memory.broker.transactionalProducer({ transactionalId: "t" })
      yield* Effect.forkScoped(
        producer.transaction((transaction) =>
          Effect.andThen(transaction.send({ topic: "letters", key: null, value: bytes("b") }), Effect.never)
        )
      )
      yield* advance("1 second")
      yield* memory.append("letters", 0, values("c"))
      const scan = yield* open
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 0n, 3n), "100 millis"), ["a"])
    })
  )

  scenario("ruling 31 a partition that delivers nothing fails the scan at its deadline", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      const scan = yield* open
      const failed = yield* inTime(Effect.flip(valuesOf(scan, 1, 0n, 3n)))
      assert.strictEqual(failed._tag, "RequestTimedOut")
    })
  )

  scenario("leaves no group, member or connection behind", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      yield* memory.append("letters", 0, values("a"))
      yield* inTime(Effect.scoped(Effect.flatMap(open, (scan) => valuesOf(scan, 0, 0n, 1n))))
      const usage = yield* memory.usage
      assert.deepStrictEqual([usage.consumers, usage.members, usage.admins], [0, 0, 0])
      const admin = yield* memory.broker.admin
      assert.deepStrictEqual(yield* admin.listGroups, [])
    })
  )
})
