import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { assign, type Candidate, checkOptions } from "../src/Adapter.ts"
import * as ConsumerRecord from "../src/ConsumerRecord.ts"

const topics = ["a", "b", "c"]

const partitionsOf = (counts: ReadonlyArray<number>): ReadonlyArray<ConsumerRecord.TopicPartition> =>
  counts.flatMap((count, index) =>
    Array.from({ length: count }, (_, partition) => ({ topic: topics[index]!, partition }))
  )

const world = fc.record({
  counts: fc.array(fc.nat(6), { minLength: 3, maxLength: 3 }),
  subscriptions: fc.array(fc.subarray(topics, { minLength: 1 }), { minLength: 1, maxLength: 5 })
})

const candidates = (
  subscriptions: ReadonlyArray<ReadonlyArray<string>>,
  before: ReadonlyMap<string, string> = new Map()
): ReadonlyArray<Candidate> =>
  subscriptions.map((subscribed, index) => {
    const memberId = `m${index}`
    const holds = new Set([...before].flatMap(([key, id]) => (id === memberId ? [key] : [])))
    return { memberId, topics: new Set(subscribed), holds }
  })

const loads = (target: ReadonlyMap<string, string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const memberId of target.values()) counts.set(memberId, (counts.get(memberId) ?? 0) + 1)
  return counts
}

describe("assign", () => {
  it("assigns every subscribed partition, and only to a subscriber", () => {
    fc.assert(
      fc.property(world, ({ counts, subscriptions }) => {
        const members = candidates(subscriptions)
        const target = assign(members, partitionsOf(counts))
        for (const { topic, partition } of partitionsOf(counts)) {
          const memberId = target.get(ConsumerRecord.partitionKey(topic, partition))
          const subscribers = members.filter((member) => member.topics.has(topic))
          if (subscribers.length === 0) assert.isUndefined(memberId)
          else
            assert.include(
              subscribers.map((member) => member.memberId),
              memberId
            )
        }
      })
    )
  })

  it("spreads evenly among members that subscribe to the same topics", () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: 1, max: 6 }), (partitions, members) => {
        const target = assign(candidates(Array.from({ length: members }, () => ["a"])), partitionsOf([partitions]))
        const counts = Array.from({ length: members }, (_, index) => loads(target).get(`m${index}`) ?? 0)
        assert.isAtMost(Math.max(...counts) - Math.min(...counts), 1)
      })
    )
  })

  it("RTY-18 each topic is spread evenly when members join or leave: a new member gets its share of every topic", () => {
    const all = fc.array(fc.nat(8), { minLength: 3, maxLength: 3 })
    fc.assert(
      fc.property(all, fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 5 }), (counts, sizes) => {
        let before: ReadonlyMap<string, string> = new Map()
        for (const size of sizes) {
          before = assign(
            candidates(
              Array.from({ length: size }, () => topics),
              before
            ),
            partitionsOf(counts)
          )
          const perTopic = (topic: string) =>
            Array.from(
              { length: size },
              (_, index) =>
                [...before].filter(([key, member]) => member === `m${index}` && key.startsWith(`${topic}/`)).length
            )
          for (const topic of topics) {
            assert.isAtMost(Math.max(...perTopic(topic)) - Math.min(...perTopic(topic)), 1, topic)
          }
          const totals = Array.from({ length: size }, (_, index) => loads(before).get(`m${index}`) ?? 0)
          assert.isAtMost(Math.max(...totals) - Math.min(...totals), 1)
        }
      })
    )
  })

  it("REB-11: moves nothing when nothing changed, and little when a member joins", () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: 1, max: 6 }), (partitions, members) => {
        const all = partitionsOf([partitions])
        const subscriptions = Array.from({ length: members }, () => ["a"])
        const before = assign(candidates(subscriptions), all)
        assert.deepStrictEqual(assign(candidates(subscriptions, before), all), before)
        const after = assign(candidates([...subscriptions, ["a"]], before), all)
        const moved = [...after].filter(([key, memberId]) => before.get(key) !== memberId)
        assert.isAtMost(moved.length, Math.ceil(partitions / (members + 1)))
      })
    )
  })

  it("PKO-04 members with different lists of topics that go together: their order decides nothing, and no topic has two sources", () => {
    const family = fc.uniqueArray(fc.constantFrom(...topics), { minLength: 1 })
    const lists = fc.array(fc.array(family, { maxLength: 2 }), { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), lists, (count, announced) => {
        const all = partitionsOf([count, count, count])
        const members = candidates(announced.map(() => topics))
        const target = (lists: typeof announced) =>
          assign(
            members.map((member, index) => ({ ...member, copartitionedTopics: lists[index]! })),
            all
          )
        const owners = target(announced)
        assert.strictEqual(owners.size, 3 * count)
        assert.deepStrictEqual(target(announced.toReversed()), owners)
      })
    )
  })
})

it.effect("PKO-04 the port refuses topics that go together twice, and what is no list of lists", () =>
  Effect.gen(function* () {
    const optionsOf = (copartitionedTopics: unknown) => ({
      groupId: "billing",
      topics: ["a", "b"],
      copartitionedTopics
    })
    yield* checkOptions("consumer", optionsOf([["a", "b"], ["c"], []]))
    for (const wrong of [["a", "b"], [["a"], ["b", "a"]], [["a", "a"]], [[1]], "a", {}]) {
      const { detail } = yield* Effect.flip(checkOptions("consumer", optionsOf(wrong)))
      assert.include(detail, "allowed is lists of topics, none of which stands twice")
    }
  })
)
