import { assert, describe, it } from "@effect/vitest"
import { BrokerAssignment } from "../../src/internal/group/brokerAssignment.ts"
import { Ownership } from "../../src/internal/group/ownership.ts"

const [first, second] = ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"]

const make = () => {
  const ownership = new Ownership()
  const assignment = new BrokerAssignment(ownership)
  let generation = 0
  const take = (ids: Readonly<Record<string, string>>) => {
    const taken = assignment.take(new Map(Object.entries(ids)))
    for (const owned of ownership.assign(++generation, taken).added) owned.phase = "waiting"
    return taken.map(({ topic, partition }) => `${topic}/${partition}`)
  }
  return { ownership, assignment, take }
}

describe("an assignment of the broker", () => {
  it("CLN-10 is taken by the names of topics, and reported by their ids in one order", () => {
    const { assignment, take } = make()
    assignment.set([
      { topicId: second, partitions: [1, 0] },
      { topicId: first, partitions: [2] }
    ])
    assert.isTrue(assignment.isPending)
    assert.deepStrictEqual(take({ t: first, u: second }), ["u/1", "u/0", "t/2"])
    assert.isFalse(assignment.isPending)
    assert.deepStrictEqual(assignment.owned(), [
      { topicId: first, partitions: [2] },
      { topicId: second, partitions: [0, 1] }
    ])
  })

  it("CLN-10 a partition is reported until it is released", () => {
    const { assignment, ownership, take } = make()
    assignment.set([{ topicId: first, partitions: [0, 1] }])
    take({ t: first })
    assignment.set([{ topicId: first, partitions: [0] }])
    assert.deepStrictEqual(take({ t: first }), ["t/0"])
    assert.deepStrictEqual(assignment.owned(), [{ topicId: first, partitions: [0, 1] }])
    ownership.remove([ownership.get({ topic: "t", partition: 1 })!])
    assert.deepStrictEqual(assignment.owned(), [{ topicId: first, partitions: [0] }])
  })

  it("CLN-10 where no node knows an id, what is owned stays, and the rest waits", () => {
    const { assignment, take } = make()
    assignment.set([{ topicId: first, partitions: [0] }])
    take({ t: first })
    assignment.set([{ topicId: first, partitions: [0, 1] }])
    assert.deepStrictEqual(take({}), ["t/0"])
    assert.isTrue(assignment.isPending)
    assert.deepStrictEqual(take({ t: first }), ["t/0", "t/1"])
    assert.isFalse(assignment.isPending)
  })

  it("CLN-13 a partition of a topic that was made again is taken once that of the former topic is released", () => {
    const { assignment, ownership, take } = make()
    assignment.set([{ topicId: first, partitions: [0] }])
    take({ t: first })
    assignment.set([{ topicId: second, partitions: [0] }])
    assert.deepStrictEqual(take({ t: second }), [])
    assert.isTrue(assignment.isPending)
    assert.deepStrictEqual(assignment.owned(), [{ topicId: first, partitions: [0] }])
    ownership.remove(ownership.all())
    assert.deepStrictEqual(take({ t: second }), ["t/0"])
    assert.deepStrictEqual(assignment.owned(), [{ topicId: second, partitions: [0] }])
  })

  it("CLN-10 CLN-13 what the session has lost by itself is pending, and taken again: the broker assigns nothing twice", () => {
    const { assignment, ownership, take } = make()
    assignment.set([{ topicId: first, partitions: [0, 1] }])
    take({ t: first })
    assert.isFalse(assignment.isPending)
    ownership.remove(ownership.all())
    assert.isTrue(assignment.isPending)
    assert.deepStrictEqual(take({ t: second }), [])
    assert.isTrue(assignment.isPending)
    assert.deepStrictEqual(take({ t: first }), ["t/0", "t/1"])
    assert.isFalse(assignment.isPending)
  })

  it("CLN-10 a partition that is to be released does not keep the rest pending", () => {
    const { assignment, ownership, take } = make()
    assignment.set([{ topicId: first, partitions: [0, 1] }])
    take({ t: first })
    assignment.set([{ topicId: first, partitions: [0] }])
    take({ t: first })
    assert.isFalse(assignment.isPending)
    ownership.remove([ownership.get({ topic: "t", partition: 1 })!])
    assert.isFalse(assignment.isPending)
  })
})
