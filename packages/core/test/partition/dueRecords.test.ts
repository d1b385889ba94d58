import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import { DueRecords } from "../../src/internal/partition/dueRecords.ts"
import * as FinishedAhead from "../../src/internal/partition/finishedAhead.ts"

const record = (offset: bigint): ConsumerRecord => ({
  ...{ topic: "orders.retry-1", partition: 0, offset, timestamp: 0 },
  ...{ key: null, value: null, headers: [] }
})

const tier = { topic: "orders.retry-1", delaysMillis: [1, 2], longestMillis: 2, first: 1, last: 1, concurrency: 1 }

const make = (finishedAhead?: string, committed = 0n) =>
  DueRecords.of({ tier, finishedAhead, position: committed, committed, logEnd: 100_000n })!

const finish = (due: DueRecords, records: ReadonlyArray<{ readonly record: ConsumerRecord }>) => {
  for (const each of records) due.tracker.finish(due.sequenceOf(each.record)!)
}

describe("records that wait for due times of their own", () => {
  it("MSG-20 are handed over by due time and then by offset, whatever order they came in", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 200 }), (times) => {
        const due = make()
        for (const [offset, dueMillis] of times.entries())
          due.add({ record: record(BigInt(offset)), dueMillis, bytes: 1 })
        const given = Array.from({ length: 21 }, (_, nowMillis) => due.takeDue(nowMillis, 1_000)).flat()
        const expected = times.map((dueMillis, offset) => ({ dueMillis, offset }))
        expected.sort((a, b) => a.dueMillis - b.dueMillis || a.offset - b.offset)
        assert.deepStrictEqual(
          given.map(({ dueMillis, record: { offset } }) => ({ dueMillis, offset: Number(offset) })),
          expected
        )
      })
    )
  })

  it("the position stays at the first that is not finished, and the text tells of the others", () => {
    const due = make()
    for (const [offset, dueMillis] of [9, 1, 1, 5].entries())
      due.add({ record: record(BigInt(offset)), dueMillis, bytes: 1 })
    finish(due, due.takeDue(1, 10))
    assert.deepStrictEqual([due.tracker.position(), due.finishedAhead, due.size, due.holdsOldest], [0n, 2, 2, true])
    const read = FinishedAhead.parse(due.finishedText, 0n, 100n)
    assert.deepStrictEqual(
      [0n, 1n, 2n, 3n].map((offset) => read?.has(offset)),
      [false, true, true, false]
    )
    const rest = due.takeDue(9, 10)
    assert.isFalse(due.holdsOldest)
    finish(due, rest)
    assert.deepStrictEqual([due.tracker.position(), due.finishedText], [4n, undefined])
  })

  it("the next owner goes on telling of what it has not fetched again", () => {
    const due = make(FinishedAhead.format(0n, 6n, [0n, 3n]))
    assert.isFalse(due.wasFinished(record(0n)))
    due.add({ record: record(0n), dueMillis: 9, bytes: 1 })
    assert.isTrue(due.wasFinished(record(1n)))
    const read = FinishedAhead.parse(due.finishedText, 0n, 100n)
    assert.deepStrictEqual(
      [0n, 1n, 2n, 3n, 4n, 5n, 6n].map((offset) => read?.has(offset)),
      [false, true, true, false, true, true, false]
    )
  })

  it("the intake ends where a commit could not tell of a record any more", () => {
    const due = make()
    const edge = BigInt(FinishedAhead.mostOffsets)
    assert.isFalse(due.isTooFar(record(edge)))
    due.add({ record: record(0n), dueMillis: 9, bytes: 1 })
    assert.deepStrictEqual([due.isTooFar(record(edge - 1n)), due.isTooFar(record(edge))], [false, true])
    assert.isFalse(due.tracker.isFull())
  })
})
