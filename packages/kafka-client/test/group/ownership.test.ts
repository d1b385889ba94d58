import { assert, describe, it } from "@effect/vitest"
import { Ownership } from "../../src/internal/group/ownership.ts"

const at = (partition: number) => ({ topic: "t", partition })

const announced = (...partitions: ReadonlyArray<number>) => {
  const ownership = new Ownership()
  for (const owned of ownership.assign(1, partitions.map(at)).added) owned.phase = "waiting"
  return ownership
}

const fetching = (ownership: Ownership) => ownership.fetchable().map(({ partition }) => partition)

describe("ownership", () => {
  it("a partition is not fetched before seek, while paused, or when it is to be released", () => {
    const ownership = announced(0, 1)
    assert.deepStrictEqual(fetching(ownership), [])
    ownership.seek(at(0), 5n)
    ownership.seek(at(1), 5n)
    ownership.pause([at(0)], 7)
    assert.deepStrictEqual(fetching(ownership), [1])
    ownership.assign(2, [at(0)])
    assert.deepStrictEqual(fetching(ownership), [])
    ownership.resume([at(0)], 0)
    assert.deepStrictEqual(fetching(ownership), [0])
  })

  it("REB-09: a partition that stays keeps its generation, position and pause", () => {
    const ownership = announced(0, 1)
    ownership.seek(at(0), 5n)
    ownership.pause([at(0)], 7)
    const { added, revoked } = ownership.assign(2, [at(0), at(1), at(2)])
    assert.deepStrictEqual([added.map(({ partition }) => partition), revoked], [[2], []])
    const owned = ownership.get(at(0))
    assert.deepStrictEqual([owned?.generation, owned?.position, owned?.pausedMillis], [1, 5n, 7])
  })

  it("a resume tells whether a partition was paused since before a moment", () => {
    const ownership = announced(0, 1)
    ownership.pause([at(0)], 7)
    ownership.pause([at(1)], 9)
    assert.isFalse(ownership.resume([at(0)], 7))
    assert.isTrue(ownership.resume([at(0), at(1)], 10))
    assert.isFalse(ownership.resume([at(0), at(1)], 10))
  })

  it("OFF-09: a revoked partition is owned until it is removed, once", () => {
    const ownership = announced(0, 1)
    const { revoked } = ownership.assign(2, [at(0)])
    assert.deepStrictEqual(
      revoked.map(({ generation, partitions }) => [generation, partitions.map(({ partition }) => partition)]),
      [[1, [1]]]
    )
    assert.isDefined(ownership.get(at(1)))
    const [group] = revoked
    assert.strictEqual(ownership.remove(group!.partitions).length, 1)
    assert.strictEqual(ownership.remove(group!.partitions).length, 0)
  })

  it("a partition is revoked once, however many generations pass before it is removed", () => {
    const ownership = announced(0, 1)
    ownership.assign(2, [at(0)])
    assert.deepStrictEqual(ownership.assign(3, [at(0)]).revoked, [])
  })

  it("a partition that comes back is a new assignment, which results of the old one cannot change", () => {
    const ownership = announced(0)
    const old = ownership.get(at(0))!
    ownership.remove(ownership.assign(2, []).revoked.flatMap(({ partitions }) => partitions))
    ownership.assign(3, [at(0)])
    assert.isFalse(ownership.holds(old))
    assert.strictEqual(ownership.get(at(0))?.generation, 3)
    assert.deepStrictEqual(ownership.remove([old]), [])
  })

  it("a partition that goes before it was announced is dropped silently", () => {
    const ownership = new Ownership()
    ownership.assign(1, [at(0)])
    assert.deepStrictEqual(ownership.assign(2, []), { added: [], revoked: [], dropped: 1, isFirst: false })
    ownership.assign(3, [at(0)])
    assert.deepStrictEqual(ownership.clear(), [])
  })

  it("a seek voids earlier fetches, and cannot move a partition that is not owned", () => {
    const ownership = announced(0)
    ownership.seek(at(0), 1n)
    const before = ownership.get(at(0))!.seeks
    assert.isTrue(ownership.seek(at(0), 1n))
    assert.isAbove(ownership.get(at(0))!.seeks, before)
    assert.isFalse(ownership.seek(at(7), 1n))
    ownership.assign(2, [])
    assert.isFalse(ownership.seek(at(0), 9n))
  })
})
