/** Outcomes: partitions move between members. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert } from "vitest"
import {
  admin,
  assertTag,
  eventually,
  eventuallyTrue,
  failure,
  type Outcome,
  producer,
  publish,
  quietTime,
  record,
  texts,
  topic,
  unique
} from "./harness.ts"
import { join, type Probe, shared } from "./probe.ts"

const fill = (name: string, partitions: number, prefix: string, count: number) =>
  Effect.forEach(
    Array.from({ length: partitions }, (_, partition) => partition),
    (partition) => publish(name, texts(`${prefix}-p${partition}`, count), partition),
    { discard: true }
  )

const all = (partitions: number, prefix: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: partitions }, (_, partition) => texts(`${prefix}-p${partition}`, count)).flat()

const sorted = (probes: ReadonlyArray<Probe>): ReadonlyArray<string | null> =>
  probes.flatMap((probe) => probe.values).sort()

export const rebalance: ReadonlyArray<Outcome> = [
  {
    title: "REB-12: a second member gets half of the partitions, and drained and committed records are not repeated",
    run: Effect.gen(function* () {
      const name = yield* topic(4)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name] })
      yield* first.owns(4)
      yield* fill(name, 4, "before", 5)
      yield* first.collects(20)
      const second = yield* join({ groupId, topics: [name] })
      yield* shared([first, second], [2, 2])
      yield* fill(name, 4, "after", 5)
      yield* eventuallyTrue(() => assert.strictEqual(sorted([first, second]).length, 40))
      yield* quietTime
      assert.deepStrictEqual(sorted([first, second]), [...all(4, "before", 5), ...all(4, "after", 5)].sort())
    })
  },
  {
    title:
      "REB-11: partitions that stay are not mentioned, and go on without a repeat or a gap although nothing is committed",
    needs: ({ staying }) => staying === "untouched",
    run: Effect.gen(function* () {
      const name = yield* topic(4)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name], onRevoked: "release" })
      yield* first.owns(4)
      yield* fill(name, 4, "before", 3)
      yield* first.collects(12)
      const second = yield* join({ groupId, topics: [name], onAssigned: "wait" })
      yield* shared([first, second], [2, 2])
      const staying = first.partitions
      assert.strictEqual(first.of("Assigned").length, 1)
      const mentioned = [...first.of("Revoked"), ...first.of("Lost")].flatMap(({ partitions }) =>
        partitions.map((at) => `${at.topic}/${at.partition}`)
      )
      for (const key of staying) assert.notInclude(mentioned, key)
      yield* fill(name, 4, "after", 3)
      yield* first.collects(18)
      yield* quietTime
      const expected = staying.flatMap((key) => texts(`after-p${key.split("/")[1]}`, 3))
      assert.deepStrictEqual(first.values.slice(12).toSorted(), expected.toSorted())
    })
  },
  {
    title:
      "a partition's generation stays what it was assigned with, and commits under it are accepted after a rebalance",
    needs: ({ staying }) => staying === "untouched",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name] })
      yield* first.owns(2)
      const second = yield* join({ groupId, topics: [name] })
      yield* shared([first, second], [1, 1])
      const partition = [...first.owned.values()][0]!.partition
      yield* eventually(first.commit(name, partition, 3n))
      yield* publish(name, ["a"], partition)
      yield* first.collects(1)
      assert.strictEqual(first.of("Fetched").at(-1)?.chunk.generation, first.own(name, partition).generation)
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [
        { topic: name, partition, offset: 3n, metadata: "" }
      ])
    })
  },
  {
    title:
      "Revoked names the generation in which the partitions were assigned, and nothing arrives for them afterwards",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name] })
      yield* first.owns(2)
      const { generation } = first.own(name)
      const second = yield* join({ groupId, topics: [name] })
      yield* shared([first, second], [1, 1])
      yield* fill(name, 2, "v", 5)
      yield* second.collects(5)
      yield* first.collects(5)
      const at = first.events.findIndex((event) => event._tag === "Revoked")
      const revoked = first.of("Revoked")[0]
      assert.strictEqual(revoked?.generation, generation)
      const gone = second.partitions
      for (const event of first.events.slice(at)) {
        if (event._tag === "Fetched") assert.notInclude(gone, `${event.chunk.topic}/${event.chunk.partition}`)
      }
    })
  },
  {
    title: "REB-05: a revoked partition still accepts commits, and moves only after release",
    needs: ({ handover }) => handover === "released",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      yield* fill(name, 2, "v", 4)
      const first = yield* join({ groupId, topics: [name], onRevoked: "hold", rebalanceTimeout: "20 seconds" })
      yield* first.collects(8)
      const second = yield* join({ groupId, topics: [name] })
      yield* eventuallyTrue(() => assert.isAbove(first.of("Revoked").length, 0))
      yield* quietTime
      assert.strictEqual(second.owned.size, 0)
      const [revoked] = first.of("Revoked")
      yield* first.commitCollected(revoked!.partitions)
      yield* first.release(revoked!)
      yield* shared([first, second], [1, 1])
      yield* quietTime
      assert.deepStrictEqual(second.records, [])
      assert.strictEqual([...second.owned.values()][0]?.committed, 4n)
    })
  },
  {
    title: "OFF-09: commits for a partition that was released are refused",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name] })
      yield* first.owns(2)
      const { generation } = first.own(name)
      const second = yield* join({ groupId, topics: [name] })
      yield* shared([first, second], [1, 1])
      const [moved] = [...second.owned.values()]
      const late = { topic: name, partition: moved!.partition, generation, offset: 1n }
      assertTag(yield* failure(first.session.commit([late])), "StaleAssignment")
      const administrator = yield* admin
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  },
  {
    title: "OFF-09: a member that does not release in time loses the partitions",
    needs: ({ handover }) => handover === "released",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name], onRevoked: "hold", rebalanceTimeout: "3 seconds" })
      yield* first.owns(2)
      const second = yield* join({ groupId, topics: [name] })
      yield* eventuallyTrue(() => assert.isAbove(first.of("Lost").length, 0))
      const [revoked] = first.of("Revoked")
      const { generation, partitions } = first.of("Lost")[0]!
      const lost = first.of("Lost").flatMap((event) => event.partitions)
      assert.includeDeepMembers([...lost], [...(revoked?.partitions ?? [])])
      yield* eventuallyTrue(() => assert.isAbove(second.owned.size, 0))
      const late = partitions.map(({ topic, partition }) => ({ topic, partition, generation, offset: 1n }))
      assertTag(yield* failure(first.session.commit(late)), "StaleAssignment")
    })
  },
  {
    title: "REB-12: when a member leaves, the others get its partitions and go on from its commits",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      yield* fill(name, 2, "before", 3)
      const first = yield* join({ groupId, topics: [name] })
      yield* first.collects(6)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const second = yield* join({ groupId, topics: [name] })
          yield* shared([first, second], [1, 1])
          const [owned] = [...second.owned.values()]
          yield* publish(name, ["mine"], owned!.partition)
          yield* second.collects(1)
          yield* eventually(second.commit(name, owned!.partition, 4n))
        })
      )
      yield* first.owns(2)
      yield* quietTime
      yield* fill(name, 2, "after", 1)
      yield* first.collects(8)
      yield* quietTime
      assert.deepStrictEqual(first.values.toSorted(), [...all(2, "before", 3), ...all(2, "after", 1)].sort())
    })
  },
  {
    title: "members with different subscriptions get partitions of their own topics only",
    run: Effect.gen(function* () {
      const [left, right] = [yield* topic(4), yield* topic(1)]
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [left] })
      const second = yield* join({ groupId, topics: [right] })
      yield* shared([first, second], [4, 1])
      yield* eventuallyTrue(() => {
        assert.deepStrictEqual(
          first.partitions,
          [0, 1, 2, 3].map((partition) => `${left}/${partition}`)
        )
        assert.deepStrictEqual(second.partitions, [`${right}/0`])
      })
      yield* publish(left, ["l"], 1)
      yield* publish(right, ["r"], 0)
      yield* Effect.all([first.collects(1), second.collects(1)])
      assert.deepStrictEqual([first.values, second.values], [["l"], ["r"]])
    })
  },
  {
    title: "a member of a rolling change that subscribes to one topic more gets that topic alone",
    run: Effect.gen(function* () {
      const [old, added] = [yield* topic(2), yield* topic(1)]
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [old] })
      yield* first.owns(2)
      const second = yield* join({ groupId, topics: [old, added] })
      yield* eventuallyTrue(() => {
        assert.include(second.partitions, `${added}/0`)
        assert.notInclude(first.partitions, `${added}/0`)
        assert.strictEqual(first.owned.size + second.owned.size, 3)
      })
    })
  },
  {
    title: "three members and more members than partitions: nobody owns a partition twice, and nothing is lost",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name] })
      const second = yield* join({ groupId, topics: [name] })
      const third = yield* join({ groupId, topics: [name] })
      const members = [first, second, third]
      yield* shared(members, [0, 1, 1])
      yield* fill(name, 2, "v", 10)
      yield* eventuallyTrue(() => assert.isAtLeast(sorted(members).length, 20))
      yield* quietTime
      assert.deepStrictEqual([...new Set(sorted(members))], all(2, "v", 10).toSorted())
    })
  },
  {
    title: "REB-12: while records are published and members join, every record is delivered exactly once",
    needs: ({ handover }) => handover === "released",
    run: Effect.gen(function* () {
      const name = yield* topic(4)
      const groupId = unique("group")
      const { send } = yield* producer
      const members = [yield* join({ groupId, topics: [name] })]
      yield* members[0]!.owns(4)
      const publishing = yield* Effect.forkChild(
        Effect.forEach(texts("v", 200), (value, index) =>
          Effect.andThen(send(record(name, value, { partition: index % 4 })), Effect.sleep("25 millis"))
        )
      )
      for (const counts of [
        [2, 2],
        [1, 1, 2]
      ]) {
        members.push(yield* join({ groupId, topics: [name] }))
        yield* shared(members, counts)
      }
      yield* Fiber.join(publishing)
      yield* eventuallyTrue(() => assert.isAtLeast(sorted(members).length, 200))
      yield* quietTime
      assert.deepStrictEqual(sorted(members), texts("v", 200).toSorted())
    })
  }
]
