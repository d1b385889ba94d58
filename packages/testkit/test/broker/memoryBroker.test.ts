import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { eventuallyTrue, publish, record, texts, utf8 } from "../../src/contract/harness.ts"
import { join } from "../../src/contract/probe.ts"

const onBroker =
  (options: MemoryBroker.Options = {}) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    test.pipe(Effect.scoped, Effect.provide(Layer.provideMerge(MemoryBroker.layer(options), VirtualClock.layer)))

describe("MemoryBroker", () => {
  it.effect("TST-01: a test writes and reads a log without a client", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t", { partitions: 2 })
      assert.strictEqual(yield* memory.append("t", 1, [{ value: utf8("a") }, { key: utf8("k"), timestamp: 7 }]), 0n)
      const log = yield* memory.log("t", 1)
      assert.deepStrictEqual(
        log.map(({ offset, key, value, timestamp }) => ({ offset, key, value, timestamp })),
        [
          { offset: 0n, key: null, value: utf8("a"), timestamp: 0 },
          { offset: 1n, key: utf8("k"), value: null, timestamp: 7 }
        ]
      )
      assert.deepStrictEqual(yield* memory.offsets("t", 1), { partition: 1, logStart: 0n, logEnd: 2n })
    }).pipe(Effect.provide(MemoryBroker.layer()))
  )

  it.effect("compaction holes, control records and aborted ranges move the position and deliver nothing", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t")
      yield* memory.append(
        "t",
        0,
        texts("v", 4).map((value) => ({ value: utf8(value) }))
      )
      yield* memory.compact("t", 0, ({ offset }) => offset === 0n || offset === 2n)
      yield* memory.appendAborted("t", 0, [{ value: utf8("aborted") }])
      yield* memory.append("t", 0, [{ value: utf8("last") }])
      yield* memory.appendControl("t", 0, 3)
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* probe.collects(3)
      assert.deepStrictEqual(probe.values, ["v-1", "v-3", "last"])
      assert.strictEqual(probe.positions.get("t/0"), 10n)
    }).pipe(onBroker())
  )

  it.effect("a log that begins beyond 2^53 has exact offsets", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const firstOffset = 2n ** 60n + 1n
      yield* memory.createTopic("t", { firstOffset })
      yield* publish("t", ["a", "b"])
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* probe.collects(2)
      assert.deepStrictEqual(
        probe.records.map((one) => one.offset),
        [firstOffset, firstOffset + 1n]
      )
      yield* probe.commit("t", 0, firstOffset + 2n)
      assert.strictEqual(yield* memory.committed("g", "t", 0), firstOffset + 2n)
    }).pipe(onBroker())
  )

  it.effect("a negative committed offset is stored and shown unchanged, and -1 means none", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t", { partitions: 2 })
      yield* memory.setCommitted("g", "t", 0, -2n)
      yield* memory.setCommitted("g", "t", 1, -1n)
      const probe = yield* join({ groupId: "g", topics: ["t"] })
      yield* probe.owns(2)
      assert.strictEqual(probe.own("t", 0).committed, -2n)
      assert.strictEqual(probe.own("t", 1).committed, undefined)
    }).pipe(onBroker())
  )

  it.effect("every accepted commit is remembered in order, with member and generation", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t")
      const probe = yield* join({ groupId: "g", topics: ["t"], clientId: "c" })
      yield* probe.owns(1)
      const { generation } = probe.own("t")
      yield* probe.commit("t", 0, 1n)
      yield* probe.commit("t", 0, 3n)
      yield* Effect.flip(probe.session.commit([{ topic: "t", partition: 0, generation: generation + 1, offset: 9n }]))
      const commits = yield* memory.commits("g")
      assert.deepStrictEqual(
        commits.map(({ memberId, generation, offset }) => ({ memberId, generation, offset })),
        [
          { memberId: "c-1", generation, offset: 1n },
          { memberId: "c-1", generation, offset: 3n }
        ]
      )
    }).pipe(onBroker())
  )

  it.effect("retention by time and by size removes the oldest records when it is enforced", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("old", { config: new Map([["retention.ms", "1000"]]) })
      yield* memory.createTopic("big", { config: new Map([["retention.bytes", "10"]]) })
      yield* memory.append("old", 0, [{ timestamp: 0 }, { timestamp: 500 }, { timestamp: 1500 }])
      yield* memory.append(
        "big",
        0,
        texts("v", 6).map((value) => ({ value: utf8(value) }))
      )
      yield* TestClock.adjust("2 seconds")
      yield* memory.enforceRetention
      assert.deepStrictEqual(yield* memory.offsets("old", 0), { partition: 0, logStart: 2n, logEnd: 3n })
      assert.deepStrictEqual(yield* memory.offsets("big", 0), { partition: 0, logStart: 3n, logEnd: 6n })
    }).pipe(Effect.provide(MemoryBroker.layer()))
  )

  it.effect("a write creates a missing topic where autoCreateTopics is on", () =>
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const { send } = yield* broker.producer()
      assert.strictEqual((yield* send(record("made", "a"))).offset, 0n)
    }).pipe(onBroker({ autoCreateTopics: "on" }))
  )

  it.effect("clusters are independent", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* MemoryBroker.make(), yield* MemoryBroker.make()]
      yield* one.createTopic("t")
      yield* two.createTopic("t")
      yield* one.append("t", 0, [{ value: utf8("a") }])
      assert.strictEqual((yield* two.log("t", 0)).length, 0)
      const [first, second] = [yield* one.broker.admin, yield* two.broker.admin]
      assert.deepStrictEqual((yield* first.topicOffsets("t"))[0]?.logEnd, 1n)
      assert.deepStrictEqual((yield* second.topicOffsets("t"))[0]?.logEnd, 0n)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "a topic that is deleted and created again starts empty: old positions are out of range, old commits are gone",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        const admin = yield* (yield* Broker.Broker).admin
        yield* memory.createTopic("t")
        yield* publish("t", texts("v", 5))
        const probe = yield* join({ groupId: "g", topics: ["t"] })
        yield* probe.collects(5)
        yield* probe.commit("t", 0, 5n)
        yield* admin.deleteTopics(["t"])
        yield* probe.owns(0)
        yield* memory.createTopic("t")
        yield* publish("t", ["new"])
        yield* probe.owns(1)
        assert.strictEqual(probe.own("t").committed, undefined)
        yield* probe.collects(6)
        yield* probe.session.seek({ topic: "t", partition: 0 }, 5n)
        yield* Effect.sleep("1 second")
        assert.strictEqual(probe.of("OutOfRange")[0]?.position, 5n)
      }).pipe(onBroker())
  )

  it.effect("an idle session has its heartbeat and its expiry timer, and a closed session has none", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const probe = yield* join({ groupId: "g", topics: ["t"] })
          yield* probe.owns(1)
          assert.deepStrictEqual(yield* memory.usage, {
            consumers: 1,
            producers: 0,
            readers: 0,
            admins: 0,
            members: 1,
            timers: 1
          })
        })
      )
      yield* Effect.sleep("1 millis")
      assert.deepStrictEqual(yield* memory.usage, {
        consumers: 0,
        producers: 0,
        readers: 0,
        admins: 0,
        members: 0,
        timers: 0
      })
    }).pipe(onBroker())
  )

  it.effect("a consumer that takes no events receives no more than its buffer holds", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const broker = yield* Broker.Broker
      yield* memory.createTopic("t")
      yield* memory.append(
        "t",
        0,
        Array.from({ length: 5000 }, () => ({ value: utf8("v") }))
      )
      const session = yield* broker.consumer({ groupId: "g", topics: ["t"] })
      yield* Queue.take(session.events)
      yield* session.seek({ topic: "t", partition: 0 }, 0n)
      yield* Effect.sleep("1 minute")
      assert.strictEqual(Queue.sizeUnsafe(session.events), 16)
      let records = 0
      while (records < 5000) {
        const event = yield* Queue.take(session.events)
        if (event._tag === "Fetched") records += event.chunk.records.length
      }
      assert.strictEqual(records, 5000)
    }).pipe(onBroker({ maxRecordsPerChunk: 10 }))
  )

  for (const assignment of ["cooperative-sticky", "eager"] as const) {
    it.effect(
      `REB-08: a static member that dies while it gives a partition up blocks nobody when it is back (${assignment})`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("t", { partitions: 2 })
          const options = { groupId: "g", topics: ["t"], groupInstanceId: "returns", onRevoked: "hold" } as const
          const before = yield* join(options)
          yield* before.owns(2)
          const other = yield* join({ groupId: "g", topics: ["t"] })
          yield* eventuallyTrue(() => assert.lengthOf(before.of("Revoked"), 1))
          yield* memory.kill(before.session)
          const back = yield* join(options)
          yield* back.owns(1)
          yield* other.owns(1)
        }).pipe(onBroker({ assignment }))
    )
  }

  it.effect("a seek in one partition keeps the order of the others, also of events that wait for room", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t", { partitions: 2 })
      yield* memory.append(
        "t",
        0,
        texts("v", 30).map((value) => ({ value: utf8(value) }))
      )
      const broker = yield* Broker.Broker
      const session = yield* broker.consumer({ groupId: "g", topics: ["t"] })
      yield* Queue.take(session.events)
      yield* session.seek({ topic: "t", partition: 0 }, 0n)
      // Time enough to fill the buffer.
      yield* Effect.sleep("1 second")
      yield* session.seek({ topic: "t", partition: 1 }, 0n)
      const offsets: Array<bigint> = []
      while (offsets.length < 30) {
        for (const event of yield* Queue.takeAll(session.events)) {
          if (event._tag === "Fetched") offsets.push(...event.chunk.records.map(({ offset }) => offset))
        }
      }
      assert.deepStrictEqual(
        offsets,
        texts("v", 30).map((_, index) => BigInt(index))
      )
    }).pipe(onBroker({ maxRecordsPerChunk: 1, latency: { fetch: "10 millis" } }))
  )

  it.effect("changes of the caller's buffers after send do not change the record", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t")
      const broker = yield* Broker.Broker
      const { send } = yield* broker.producer()
      const value = utf8("before")
      yield* send({ topic: "t", key: null, value })
      value.fill(0)
      assert.deepStrictEqual((yield* memory.log("t", 0))[0]?.value, utf8("before"))
    }).pipe(onBroker())
  )

  it.effect("eager revokes every partition and assigns it again in a new generation", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("t", { partitions: 2 })
      const first = yield* join({ groupId: "g", topics: ["t"] })
      yield* first.owns(2)
      const { generation } = first.own("t")
      const second = yield* join({ groupId: "g", topics: ["t"] })
      yield* Effect.all([first.owns(1), second.owns(1)])
      assert.strictEqual(first.of("Revoked").flatMap(({ partitions }) => partitions).length, 2)
      assert.isAbove([...first.owned.values()][0]!.generation, generation)
    }).pipe(onBroker({ assignment: "eager" }))
  )
})
