/** Outcomes: the assignment events of a member. */
import { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import {
  admin,
  eventually,
  eventuallyTrue,
  type Outcome,
  publish,
  quietTime,
  texts,
  topic,
  unique,
  usable
} from "./harness.ts"
import { join } from "./probe.ts"

/** The new topic has more records than the former one, so that its position is one of the new log too. */
const remadeTopic = (state: "fetching" | "paused" | "paused shortly") =>
  Effect.gen(function* () {
    const name = yield* topic()
    yield* publish(name, texts("former", 3))
    const administrator = yield* admin
    // A commit behind the deletion could belong to either topic.
    const probe = yield* join({ groupId: unique("group"), topics: [name], onRevoked: "release" })
    yield* probe.collects(3)
    const former = probe.own(name)
    yield* probe.commit(name, 0, 3n)
    const partitions = [{ topic: name, partition: 0 }]
    if (state !== "fetching") yield* probe.session.pause(partitions)
    // A fetch that is out ends meanwhile.
    yield* state === "paused shortly" ? Effect.sleep("700 millis") : quietTime
    yield* administrator.deleteTopics([name])
    yield* eventually(administrator.createTopics([{ topic: name, partitions: 1 }]))
    yield* usable(administrator, name, 1)
    yield* eventually(publish(name, texts("new", 5)))
    if (state !== "paused shortly") yield* quietTime
    if (state !== "fetching") yield* probe.session.resume(partitions)
    yield* eventuallyTrue(() => assert.notStrictEqual(probe.own(name).topicId, former.topicId))
    const own = probe.own(name)
    assert.isDefined(own.topicId)
    assert.isDefined(former.topicId)
    assert.isAbove(own.generation, former.generation)
    assert.strictEqual(own.committed, undefined)
    const ended = [...probe.of("Lost"), ...probe.of("Revoked")]
    assert.deepStrictEqual(
      ended.map(({ generation }) => generation),
      [former.generation]
    )
    yield* eventuallyTrue(() => assert.includeMembers([...probe.values], [...texts("new", 5)]))
    yield* quietTime
    assert.deepStrictEqual(
      probe.values.filter((value) => value?.startsWith("new")),
      [...texts("new", 5)]
    )
  })

export const assignment: ReadonlyArray<Outcome> = [
  {
    title: "a lone member is assigned every partition, with the ends of its log and no committed offset",
    run: Effect.gen(function* () {
      const name = yield* topic(3)
      yield* publish(name, ["a", "b"], 1)
      const probe = yield* join({ groupId: unique("group"), topics: [name], onAssigned: "wait" })
      yield* probe.owns(3)
      for (const partition of [0, 1, 2]) {
        const own = probe.own(name, partition)
        assert.strictEqual(own.committed, undefined)
        assert.strictEqual(own.logStart, 0n)
        assert.strictEqual(own.logEnd, partition === 1 ? 2n : 0n)
      }
    })
  },
  {
    title: "a member without partitions gets one empty assignment",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name] })
      yield* first.owns(1)
      const second = yield* join({ groupId, topics: [name] })
      yield* eventuallyTrue(() => assert.strictEqual(second.of("Assigned").length, 1))
      yield* quietTime
      assert.deepStrictEqual(
        second.of("Assigned").map(({ partitions }) => partitions),
        [[]]
      )
      assert.strictEqual(first.owned.size, 1)
    })
  },
  {
    title: "an assigned partition is not fetched before seek gives a position",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, ["a"])
      const probe = yield* join({ groupId: unique("group"), topics: [name], onAssigned: "wait" })
      yield* probe.owns(1)
      yield* quietTime
      assert.strictEqual(probe.of("Fetched").length, 0)
      yield* probe.session.seek({ topic: name, partition: 0 }, 0n)
      yield* probe.collects(1)
    })
  },
  {
    title: "one member reads several topics",
    run: Effect.gen(function* () {
      const first = yield* topic(2)
      const second = yield* topic(1)
      yield* publish(first, ["a"], 1)
      yield* publish(second, ["b"])
      const probe = yield* join({ groupId: unique("group"), topics: [first, second] })
      yield* probe.collects(2)
      assert.deepStrictEqual([...probe.values].sort(), ["a", "b"])
      assert.strictEqual(probe.owned.size, 3)
    })
  },
  {
    title: "each group gets every record",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, ["a", "b"])
      const first = yield* join({ groupId: unique("group"), topics: [name] })
      const second = yield* join({ groupId: unique("group"), topics: [name] })
      yield* Effect.all([first.collects(2), second.collects(2)])
      assert.deepStrictEqual(first.values, ["a", "b"])
      assert.deepStrictEqual(second.values, ["a", "b"])
    })
  },
  {
    title: "a topic that is created after the member joined is assigned to it",
    run: Effect.gen(function* () {
      const existing = yield* topic()
      const later = unique("topic")
      const administrator = yield* admin
      const probe = yield* join({ groupId: unique("group"), topics: [existing, later] })
      yield* probe.owns(1)
      yield* administrator.createTopics([{ topic: later, partitions: 2 }])
      yield* usable(administrator, later, 2)
      yield* probe.owns(3)
      yield* publish(later, ["a"], 1)
      yield* probe.collects(1)
    })
  },
  {
    title: "partitions that are added to a topic are assigned, and records of the others are not repeated",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const administrator = yield* admin
      yield* publish(name, texts("old", 5))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(5)
      yield* administrator.createPartitions(name, 3)
      yield* probe.owns(3)
      yield* eventually(publish(name, ["new"], 2))
      yield* publish(name, ["more"], 0)
      yield* probe.collects(7)
      yield* quietTime
      assert.deepStrictEqual([...probe.values].sort(), [...texts("old", 5), "more", "new"].sort())
    })
  },
  {
    title:
      "CLN-13: a topic that is deleted and made again is assigned anew, with another id and without the former offsets",
    run: remadeTopic("fetching")
  },
  {
    title: "CLN-13: a topic is deleted and made again while its partition is paused",
    run: remadeTopic("paused")
  },
  {
    title: "CLN-13: nothing of a topic that is made again during a short pause arrives under the former assignment",
    run: remadeTopic("paused shortly")
  },
  {
    title: "closing the scope of a session leaves the group and commits nothing",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      yield* publish(name, ["a"])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const probe = yield* join({ groupId, topics: [name] })
          yield* probe.collects(1)
        })
      )
      const administrator = yield* admin
      yield* eventually(
        Effect.map(administrator.describeGroup(groupId), ({ state, members }) => {
          assert.strictEqual(members.length, 0)
          assert.include(["Empty", "Dead"], state)
        }),
        "4 seconds"
      )
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  },
  {
    title: "closing a session ends its events",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const broker = yield* Broker.Broker
      const probe = yield* Effect.scoped(
        Effect.gen(function* () {
          const probe = yield* join({ groupId: unique("group"), topics: [name] })
          yield* probe.owns(1)
          return probe
        })
      )
      yield* eventually(Effect.sync(() => assert.isDefined(probe.end)))
      assert.isDefined(broker)
    })
  }
]
