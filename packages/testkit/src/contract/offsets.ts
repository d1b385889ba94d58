/** Outcomes: committed offsets, and the position at which a member continues. */
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { admin, assertTag, eventually, failure, type Outcome, publish, texts, topic, unique } from "./harness.ts"
import { join } from "./probe.ts"

export const offsets: ReadonlyArray<Outcome> = [
  {
    title: "OFF-02: a committed offset is the next one to read: the next member starts there",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      yield* publish(name, texts("v", 5))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* join({ groupId, topics: [name] })
          yield* first.collects(5)
          yield* first.commit(name, 0, 3n)
        })
      )
      const second = yield* join({ groupId, topics: [name] })
      yield* second.collects(2)
      assert.strictEqual(second.own(name).committed, 3n)
      assert.deepStrictEqual(second.values, ["v-3", "v-4"])
    })
  },
  {
    title: "ruling 85: an assignment comes with all that the group has committed in its topics, metadata included",
    run: Effect.gen(function* () {
      const name = yield* topic(3)
      const groupId = unique("group")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* join({ groupId, topics: [name] })
          yield* first.owns(3)
          assert.deepStrictEqual(
            first.of("Assigned").flatMap(({ commits }) => commits),
            []
          )
          const { generation } = first.own(name, 0)
          yield* first.session.commit([
            { topic: name, partition: 0, generation, offset: 7n, metadata: "first-read=1" },
            { topic: name, partition: 2, generation, offset: 9n }
          ])
        })
      )
      const second = yield* join({ groupId, topics: [name], onAssigned: "wait" })
      yield* second.owns(3)
      const [assigned] = second.of("Assigned").filter(({ partitions }) => partitions.length > 0)
      assert.deepStrictEqual(
        Array.from(assigned?.commits ?? []).sort((a, b) => a.partition - b.partition),
        [
          { topic: name, partition: 0, offset: 7n, metadata: "first-read=1" },
          { topic: name, partition: 2, offset: 9n, metadata: "" }
        ]
      )
    })
  },
  {
    title: "several partitions are committed in one request",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const probe = yield* join({ groupId, topics: [name] })
      yield* probe.owns(2)
      yield* probe.session.commit(
        [0, 1].map((partition) => {
          const { generation } = probe.own(name, partition)
          return { topic: name, partition, generation, offset: BigInt(partition + 7) }
        })
      )
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [
        { topic: name, partition: 0, offset: 7n, metadata: "" },
        { topic: name, partition: 1, offset: 8n, metadata: "" }
      ])
    })
  },
  {
    title: "offsets beyond 2^53 are exact",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const offset = 9_007_199_254_740_993n
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* join({ groupId, topics: [name] })
          yield* first.owns(1)
          yield* first.commit(name, 0, offset)
        })
      )
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [
        { topic: name, partition: 0, offset, metadata: "" }
      ])
      const second = yield* join({ groupId, topics: [name], onAssigned: "wait" })
      yield* second.owns(1)
      assert.strictEqual(second.own(name).committed, offset)
    })
  },
  {
    title: "a committed 0 is not the same as none",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* join({ groupId, topics: [name] })
          yield* first.owns(1)
          yield* first.commit(name, 0, 0n)
        })
      )
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [
        { topic: name, partition: 0, offset: 0n, metadata: "" }
      ])
      const second = yield* join({ groupId, topics: [name] })
      yield* second.owns(1)
      assert.strictEqual(second.own(name).committed, 0n)
    })
  },
  {
    title: "OFF-16: a commit for an assignment that is not this session's is refused as a whole",
    run: Effect.gen(function* () {
      const name = yield* topic(1)
      const groupId = unique("group")
      const probe = yield* join({ groupId, topics: [name] })
      yield* probe.owns(1)
      const { generation } = probe.own(name)
      const error = yield* failure(
        probe.session.commit([
          { topic: name, partition: 0, generation, offset: 1n },
          { topic: name, partition: 9, generation, offset: 1n }
        ])
      )
      assertTag(error, "StaleAssignment")
      if (error._tag === "StaleAssignment") assert.deepStrictEqual(error.partitions, [`${name}/9`])
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  },
  {
    title: "OFF-16: a commit that names another generation is refused",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const probe = yield* join({ groupId, topics: [name] })
      yield* probe.owns(1)
      const generation = probe.own(name).generation - 1
      assertTag(
        yield* failure(probe.session.commit([{ topic: name, partition: 0, generation, offset: 1n }])),
        "StaleAssignment"
      )
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  },
  {
    title: "commits may go backwards: the port does not check them",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const probe = yield* join({ groupId, topics: [name] })
      yield* probe.owns(1)
      yield* probe.commit(name, 0, 5n)
      yield* probe.commit(name, 0, 2n)
      const administrator = yield* admin
      const committed = yield* administrator.committedOffsets(groupId, [name])
      assert.deepStrictEqual(committed, [{ topic: name, partition: 0, offset: 2n, metadata: "" }])
    })
  },
  {
    title: "OFF-10: a member that commits nothing leaves the records to the next one",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      yield* publish(name, ["a", "b"])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* join({ groupId, topics: [name], onRevoked: "release" })
          yield* first.collects(2)
        })
      )
      const second = yield* join({ groupId, topics: [name] })
      yield* second.collects(2)
      assert.strictEqual(second.own(name).committed, undefined)
      assert.deepStrictEqual(second.values, ["a", "b"])
    })
  },
  {
    title: "offsets set for a group without members are where the next member starts",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      yield* publish(name, texts("v", 4))
      const administrator = yield* admin
      yield* eventually(administrator.setCommittedOffsets(groupId, [{ topic: name, partition: 0, offset: 2n }]))
      const probe = yield* join({ groupId, topics: [name] })
      yield* probe.collects(2)
      assert.strictEqual(probe.own(name).committed, 2n)
      assert.deepStrictEqual(probe.values, ["v-2", "v-3"])
    })
  },
  {
    title: "a committed offset outside the log is reported as it is",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      yield* publish(name, texts("v", 4))
      const administrator = yield* admin
      yield* eventually(administrator.setCommittedOffsets(groupId, [{ topic: name, partition: 0, offset: 1n }]))
      yield* administrator.deleteRecords(name, [{ partition: 0, before: 3n }])
      const probe = yield* join({ groupId, topics: [name], onAssigned: "wait" })
      yield* probe.owns(1)
      const { committed, logStart, logEnd } = probe.own(name)
      assert.deepStrictEqual({ committed, logStart, logEnd }, { committed: 1n, logStart: 3n, logEnd: 4n })
    })
  }
]
