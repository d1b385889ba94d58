/** Random groups whose members share units, through many changes: joins, leaves, growth, and leaders of a release that assigns by topic. */
import { assert, it } from "@effect/vitest"
import { ConsumerRecord } from "@eventbus/core"
import * as fc from "fast-check"
import { assign, type Member } from "../../src/internal/group/assigner.ts"

const families = [
  ["a", "a.retry-1", "a.retry-2", "a.retry-3"],
  ["b", "b.retry-1"]
]
const sources = new Map(families.flatMap((family) => family.map((topic) => [topic, family[0]!])))
const topics = [...sources.keys(), "single"]

const key = ({ topic, partition }: ConsumerRecord.TopicPartition) => ConsumerRecord.partitionKey(topic, partition)

const change = fc.oneof(
  fc.record({
    _tag: fc.constant("join" as const),
    rank: fc.nat(999),
    reads: fc.constantFrom("all", "a", "fewer tiers"),
    isOld: fc.boolean()
  }),
  fc.record({ _tag: fc.constant("leave" as const), which: fc.nat() }),
  fc.record({
    _tag: fc.constant("grow" as const),
    topic: fc.constantFrom(...topics),
    by: fc.integer({ min: 1, max: 3 })
  }),
  fc.record({
    _tag: fc.constant("growFamily" as const),
    family: fc.constantFrom(...families),
    by: fc.integer({ min: 1, max: 3 })
  })
)

const world = fc.record({
  counts: fc.array(fc.nat(8), { minLength: topics.length, maxLength: topics.length }),
  alike: fc.boolean(),
  changes: fc.array(change, { minLength: 2, maxLength: 8 }),
  /** So many changes are led by a member of an older release. */
  oldLeaders: fc.nat(3)
})

type Change = typeof change extends fc.Arbitrary<infer A> ? A : never

const reading = { all: topics, a: families[0]!, "fewer tiers": ["a", "a.retry-1", "b", "b.retry-1", "single"] }

/** A member of an older release announces no units. */
const memberOf = (rank: number, index: number, reads: keyof typeof reading, isOld: boolean): Member => ({
  memberId: `m${String(rank).padStart(3, "0")}-${index}`,
  topics: reading[reads],
  owned: [],
  generation: -1,
  copartitionedTopics: isOld ? [] : families
})

const applied = (group: ReadonlyArray<Member>, counts: Map<string, number>, change: Change, index: number) => {
  const grow = (topic: string, by: number) => counts.set(topic, counts.get(topic)! + by)
  switch (change._tag) {
    case "join":
      return [...group, memberOf(change.rank, index, change.reads, change.isOld)]
    case "leave":
      return group.length === 1 ? group : group.filter((_, at) => at !== change.which % group.length)
    case "grow":
      grow(change.topic, change.by)
      return group
    case "growFamily": {
      const most = Math.max(...change.family.map((topic) => counts.get(topic)!)) + change.by
      for (const topic of change.family) counts.set(topic, most)
      return group
    }
  }
}

const owners = (group: ReadonlyArray<Member>): ReadonlyMap<string, string> =>
  new Map(group.flatMap(({ memberId, owned }) => owned.map((at) => [key(at), memberId])))

const unitOf = (at: ConsumerRecord.TopicPartition, counts: ReadonlyMap<string, number>): string => {
  const source = sources.get(at.topic) ?? at.topic
  return key({ topic: at.partition < counts.get(source)! ? source : at.topic, partition: at.partition })
}

/** The members after a round, when they have released the partitions that they were not given. */
const next = (
  group: ReadonlyArray<Member>,
  counts: ReadonlyMap<string, number>,
  generation: number,
  byTopic: boolean
) => {
  const told = byTopic ? group.map((member) => ({ ...member, copartitionedTopics: [] })) : group
  const { assignments, incomplete } = assign(told, counts)
  const after = group.map((member) => ({ ...member, owned: assignments.get(member.memberId)!, generation }))
  return {
    after,
    isSettled: !incomplete && after.every(({ owned }, index) => owned.length === group[index]!.owned.length)
  }
}

/** A part arrives only while no other member holds a part of its unit; of a unit that one member has whole, all parts leave or none. */
const assertWholeSteps = (
  before: ReadonlyArray<Member>,
  after: ReadonlyArray<Member>,
  counts: ReadonlyMap<string, number>
) => {
  const holders = Map.groupBy(
    before.flatMap(({ memberId, owned }) => owned.map((at) => ({ memberId, at }))),
    ({ at }) => unitOf(at, counts)
  )
  const beforeOwners = owners(before)
  for (const { memberId, owned } of after) {
    for (const at of owned) {
      if (beforeOwners.get(key(at)) === memberId) continue
      for (const other of holders.get(unitOf(at, counts)) ?? []) {
        assert.strictEqual(other.memberId, memberId, `${key(at)} arrives too early`)
      }
    }
  }
  const kept = owners(after)
  for (const [unit, parts] of holders) {
    const [{ memberId } = { memberId: "" }] = parts
    if (parts.some((part) => part.memberId !== memberId)) continue
    const stays = parts.map(({ at }) => kept.get(key(at)) === memberId)
    assert.strictEqual(new Set(stays).size, 1, `${unit} leaves in parts`)
  }
}

const assertUnits = (group: ReadonlyArray<Member>, counts: ReadonlyMap<string, number>) => {
  const owner = owners(group)
  const byId = new Map(group.map((member) => [member.memberId, member]))
  for (const topic of topics) {
    const readers = group.filter((member) => member.topics.includes(topic))
    for (let partition = 0; partition < counts.get(topic)!; partition++) {
      const own = owner.get(key({ topic, partition }))
      assert.strictEqual(own !== undefined, readers.length > 0, `${topic}/${partition} is left over`)
      const ofSource = owner.get(key({ topic: sources.get(topic) ?? topic, partition }))
      if (ofSource === undefined || !byId.get(ofSource)!.topics.includes(topic)) continue
      assert.strictEqual(own, ofSource, `${topic}/${partition} is split from its source`)
    }
    if ((sources.get(topic) ?? topic) !== topic || readers.length === 0) continue
    const loads = readers.map(({ owned }) => owned.filter((at) => at.topic === topic).length)
    assert.isAtMost(Math.max(...loads) - Math.min(...loads), 1, `${topic} is unbalanced`)
  }
}

it("PKO-04 units are whole and balanced after at most three rounds, and what stays is not interrupted", () =>
  fc.assert(
    fc.property(world, ({ alike, changes, counts: initial, oldLeaders }) => {
      const counts = new Map(topics.map((topic, index) => [topic, initial[index]!]))
      let group: ReadonlyArray<Member> = [memberOf(500, 0, "all", false)]
      let generation = 0
      changes.forEach((change, index) => {
        const one = alike && change._tag === "join" ? { ...change, reads: "all" as const } : change
        group = applied(group, counts, one, index + 1)
        const byTopic = index < oldLeaders || group.every(({ copartitionedTopics }) => copartitionedTopics.length === 0)
        const start = owners(group)
        const held = [start]
        for (let rounds = 1; ; rounds++) {
          assert.isAtMost(rounds, 3, "rounds")
          const { after, isSettled } = next(group, counts, generation++, byTopic)
          if (!byTopic && alike) assertWholeSteps(group, after, counts)
          group = after
          held.push(owners(group))
          if (isSettled) break
        }
        for (const [at, owner] of owners(group)) {
          if (start.get(at) === owner)
            assert.isTrue(
              held.every((round) => round.get(at) === owner),
              `${at} is interrupted`
            )
        }
        if (!byTopic) assertUnits(group, counts)
      })
    }),
    { numRuns: 500 }
  ))
