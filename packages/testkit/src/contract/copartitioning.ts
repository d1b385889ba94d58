/** Outcomes: members share units, which are partition p of a topic and of the topics that go with it. */
import type { ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { assert } from "vitest"
import { eventuallyTrue, type Outcome, publish, quietTime, texts, topic, unique } from "./harness.ts"
import { join, type Probe } from "./probe.ts"

const keysOf = (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>): ReadonlyArray<string> =>
  partitions.map(({ topic, partition }) => `${topic}/${partition}`).sort()

/** All partitions of these numbers, one for each topic. */
const units = (topics: ReadonlyArray<string>, numbers: ReadonlyArray<number>): ReadonlyArray<string> =>
  topics.flatMap((topic) => numbers.map((partition) => `${topic}/${partition}`)).sort()

const numbersOf = (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>): ReadonlyArray<number> => [
  ...new Set(partitions.map(({ partition }) => partition))
]

/** A source topic and two that follow it, with options of a member that reads them as units. */
const family = Effect.fnUntraced(function* (partitions: number) {
  const topics = [yield* topic(partitions), yield* topic(partitions), yield* topic(partitions)]
  return { topics, options: { groupId: unique("group"), topics, copartitionedTopics: [topics] } }
})

/** Waits until the members own all units together, each so many, and each unit as a whole. */
const sharedUnits = (
  probes: ReadonlyArray<Probe>,
  topics: ReadonlyArray<string>,
  counts: ReadonlyArray<number>
): Effect.Effect<void> =>
  eventuallyTrue(() => {
    const numbers = probes.map(({ owned }) => numbersOf([...owned.values()]))
    assert.deepStrictEqual(numbers.map(({ length }) => length).sort(), [...counts].sort(), "units of each member")
    probes.forEach((probe, index) => {
      assert.deepStrictEqual(probe.partitions, units(topics, numbers[index]!))
    })
    assert.strictEqual(new Set(numbers.flat()).size, numbers.flat().length, "a unit is owned twice")
  })

const assertWhole = (topics: ReadonlyArray<string>, partitions: ReadonlyArray<ConsumerRecord.TopicPartition>): void =>
  assert.deepStrictEqual(keysOf(partitions), units(topics, numbersOf(partitions)))

/**
 * A group in which unit 1 is split, since the members read different topics and announce no units: `first` has both partitions of the source and follower/0, `second`
 * has follower/1. `first` is a static member named "first" with a scope of its own.
 */
const splitGroup = Effect.fnUntraced(function* (onRevoked: "hold" | "release") {
  const [source, follower] = [yield* topic(2), yield* topic(2)]
  const groupId = unique("group")
  const topics = [source, follower]
  const timeouts = { sessionTimeout: "12 seconds", rebalanceTimeout: "20 seconds" } as const
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
  const first = yield* Scope.provide(
    join({ groupId, topics, onRevoked: "release", groupInstanceId: "first", ...timeouts }),
    scope
  )
  yield* first.owns(4)
  const second = yield* join({ groupId, topics: [follower], onRevoked, ...timeouts })
  yield* eventuallyTrue(() => {
    assert.deepStrictEqual(first.partitions, [`${follower}/0`, `${source}/0`, `${source}/1`].sort())
    assert.deepStrictEqual(second.partitions, [`${follower}/1`])
  })
  const options = { groupId, topics, copartitionedTopics: [topics], ...timeouts }
  return { source, follower, options, first, second, closeFirst: Scope.close(scope, Exit.void) }
})

/** The broker knows no units. */
const byMembers: Outcome["needs"] = ({ assignment }) => assignment === "members"

export const copartitioning: ReadonlyArray<Outcome> = [
  {
    title:
      "PKO-04: one, two and three members: partition p of all topics of a unit has one owner, and units are shared evenly",
    needs: byMembers,
    run: Effect.gen(function* () {
      const { topics, options } = yield* family(5)
      const members: Array<Probe> = []
      for (const counts of [[5], [2, 3], [1, 2, 2]]) {
        members.push(yield* join(options))
        yield* sharedUnits(members, topics, counts)
      }
    })
  },
  {
    title: "PKO-04: while members come and go, a unit is revoked as a whole, and arrives in one report",
    needs: ({ assignment, handover }) => assignment === "members" && handover === "released",
    run: Effect.gen(function* () {
      const { topics, options } = yield* family(4)
      const first = yield* join(options)
      yield* sharedUnits([first], topics, [4])
      const second = yield* join(options)
      yield* sharedUnits([first, second], topics, [2, 2])
      const third = yield* Effect.scoped(
        Effect.gen(function* () {
          const third = yield* join(options)
          yield* sharedUnits([first, second, third], topics, [1, 1, 2])
          return third
        })
      )
      yield* sharedUnits([first, second], topics, [2, 2])
      for (const probe of [first, second, third]) {
        for (const { partitions } of [...probe.of("Assigned"), ...probe.of("Revoked")]) assertWhole(topics, partitions)
      }
    })
  },
  {
    title:
      "PKO-04: members with units join others without: a unit waits until nobody else holds a part, and what stays is not interrupted",
    needs: ({ assignment, staying, handover, staticMembership }) =>
      assignment === "members" &&
      staying === "untouched" &&
      handover === "released" &&
      staticMembership === "supported",
    run: Effect.gen(function* () {
      const { source, follower, first, second, options } = yield* splitGroup("hold")
      const third = yield* join(options)
      yield* eventuallyTrue(() => {
        assert.deepStrictEqual(first.partitions, units([source, follower], [0]))
        assert.isAbove(second.of("Revoked").length, 0)
      })
      yield* publish(source, texts("source", 3), 0)
      yield* publish(follower, texts("follower", 3), 0)
      yield* first.collects(6)
      yield* quietTime
      assert.strictEqual(third.owned.size, 0)
      for (const revoked of second.of("Revoked")) yield* second.release(revoked)
      yield* eventuallyTrue(() => assert.deepStrictEqual(third.partitions, units([source, follower], [1])))
      const arrivals = third.of("Assigned").filter(({ partitions }) => partitions.length > 0)
      assert.deepStrictEqual(
        arrivals.map(({ partitions }) => keysOf(partitions)),
        [units([source, follower], [1])]
      )
      const mentioned = [...first.of("Revoked"), ...first.of("Lost")].flatMap(({ partitions }) => keysOf(partitions))
      assert.deepStrictEqual([...new Set(mentioned)].sort(), [`${follower}/1`, `${source}/1`].sort())
      assert.deepStrictEqual(first.values.toSorted(), [...texts("follower", 3), ...texts("source", 3)])
    })
  },
  {
    title: "PKO-04: a static member that comes back with units gets them whole, although nobody joins or leaves",
    needs: ({ assignment, staticMembership }) => assignment === "members" && staticMembership === "supported",
    run: Effect.gen(function* () {
      const { source, follower, options, closeFirst } = yield* splitGroup("release")
      yield* closeFirst
      const back = yield* join({ ...options, groupInstanceId: "first" })
      yield* eventuallyTrue(() => assert.deepStrictEqual(back.partitions, units([source, follower], [0, 1])))
    })
  },
  {
    title: "PKO-04: a partition number that the source does not have is assigned by its own topic",
    needs: byMembers,
    run: Effect.gen(function* () {
      const [source, follower] = [yield* topic(1), yield* topic(4)]
      const topics = [source, follower]
      const options = { groupId: unique("group"), topics, copartitionedTopics: [topics] }
      const members = [yield* join(options), yield* join(options)]
      yield* eventuallyTrue(() => {
        const all = members.flatMap(({ partitions }) => partitions)
        assert.deepStrictEqual(all.toSorted(), [`${source}/0`, ...units([follower], [0, 1, 2, 3])].sort())
        for (const { partitions } of members) {
          assert.strictEqual(partitions.includes(`${source}/0`), partitions.includes(`${follower}/0`))
          assert.isAbove(partitions.length, 1)
        }
      })
    })
  }
]
