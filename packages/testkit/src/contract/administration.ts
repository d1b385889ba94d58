/** Outcomes: administration of a cluster. */
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import {
  admin,
  assertTag,
  eventually,
  failure,
  neverExpires,
  type Outcome,
  producer,
  publish,
  quietTime,
  record,
  texts,
  topic,
  unique,
  usable
} from "./harness.ts"
import { join } from "./probe.ts"

export const administration: ReadonlyArray<Outcome> = [
  {
    title: "C33 ruling 70 a record says whether its time is the producer's or that of its topic",
    run: Effect.gen(function* () {
      const created = yield* topic(1, neverExpires)
      const appended = yield* topic(1, new Map([...neverExpires, ["message.timestamp.type", "LogAppendTime"]]))
      const { sendAll } = yield* producer
      yield* sendAll([created, appended].map((name) => record(name, "x", { timestamp: 1_000 })))
      const probe = yield* join({ groupId: unique("group"), topics: [created, appended] })
      yield* probe.collects(2)
      const [producers, brokers] = [created, appended].map((name) => probe.records.find((each) => each.topic === name))
      assert.deepStrictEqual([producers?.timestampType ?? "CreateTime", producers?.timestamp], ["CreateTime", 1_000])
      assert.strictEqual(brokers?.timestampType, "LogAppendTime")
      assert.notStrictEqual(brokers?.timestamp, 1_000)
    })
  },
  {
    title: "a created topic is listed and described, with its configuration",
    run: Effect.gen(function* () {
      const name = yield* topic(3, new Map([["retention.ms", "3600000"]]))
      const administrator = yield* admin
      assert.include(yield* administrator.listTopics, name)
      const described = yield* administrator.describeTopic(name)
      assert.deepStrictEqual([described.topic, described.partitions], [name, 3])
      assert.isAtLeast(described.replicationFactor, 1)
      const config = yield* administrator.topicConfig(name)
      assert.strictEqual(config.get("retention.ms"), "3600000")
      assert.isTrue(config.has("max.message.bytes"))
    })
  },
  {
    title: "a topic that is created without a number of partitions gets the broker's default",
    run: Effect.gen(function* () {
      const name = unique("topic")
      const administrator = yield* admin
      yield* administrator.createTopics([{ topic: name }])
      const described = yield* eventually(administrator.describeTopic(name))
      assert.isAtLeast(described.partitions, 1)
    })
  },
  {
    title: "createTopics fails with the first topic that cannot be created, and creates the others",
    run: Effect.gen(function* () {
      const existing = yield* topic()
      const administrator = yield* admin
      const [before, after] = [unique("topic"), unique("topic")]
      const error = yield* failure(
        administrator.createTopics([
          { topic: before, partitions: 1 },
          { topic: existing, partitions: 1 },
          { topic: after, partitions: 1 }
        ])
      )
      assertTag(error, "TopicExists")
      if (error._tag === "TopicExists") assert.strictEqual(error.topic, existing)
      yield* usable(administrator, before, 1)
      yield* usable(administrator, after, 1)
    })
  },
  {
    title: "an illegal name cannot be created",
    run: Effect.gen(function* () {
      const administrator = yield* admin
      for (const name of ["not legal!", "..", "x".repeat(250)]) {
        const error = yield* failure(administrator.createTopics([{ topic: name, partitions: 1 }]))
        assertTag(error, "InvalidTopic")
        if (error._tag === "InvalidTopic") assert.strictEqual(error.topic, name)
      }
    })
  },
  {
    title: "requests about a topic that does not exist fail with UnknownTopic",
    run: Effect.gen(function* () {
      const administrator = yield* admin
      const name = unique("topic")
      assertTag(yield* failure(administrator.describeTopic(name)), "UnknownTopic")
      assertTag(yield* failure(administrator.topicOffsets(name)), "UnknownTopic")
      assertTag(yield* failure(administrator.deleteTopics([name])), "UnknownTopic")
    })
  },
  {
    title: "a deleted topic is gone",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const administrator = yield* admin
      yield* administrator.deleteTopics([name])
      yield* eventually(
        Effect.map(administrator.listTopics, (names) => {
          assert.notInclude(names, name)
        })
      )
    })
  },
  {
    title: "alterTopicConfig sets the given keys and leaves the others as they are",
    run: Effect.gen(function* () {
      const name = yield* topic(1, new Map([["retention.ms", "3600000"]]))
      const administrator = yield* admin
      yield* administrator.alterTopicConfig(name, new Map([["max.message.bytes", "54321"]]))
      yield* eventually(
        Effect.map(administrator.topicConfig(name), (config) => {
          assert.strictEqual(config.get("max.message.bytes"), "54321")
          assert.strictEqual(config.get("retention.ms"), "3600000")
        })
      )
    })
  },
  {
    title: "createPartitions raises the number of partitions, and refuses to lower it",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const administrator = yield* admin
      yield* administrator.createPartitions(name, 4)
      yield* usable(administrator, name, 4)
      assertTag(yield* failure(administrator.createPartitions(name, 3)), "UnexpectedBrokerError")
    })
  },
  {
    title: "topicOffsets gives start and end of every partition, in order; deleteRecords moves the start",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      yield* publish(name, texts("v", 5), 1)
      const administrator = yield* admin
      yield* administrator.deleteRecords(name, [{ partition: 1, before: 3n }])
      yield* eventually(
        Effect.map(administrator.topicOffsets(name), (offsets) =>
          assert.deepStrictEqual(offsets, [
            { partition: 0, logStart: 0n, logEnd: 0n },
            { partition: 1, logStart: 3n, logEnd: 5n }
          ])
        )
      )
      yield* administrator.deleteRecords(name, [{ partition: 1, before: -1n }])
      yield* eventually(
        Effect.map(administrator.topicOffsets(name), (offsets) =>
          assert.deepStrictEqual(offsets[1], { partition: 1, logStart: 5n, logEnd: 5n })
        )
      )
    })
  },
  {
    title: "offsetsForTimestamp finds the first record at or after a time, and the end when there is none",
    run: Effect.gen(function* () {
      const name = yield* topic(2, neverExpires)
      const { send } = yield* producer
      const base = 1_700_000_000_000
      for (const step of [0, 1000, 2000]) yield* send(record(name, `v${step}`, { timestamp: base + step }))
      const administrator = yield* admin
      const first = (timestamp: number) =>
        Effect.map(administrator.offsetsForTimestamp(name, timestamp), (offsets) => offsets.map((one) => one.offset))
      assert.deepStrictEqual(yield* first(base), [0n, 0n])
      assert.deepStrictEqual(yield* first(base + 1), [1n, 0n])
      assert.deepStrictEqual(yield* first(base + 2000), [2n, 0n])
      assert.deepStrictEqual(yield* first(base + 2001), [3n, 0n])
    })
  },
  {
    title: "groups are listed and described with their members",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const probe = yield* join({ groupId, topics: [name], clientId: "contract-client" })
      yield* probe.owns(2)
      const administrator = yield* admin
      assert.include(yield* administrator.listGroups, groupId)
      yield* eventually(
        Effect.map(administrator.describeGroup(groupId), ({ type, state, protocol, members }) => {
          assert.strictEqual(state, "Stable")
          assert.include(["classic eventbus-cooperative-sticky", "consumer uniform"], `${type} ${protocol}`)
          assert.strictEqual(members.length, 1)
          assert.strictEqual(members[0]?.groupInstanceId, undefined)
          assert.include(members[0]?.clientId ?? "", "contract-client")
          assert.sameDeepMembers(
            [...(members[0]?.assignment ?? [])],
            [
              { topic: name, partition: 0 },
              { topic: name, partition: 1 }
            ]
          )
        })
      )
    })
  },
  {
    title: "a group that does not exist is Dead, has no members and no offsets",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const administrator = yield* admin
      const groupId = unique("group")
      assert.deepStrictEqual(yield* eventually(administrator.describeGroup(groupId)), {
        groupId,
        type: "classic",
        state: "Dead",
        protocol: "",
        members: []
      })
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  },
  {
    title: "ruling 71 the newest records of a topic can be read outside of any group, where the adapter can",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const { tail } = yield* admin
      if (tail === undefined) return
      assert.deepStrictEqual(yield* eventually(tail(name, 2)), [])
      const { send } = yield* producer
      yield* Effect.forEach(["a", "b", "c"], (value) => send({ ...record(name, value), partition: 0 }))
      yield* send({ ...record(name, "d"), partition: 1 })
      const offsets = Effect.map(tail(name, 2), (all) => all.map(({ partition, offset }) => `${partition}/${offset}`))
      const expected = ["0/1", "0/2", "1/0"]
      yield* eventually(Effect.map(offsets, (found) => assert.deepStrictEqual(found.sort(), expected)))
      assertTag(yield* failure(tail(unique("missing"), 2)), "UnknownTopic")
    })
  },
  {
    title: "without ACLs every operation is allowed on existing topics and on any group, where the adapter can ask",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const { authorizedOperations } = yield* admin
      if (authorizedOperations === undefined) return
      yield* eventually(
        Effect.map(authorizedOperations([name, unique("missing")], [groupId]), ({ cluster, topics, groups }) => {
          assert.deepStrictEqual([...topics.keys()], [name])
          assert.deepStrictEqual([...groups.keys()], [groupId])
          assert.includeMembers([...(topics.get(name) ?? [])], ["Read", "Write", "Describe", "Delete"])
          assert.includeMembers([...(groups.get(groupId) ?? [])], ["Read", "Describe"])
          assert.include([...(cluster ?? [])], "Create")
        })
      )
    })
  },
  {
    title: "offsets of a group with members cannot be set, and such a group cannot be deleted",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const probe = yield* join({ groupId, topics: [name] })
      yield* probe.owns(1)
      yield* probe.commit(name, 0, 3n)
      const administrator = yield* admin
      yield* failure(administrator.setCommittedOffsets(groupId, [{ topic: name, partition: 0, offset: 0n }]))
      yield* failure(administrator.deleteGroups([groupId]))
      yield* quietTime
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [
        { topic: name, partition: 0, offset: 3n, metadata: "" }
      ])
      assert.strictEqual(probe.of("Lost").length + probe.of("Revoked").length, 0)
    })
  },
  {
    title: "a group without members can be deleted, and its offsets go with it",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const administrator = yield* admin
      yield* eventually(administrator.setCommittedOffsets(groupId, [{ topic: name, partition: 0, offset: 2n }]))
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [
        { topic: name, partition: 0, offset: 2n, metadata: "" }
      ])
      yield* eventually(administrator.deleteGroups([groupId]))
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
      assert.notInclude(yield* administrator.listGroups, groupId)
    })
  }
]
