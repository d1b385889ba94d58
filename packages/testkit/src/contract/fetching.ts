/** Outcomes: the fetched records and their form. */
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import {
  admin,
  eventuallyTrue,
  neverExpires,
  type Outcome,
  producer,
  publish,
  quietTime,
  record,
  text,
  texts,
  topic,
  unique,
  utf8
} from "./harness.ts"
import { join } from "./probe.ts"

export const fetching: ReadonlyArray<Outcome> = [
  {
    title: "records arrive in offset order, complete, and positions are dense",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, texts("v", 1200))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1200)
      assert.deepStrictEqual(probe.values, texts("v", 1200))
      assert.deepStrictEqual(
        probe.records.map((one) => one.offset),
        Array.from({ length: 1200 }, (_, index) => BigInt(index))
      )
      let position = 0n
      for (const { chunk } of probe.of("Fetched")) {
        if (chunk.records.length > 0) assert.strictEqual(chunk.records[0]!.offset, position)
        assert.isTrue(chunk.nextOffset >= position)
        assert.isTrue(chunk.highWatermark >= chunk.nextOffset)
        position = chunk.nextOffset
      }
      assert.strictEqual(position, 1200n)
    })
  },
  {
    title: "a waiting member receives a new record",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.owns(2)
      yield* publish(name, ["a"], 0)
      yield* probe.collects(1)
      yield* publish(name, ["b"], 1)
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values, ["a", "b"])
    })
  },
  {
    title: "null and empty stay different, in keys and in values",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { sendAll } = yield* producer
      yield* sendAll([
        { topic: name, partition: 0, key: null, value: null },
        { topic: name, partition: 0, key: utf8(""), value: utf8("") },
        { topic: name, partition: 0, key: utf8("k"), value: null },
        { topic: name, partition: 0, key: null, value: new Uint8Array([0, 255, 128]) }
      ])
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(4)
      const [tombstone, empty, keyed, binary] = probe.records
      assert.deepStrictEqual([tombstone?.key, tombstone?.value], [null, null])
      assert.deepStrictEqual([empty?.key?.length, empty?.value?.length], [0, 0])
      assert.deepStrictEqual([text(keyed?.key ?? null), keyed?.value], ["k", null])
      assert.deepStrictEqual([...(binary?.value ?? [])], [0, 255, 128])
    })
  },
  {
    title: "headers keep their bytes, and the values of one name keep their order and their duplicates",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { send } = yield* producer
      const headers = [
        { key: "a", value: utf8("1") },
        { key: "b", value: new Uint8Array([0, 255]) },
        { key: "a", value: utf8("2") },
        { key: "constructor", value: utf8("x") },
        { key: "a", value: utf8("1") }
      ]
      yield* send(record(name, "v", { headers }))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1)
      const got = probe.records[0]!.headers
      const of = (key: string) => got.filter((one) => one.key === key).map((one) => [...(one.value ?? [])])
      assert.deepStrictEqual(of("a"), [[49], [50], [49]])
      assert.deepStrictEqual(of("b"), [[0, 255]])
      assert.deepStrictEqual(of("constructor"), [[120]])
      assert.strictEqual(got.length, headers.length)
    })
  },
  {
    title: "headers of different names keep their order",
    needs: ({ headerOrder }) => headerOrder === "all",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { send } = yield* producer
      const keys = ["z", "a", "z", "m", "1"]
      yield* send(record(name, "v", { headers: keys.map((key) => ({ key, value: utf8(key) })) }))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1)
      assert.deepStrictEqual(
        probe.records[0]!.headers.map((one) => one.key),
        keys
      )
    })
  },
  {
    title: "a record keeps its timestamp; the default is now",
    run: Effect.gen(function* () {
      const name = yield* topic(1, neverExpires)
      const { send } = yield* producer
      yield* send(record(name, "a", { timestamp: 1_234_567_890_123 }))
      yield* send(record(name, "b"))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      assert.strictEqual(probe.records[0]!.timestamp, 1_234_567_890_123)
      assert.isAtLeast(probe.records[1]!.timestamp, 0)
    })
  },
  {
    title: "a chunk stays near maxPartitionFetchBytes, and a larger record still arrives",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const size = 4096
      const { sendAll, send } = yield* producer
      for (let i = 0; i < 8; i++) yield* sendAll([record(name, "x".repeat(size))])
      yield* send(record(name, "y".repeat(size * 8)))
      yield* send(record(name, "z"))
      const probe = yield* join({ groupId: unique("group"), topics: [name], maxPartitionFetchBytes: size * 2 })
      yield* probe.collects(10)
      assert.strictEqual(probe.values.at(-1), "z")
      for (const { chunk } of probe.of("Fetched")) {
        if (chunk.records.length > 1) assert.isAtMost(chunk.bytes, size * 3)
      }
    })
  },
  {
    title: "a topic can have a smaller byte limit than the others, and no larger one",
    run: Effect.gen(function* () {
      const [small, large] = [yield* topic(), yield* topic()]
      const size = 4096
      const { sendAll } = yield* producer
      for (let i = 0; i < 8; i++) yield* sendAll([record(small, "x".repeat(size)), record(large, "y".repeat(size))])
      const probe = yield* join({
        groupId: unique("group"),
        topics: [small, large],
        maxBytesByTopic: new Map([[small, size * 2]])
      })
      yield* probe.collects(16)
      const most = (name: string) =>
        Math.max(...probe.of("Fetched").flatMap(({ chunk }) => (chunk.topic === name ? chunk.records.length : [])))
      assert.isAtMost(most(small), 2)
      assert.strictEqual(most(large), 8)
      const bounded = yield* join({
        groupId: unique("group"),
        topics: [large],
        maxPartitionFetchBytes: size * 2,
        maxBytesByTopic: new Map([[large, size * 100]])
      })
      yield* bounded.collects(8)
      for (const { chunk } of bounded.of("Fetched")) assert.isAtMost(chunk.records.length, 2)
    })
  },
  {
    title: "records of every codec arrive as they were sent, and say their codec",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { send } = yield* producer
      const codecs = ["none", "gzip", "snappy", "lz4", "zstd"] as const
      const headers = [
        { key: "h", value: null },
        { key: "h", value: utf8("1") }
      ]
      for (const compression of codecs) {
        yield* send(record(name, `${compression} ${"x".repeat(2_000)}`, { compression, headers }))
        yield* send({ topic: name, key: utf8("k"), value: null, compression })
      }
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(10)
      assert.deepStrictEqual(
        probe.records.map(({ compression = "none" }) => compression),
        codecs.flatMap((codec) => [codec, codec])
      )
      assert.deepStrictEqual(
        probe.records.map(({ value }) => text(value)),
        codecs.flatMap((codec) => [`${codec} ${"x".repeat(2_000)}`, null])
      )
      for (const { headers: read, value } of probe.records) {
        assert.deepStrictEqual(
          read.map(({ key, value }) => [key, text(value)]),
          value === null
            ? []
            : [
                ["h", null],
                ["h", "1"]
              ]
        )
      }
    })
  },
  {
    title:
      "a compressed record above maxRecordBytes is Unreadable: its partition waits, others go on, and seek passes it",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const { send } = yield* producer
      const bounds = { partition: 0, compression: "gzip" } as const
      yield* send(record(name, "before", bounds))
      yield* send(record(name, "x".repeat(600_000), bounds))
      yield* send(record(name, "behind", bounds))
      const probe = yield* join({ groupId: unique("group"), topics: [name], maxRecordBytes: 500_000 })
      yield* eventuallyTrue(() => assert.strictEqual(probe.of("Unreadable").length, 1))
      const [event] = probe.of("Unreadable")
      assert.deepInclude(event, { topic: name, partition: 0, offset: 1n, lastOffset: 1n, records: 1 })
      assert.deepInclude(event, { codec: "gzip", problem: "tooLarge", generation: probe.own(name).generation })
      yield* send(record(name, "other", { partition: 1 }))
      yield* probe.collects(2)
      yield* quietTime
      assert.strictEqual(probe.of("Unreadable").length, 1)
      assert.sameMembers([...probe.values], ["before", "other"])
      yield* probe.session.seek({ topic: name, partition: 0 }, 2n)
      yield* probe.collects(3)
      assert.sameMembers([...probe.values], ["before", "other", "behind"])
      assert.strictEqual(probe.of("Unreadable").length, 1)
    })
  },
  {
    title: "a position before the log start is OutOfRange, and fetching goes on after seek",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, texts("v", 6))
      const administrator = yield* admin
      yield* administrator.deleteRecords(name, [{ partition: 0, before: 4n }])
      const probe = yield* join({ groupId: unique("group"), topics: [name], onAssigned: "wait" })
      yield* probe.owns(1)
      yield* probe.session.seek({ topic: name, partition: 0 }, 1n)
      yield* eventuallyTrue(() => assert.strictEqual(probe.of("OutOfRange").length, 1))
      const [event] = probe.of("OutOfRange")
      assert.deepStrictEqual(
        [event?.generation, event?.topic, event?.partition, event?.position, event?.logStart, event?.logEnd],
        [probe.own(name).generation, name, 0, 1n, 4n, 6n]
      )
      yield* quietTime
      assert.strictEqual(probe.of("OutOfRange").length, 1)
      assert.strictEqual(probe.records.length, 0)
      yield* probe.session.seek({ topic: name, partition: 0 }, 4n)
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values, ["v-4", "v-5"])
    })
  },
  {
    title: "a position that deleteRecords overtakes is OutOfRange",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const at = { topic: name, partition: 0 }
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* publish(name, texts("v", 2))
      yield* probe.collects(2)
      yield* probe.session.pause([at])
      yield* quietTime
      yield* publish(name, texts("w", 4))
      const administrator = yield* admin
      yield* administrator.deleteRecords(name, [{ partition: 0, before: 5n }])
      yield* quietTime
      // One chunk may still arrive after the pause; then the position is behind it.
      const position = probe.positions.get(`${name}/0`) ?? 0n
      if (position >= 5n) return
      yield* probe.session.resume([at])
      yield* eventuallyTrue(() => assert.strictEqual(probe.of("OutOfRange").at(-1)?.position, position))
      yield* probe.session.seek(at, 5n)
      yield* eventuallyTrue(() => assert.strictEqual(probe.values.at(-1), "w-3"))
    })
  },
  {
    title: "a position behind the end of the log is OutOfRange, and nothing is committed for it",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      yield* publish(name, ["a"])
      const probe = yield* join({ groupId, topics: [name], onAssigned: "wait" })
      yield* probe.owns(1)
      yield* probe.session.seek({ topic: name, partition: 0 }, 100n)
      yield* eventuallyTrue(() => assert.strictEqual(probe.of("OutOfRange").length, 1))
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  }
]
