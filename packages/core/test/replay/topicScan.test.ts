import { assert, describe } from "@effect/vitest"
import { type Broker, BrokerError, type ConsumerRecord } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, Stream } from "effect"
import { advance, bytes, inTime, now, scenario, text } from "../../../../test/scenarios/bus.ts"
import * as TopicScan from "../../src/internal/replay/topicScan.ts"

/** A scan; `change` stands in for what its reader finds. */
const open = Effect.fnUntraced(function* (change: (reader: Broker.Reader) => Broker.Reader = (reader) => reader) {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const reader = (options?: Broker.FetchOptions) => Effect.map(broker.reader(options), change)
  return yield* TopicScan.open({ broker: { ...broker, reader }, admin: yield* broker.admin })
})

const unavailable = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "as planned" })

/** The result without its records, as from a leader that does not know yet that they are committed. */
const noneIn = (found: Broker.ReadResult, { offset }: ConsumerRecord.RecordPosition): Broker.ReadResult =>
  found._tag === "Fetched" ? { ...found, chunk: { ...found.chunk, records: [], nextOffset: offset } } : found

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
      const scan = yield* open()
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
      const scan = yield* open()
      const pages = yield* inTime(Stream.runCollect(scan.pages({ topic: "letters", partition: 0, from: 0n, to: 2n })))
      assert.strictEqual(pages.at(-1)?.nextOffset, 2n)
    })
  )

  scenario("ruling 31 records that retention deletes during the scan are passed over", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      yield* memory.append("letters", 0, values("a", "b", "c"))
      const scan = yield* open()
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
      const scan = yield* open()
      assert.deepStrictEqual(yield* inTime(valuesOf(scan, 0, 0n, 3n), "100 millis"), ["a"])
    })
  )

  scenario(
    "ruling 31 a scan goes on after reads that failed or found nothing yet, and repeats and leaves out no record",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("letters")
        yield* memory.append("letters", 0, values(...Array.from({ length: 1200 }, (_, index) => `v${index}`)))
        let reads = 0
        const scan = yield* open(({ read }) => ({
          read: (position) =>
            Effect.suspend(() => {
              reads++
              if (reads % 3 === 0) return Effect.fail(unavailable)
              return reads % 3 === 1 ? Effect.map(read(position), (found) => noneIn(found, position)) : read(position)
            })
        }))
        const found = yield* inTime(valuesOf(scan, 0, 0n, 1200n))
        assert.deepStrictEqual(
          found,
          Array.from({ length: 1200 }, (_, index) => `v${index}`)
        )
        assert.isAbove(reads, 6)
      })
  )

  scenario("ruling 31 a partition that delivers nothing fails the scan after 30 seconds", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      yield* memory.append("letters", 0, values("a"))
      const silent = { _tag: "RequestTimedOut", operation: "Reading topic 'letters'", millis: 30_000 }
      const hidden = { _tag: "UnexpectedBrokerError", code: "OPEN_TRANSACTION", retryable: true }
      const broken: ReadonlyArray<readonly [object, (reader: Broker.Reader) => Broker.Reader]> = [
        [
          hidden,
          ({ read }) => ({ read: (position) => Effect.map(read(position), (found) => noneIn(found, position)) })
        ],
        [silent, () => ({ read: () => Effect.fail(unavailable) })],
        [silent, () => ({ read: () => Effect.never })]
      ]
      for (const [expected, change] of broken) {
        const scan = yield* open(change)
        const before = yield* now
        const failed = yield* inTime(Effect.flip(valuesOf(scan, 0, 0n, 1n)))
        assert.deepInclude(failed, expected)
        assert.isAtMost((yield* now) - before, 31_000)
      }
    })
  )

  scenario("a partition that does not exist fails the scan at once", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      const scan = yield* open()
      const failed = yield* inTime(Effect.flip(valuesOf(scan, 1, 0n, 3n)), "100 millis")
      assert.deepInclude(failed, { _tag: "UnknownTopic", topic: "letters", partition: 1 })
    })
  )

  scenario("ruling 79 a scan leaves out a batch that cannot be read, and says which", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters", { config: new Map([["max.message.bytes", String(2 ** 26)]]) })
      const { send } = yield* memory.broker.producer()
      for (const value of ["before", "x".repeat(17 * 1024 * 1024), "behind"])
        yield* send({ topic: "letters", partition: 0, key: null, value: bytes(value), compression: "gzip" })
      const scan = yield* open()
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const found = yield* inTime(Effect.provide(valuesOf(scan, 0, 0n, 3n), logger))
      assert.deepStrictEqual(found, ["before", "behind"])
      assert.lengthOf(lines, 1)
      assert.include(lines[0], "Left out offsets 1 to 1 of letters-0")
    })
  )

  scenario("OPS-01 leaves no group, member or connection behind", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("letters")
      yield* memory.append("letters", 0, values("a"))
      yield* inTime(Effect.scoped(Effect.flatMap(open(), (scan) => valuesOf(scan, 0, 0n, 1n))))
      assert.deepInclude(yield* memory.usage, { consumers: 0, members: 0, readers: 0, admins: 0 })
      const admin = yield* memory.broker.admin
      assert.deepStrictEqual(yield* admin.listGroups, [])
    })
  )
})
