import { assert, describe, it } from "@effect/vitest"
import { ConsumerRecord } from "@eventbus/core"
import * as fc from "fast-check"
import { assign, type Member } from "../../src/internal/group/assigner.ts"

const topics = ["orders", "payments", "__proto__"]

const key = ({ topic, partition }: ConsumerRecord.TopicPartition) => ConsumerRecord.partitionKey(topic, partition)

/** A group in any state. Its claims may be stale, duplicate or nonsense. */
const group = fc.array(
  fc.record({
    topics: fc.uniqueArray(fc.constantFrom(...topics), { minLength: 1 }),
    owned: fc.uniqueArray(fc.record({ topic: fc.constantFrom(...topics), partition: fc.nat(9) }), { selector: key }),
    generation: fc.integer({ min: -1, max: 5 })
  }),
  { minLength: 1, maxLength: 6 }
)
const counts = fc.record({ orders: fc.nat(10), payments: fc.nat(10), proto: fc.nat(10) })
const named = (members: ReadonlyArray<Omit<Member, "memberId" | "copartitionedTopics">>) =>
  members.map((member, i): Member => ({ ...member, memberId: `member-${i}`, copartitionedTopics: [] }))
const countsOf = ({ orders, payments, proto }: { orders: number; payments: number; proto: number }) =>
  new Map([
    ["orders", orders],
    ["payments", payments],
    ["__proto__", proto]
  ])
const given = (property: (members: ReadonlyArray<Member>, partitionCounts: ReadonlyMap<string, number>) => void) =>
  fc.assert(fc.property(group, counts, (members, count) => property(named(members), countsOf(count))))

/** The members after a round, when they have released the partitions that they were not given. */
const next = (members: ReadonlyArray<Member>, partitionCounts: ReadonlyMap<string, number>, generation: number) => {
  const { assignments } = assign(members, partitionCounts)
  return members.map((member): Member => ({ ...member, owned: assignments.get(member.memberId) ?? [], generation }))
}

const subscribable = (members: ReadonlyArray<Member>, partitionCounts: ReadonlyMap<string, number>) =>
  topics
    .filter((topic) => members.some((member) => member.topics.includes(topic)))
    .reduce((sum, topic) => sum + (partitionCounts.get(topic) ?? 0), 0)

describe("assigner", () => {
  it("REB-12: a partition that exists goes to at most one member, which subscribes to its topic", () =>
    given((members, partitionCounts) => {
      const seen = new Set<string>()
      for (const [memberId, partitions] of assign(members, partitionCounts).assignments) {
        for (const partition of partitions) {
          assert.isFalse(seen.has(key(partition)))
          seen.add(key(partition))
          assert.isBelow(partition.partition, partitionCounts.get(partition.topic) ?? 0)
          assert.isTrue(members.find((member) => member.memberId === memberId)!.topics.includes(partition.topic))
        }
      }
    }))

  it("REB-11: a partition that another member owns is assigned to nobody in this round", () =>
    given((members, partitionCounts) => {
      const newest = new Map<string, number>()
      for (const member of members) {
        for (const owned of member.owned) {
          if (!member.topics.includes(owned.topic)) continue
          newest.set(key(owned), Math.max(newest.get(key(owned)) ?? -2, member.generation))
        }
      }
      for (const [memberId, partitions] of assign(members, partitionCounts).assignments) {
        const member = members.find((one) => one.memberId === memberId)!
        const owned = new Set(member.owned.map(key))
        for (const partition of partitions) {
          if (newest.has(key(partition))) assert.isTrue(owned.has(key(partition)))
        }
      }
    }))

  it("when two members claim a partition, the claim of the older generation is void", () => {
    const owned = [{ topic: "orders", partition: 0 }]
    const { assignments } = assign(
      [
        { memberId: "old", topics: ["orders"], owned, generation: 3, copartitionedTopics: [] },
        { memberId: "new", topics: ["orders"], owned, generation: 4, copartitionedTopics: [] }
      ],
      new Map([["orders", 1]])
    )
    assert.deepStrictEqual(assignments.get("new"), owned)
    assert.deepStrictEqual(assignments.get("old"), [])
  })

  it("REB-12: with equal subscriptions two rounds assign every partition, and a third changes nothing", () =>
    given((members, partitionCounts) => {
      const alike = members.map((member): Member => ({ ...member, topics }))
      const settled = next(next(alike, partitionCounts, 6), partitionCounts, 7)
      const owned = settled.flatMap((member) => member.owned.map(key))
      assert.strictEqual(owned.length, subscribable(alike, partitionCounts))
      const third = assign(settled, partitionCounts)
      assert.isFalse(third.incomplete)
      for (const member of settled) {
        assert.sameMembers((third.assignments.get(member.memberId) ?? []).map(key), member.owned.map(key))
      }
    }))

  it("REB-12: with any subscriptions a few rounds assign every partition", () =>
    given((members, partitionCounts) => {
      let group = members
      for (let round = 6; round < 10; round++) group = next(group, partitionCounts, round)
      assert.isFalse(assign(group, partitionCounts).incomplete)
      assert.strictEqual(group.flatMap(({ owned }) => owned).length, subscribable(members, partitionCounts))
    }))

  it("members with equal subscriptions get the same number of partitions, within one", () =>
    given((members, partitionCounts) => {
      const alike = members.map((member): Member => ({ ...member, topics }))
      const settled = next(next(alike, partitionCounts, 6), partitionCounts, 7)
      const loads = settled.map((member) => member.owned.length)
      assert.isAtMost(Math.max(...loads) - Math.min(...loads), 1)
    }))

  it("REB-11: when a member joins or leaves a balanced group, as few partitions as possible move", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.nat(30), (size, partitions) => {
        const partitionCounts = new Map([["orders", partitions]])
        const fresh = (count: number) =>
          named(Array.from({ length: count }, () => ({ topics: ["orders"], owned: [], generation: 0 })))
        const balanced = next(next(fresh(size), partitionCounts, 1), partitionCounts, 2)
        const late = { memberId: "late", topics: ["orders"], owned: [], generation: -1, copartitionedTopics: [] }
        const grown = [...balanced, late]
        const kept = next(grown, partitionCounts, 3)
        const moved = balanced.reduce((sum, member, i) => sum + member.owned.length - kept[i]!.owned.length, 0)
        assert.isAtMost(moved, Math.ceil(partitions / (size + 1)))
        const left = balanced.slice(1)
        const stayed = next(left, partitionCounts, 3)
        left.forEach((member, i) => {
          assert.includeMembers(stayed[i]!.owned.map(key), member.owned.map(key))
        })
      })
    ))
})
