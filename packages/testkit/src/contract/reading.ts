/** Outcomes: reading by partition and offset, without a group. */
import { Broker, type BrokerError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert } from "vitest"
import {
  admin,
  assertTag,
  eventually,
  failure,
  type Outcome,
  producer,
  publish,
  record,
  text,
  texts,
  topic,
  transactional,
  unique,
  usable
} from "./harness.ts"
import { join } from "./probe.ts"

const reader = (options?: Broker.FetchOptions) => Effect.flatMap(Broker.Broker, (broker) => broker.reader(options))

/** Reads a position of partition 0 that has records, or behind which only the position moves. */
const chunkAt = Effect.fnUntraced(function* (from: Broker.Reader, name: string, offset: bigint, partition = 0) {
  const found = yield* from.read({ topic: name, partition, offset })
  if (found._tag !== "Fetched") return assert.fail(`${found._tag} at ${offset}`)
  return { ...found.chunk, topicId: found.topicId, values: found.chunk.records.map(({ value }) => text(value)) }
})

/** The values of partition 0, chunk by chunk, up to an offset. */
const chunksTo = Effect.fnUntraced(function* (
  from: Broker.Reader,
  name: string,
  end: bigint,
  between: (offset: bigint) => Effect.Effect<unknown, BrokerError.BrokerError> = () => Effect.void
) {
  const chunks: Array<ReadonlyArray<string | null>> = []
  for (let offset = 0n; offset < end; ) {
    const { values, nextOffset } = yield* chunkAt(from, name, offset)
    chunks.push(values)
    offset = nextOffset
    yield* between(offset)
  }
  return chunks
})

const isolation: ReadonlyArray<Outcome> = [
  {
    title:
      "records of an aborted transaction are read under read_uncommitted only, and the position passes them and its marker",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, ["before"])
      const { transaction } = yield* transactional()
      yield* Effect.exit(
        transaction((tx) => Effect.andThen(tx.sendAll([record(name, "x"), record(name, "y")]), Effect.fail("no")))
      )
      yield* publish(name, ["after"])
      const committed = yield* reader()
      assert.deepStrictEqual((yield* chunksTo(committed, name, 5n)).flat(), ["before", "after"])
      const markers = yield* chunkAt(committed, name, 1n)
      assert.isAbove(Number(markers.nextOffset), 3)
      const uncommitted = yield* reader({ isolationLevel: "read_uncommitted" })
      assert.deepStrictEqual((yield* chunksTo(uncommitted, name, 5n)).flat(), ["before", "x", "y", "after"])
    })
  },
  {
    title: "read_committed ends before an open transaction, and goes on once it is committed",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, ["before"])
      const [committed, uncommitted] = [yield* reader(), yield* reader({ isolationLevel: "read_uncommitted" })]
      const { transaction } = yield* transactional()
      yield* transaction((tx) =>
        Effect.gen(function* () {
          yield* tx.send(record(name, "open"))
          yield* publish(name, ["behind"])
          const first = yield* chunkAt(committed, name, 0n)
          assert.deepStrictEqual([first.values, first.nextOffset, first.highWatermark], [["before"], 1n, 1n])
          const held = yield* chunkAt(committed, name, 1n)
          assert.deepStrictEqual([held.values, held.nextOffset, held.highWatermark], [[], 1n, 1n])
          assert.deepStrictEqual((yield* chunkAt(uncommitted, name, 1n)).values, ["open", "behind"])
        })
      )
      yield* eventually(
        Effect.map(chunkAt(committed, name, 1n), ({ values }) => assert.deepStrictEqual(values, ["open", "behind"]))
      )
    })
  }
]

const positions: ReadonlyArray<Outcome> = [
  {
    title: "OPS-01 records are read from any position, as a consumer gets them, and no group is made",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const { send } = yield* producer
      yield* send({ topic: name, partition: 1, key: null, value: null, headers: [{ key: "h", value: null }] })
      for (const compression of ["none", "gzip", "snappy", "lz4", "zstd"] as const)
        yield* send(record(name, compression, { partition: 1, compression }))
      const { listGroups, describeGroup } = yield* admin
      const before = new Set(yield* listGroups)
      const clientId = unique("reader")
      const reading = yield* reader({ clientId })
      const all = yield* chunkAt(reading, name, 0n, 1)
      assert.strictEqual((yield* chunkAt(reading, name, 4n, 1)).records[0]?.offset, 4n)
      for (const groupId of (yield* listGroups).filter((each) => !before.has(each))) {
        const { members } = yield* describeGroup(groupId)
        assert.deepStrictEqual(
          members.filter((member) => member.clientId.includes(clientId)),
          []
        )
      }
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(6)
      assert.deepStrictEqual(all.records, probe.records)
      assert.deepStrictEqual([all.nextOffset, all.highWatermark], [6n, 6n])
      assert.strictEqual(all.topicId, probe.own(name, 1).topicId)
    })
  },
  {
    title: "the end of a log is answered without records, and what is published there is read next",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const reading = yield* reader()
      const empty = yield* eventually(chunkAt(reading, name, 0n))
      assert.deepStrictEqual([empty.values, empty.nextOffset, empty.highWatermark, empty.bytes], [[], 0n, 0n, 0])
      yield* publish(name, ["a"])
      assert.deepStrictEqual((yield* chunkAt(reading, name, 0n)).values, ["a"])
    })
  },
  {
    title: "a position before the log start, or behind the log end, is OutOfRange, with both ends",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, texts("v", 6))
      const administrator = yield* admin
      yield* administrator.deleteRecords(name, [{ partition: 0, before: 4n }])
      const reading = yield* reader()
      for (const offset of [1n, 100n]) {
        const found = yield* reading.read({ topic: name, partition: 0, offset })
        assert.deepInclude(found, { _tag: "OutOfRange", topic: name, partition: 0, position: offset })
        assert.deepInclude(found, { logStart: 4n, logEnd: 6n })
        assert.isDefined(found.topicId)
      }
      assert.deepStrictEqual((yield* chunkAt(reading, name, 4n)).values, ["v-4", "v-5"])
    })
  },
  {
    title: "a topic or a partition that does not exist is UnknownTopic, and the reader goes on",
    run: Effect.gen(function* () {
      const [name, missing] = [yield* topic(), unique("missing")]
      yield* publish(name, ["a"])
      const reading = yield* reader()
      const noTopic = yield* failure(reading.read({ topic: missing, partition: 0, offset: 0n }))
      assert.deepInclude(noTopic, { _tag: "UnknownTopic", topic: missing })
      const noPartition = yield* failure(reading.read({ topic: name, partition: 7, offset: 0n }))
      assert.deepInclude(noPartition, { _tag: "UnknownTopic", topic: name, partition: 7 })
      assert.deepStrictEqual((yield* chunkAt(reading, name, 0n)).values, ["a"])
    })
  },
  {
    title: "a topic that is deleted is UnknownTopic, and one that is made again has another id",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, texts("former", 3))
      const reading = yield* reader()
      const former = yield* chunkAt(reading, name, 0n)
      const administrator = yield* admin
      yield* administrator.deleteTopics([name])
      yield* eventually(
        Effect.map(failure(reading.read({ topic: name, partition: 0, offset: 1n })), (error) =>
          assertTag(error, "UnknownTopic")
        )
      )
      yield* eventually(administrator.createTopics([{ topic: name, partitions: 1 }]))
      yield* usable(administrator, name, 1)
      yield* eventually(publish(name, texts("new", 5)))
      const found = yield* eventually(chunkAt(reading, name, 1n))
      assert.deepStrictEqual(found.values[0], "new-1")
      assert.isDefined(former.topicId)
      assert.notStrictEqual(found.topicId, former.topicId)
    })
  }
]

const bounds: ReadonlyArray<Outcome> = [
  {
    title: "a chunk stays near maxPartitionFetchBytes, and a larger record still arrives",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const size = 4096
      const { sendAll, send } = yield* producer
      for (let i = 0; i < 8; i++) yield* sendAll([record(name, "x".repeat(size))])
      yield* send(record(name, "y".repeat(size * 8)))
      const reading = yield* reader({ maxPartitionFetchBytes: size * 2 })
      const chunks = yield* chunksTo(reading, name, 9n)
      assert.strictEqual(chunks.flat().length, 9)
      for (const values of chunks) if (values.length > 1) assert.isAtMost(values.join("").length, size * 3)
    })
  },
  {
    title:
      "a compressed batch that is larger than a chunk is read in parts, also when another partition is read in between",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const { sendAll } = yield* producer
      const values = texts("v", 40).map((value) => value.padEnd(50_000, "."))
      yield* sendAll(values.map((value) => record(name, value, { compression: "zstd" })))
      yield* publish(name, ["other"], 1)
      const reading = yield* reader()
      const chunks = yield* chunksTo(reading, name, 40n)
      assert.isAbove(chunks.length, 1)
      assert.deepStrictEqual(chunks.flat(), values)
      const interleaved = yield* chunksTo(reading, name, 40n, (offset) =>
        Effect.all([chunkAt(reading, name, 0n, 1), offset < 40n ? chunkAt(reading, name, offset) : Effect.void])
      )
      assert.deepStrictEqual(interleaved.flat(), values)
    })
  },
  {
    title: "partitions are read side by side",
    run: Effect.gen(function* () {
      const name = yield* topic(3)
      for (const partition of [0, 1, 2]) yield* publish(name, [`p-${partition}`], partition)
      const reading = yield* reader()
      const found = yield* Effect.forEach([0, 1, 2], (partition) => chunkAt(reading, name, 0n, partition), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        found.flatMap(({ values }) => values),
        ["p-0", "p-1", "p-2"]
      )
    })
  },
  {
    title: "a compressed record above maxRecordBytes is Unreadable; what is before it and behind it can be read",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { send } = yield* producer
      for (const value of ["before", "x".repeat(600_000), "behind"])
        yield* send(record(name, value, { compression: "gzip" }))
      const reading = yield* reader({ maxRecordBytes: 500_000 })
      const first = yield* chunkAt(reading, name, 0n)
      assert.deepStrictEqual([first.values, first.nextOffset], [["before"], 1n])
      const found = yield* reading.read({ topic: name, partition: 0, offset: 1n })
      assert.deepInclude(found, { _tag: "Unreadable", topic: name, partition: 0, offset: 1n, lastOffset: 1n })
      assert.deepInclude(found, { records: 1, codec: "gzip", problem: "tooLarge" })
      assert.deepStrictEqual((yield* chunkAt(reading, name, 2n)).values, ["behind"])
    })
  },
  {
    title: "the headers that the connector writes into copies do not count in maxRecordBytes",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { send } = yield* producer
      const headers = (key: string) => [{ key, value: new Uint8Array(3_000) }]
      for (const key of ["x-eventbus-last-exception-stacktrace", "mine"])
        yield* send(record(name, "x".repeat(600_000), { compression: "gzip", headers: headers(key) }))
      const reading = yield* reader({ maxRecordBytes: 601_000 })
      assert.strictEqual((yield* chunkAt(reading, name, 0n)).nextOffset, 1n)
      const found = yield* reading.read({ topic: name, partition: 0, offset: 1n })
      assert.deepInclude(found, { _tag: "Unreadable", offset: 1n, problem: "tooLarge" })
    })
  },
  {
    title: "closing the scope ends what is being read, and what is read later, with BrokerUnavailable",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const at = { topic: name, partition: 0, offset: 0n }
      const [reading, going] = yield* Effect.scoped(
        Effect.gen(function* () {
          const reading = yield* reader()
          // Nothing is there to be read.
          const going = yield* Effect.forkDetach(Effect.exit(Effect.forever(reading.read(at))), {
            startImmediately: true
          })
          return [reading, going] as const
        })
      )
      const ended = yield* Fiber.join(going)
      assertTag(yield* failure(ended), "BrokerUnavailable")
      assertTag(yield* failure(reading.read(at)), "BrokerUnavailable")
    })
  }
]

export const reading: ReadonlyArray<Outcome> = [...isolation, ...positions, ...bounds]
