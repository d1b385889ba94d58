/** The verdict on the effects of a few records: it finds what it is there for, and nothing else. */
import { assert, describe, it } from "@effect/vitest"
import type { Line, Step } from "./effects.ts"
import { fateOf } from "./keyedRecords.ts"
import * as Verdict from "./verdict.ts"

/** Numbers of records whose handler succeeds at once. */
const plain = Array.from({ length: 200 }, (_, n) => n).filter((n) => fateOf(n) === 0)

/** Records 0, 1, 2 … of one key. */
const sources = (count: number): ReadonlyArray<Verdict.Source> =>
  plain.slice(0, count).map((n, index) => ({ place: `0-${index}`, key: "a", n }))

const assigned = (tenure: string): Line => ({ _tag: "Assigned", tenure, partition: 0 })
const step = (_tag: Step["_tag"], tenure: string, index: number): Line => ({
  ...{ _tag, tenure, place: `0-${index}`, tier: 0 }
})
/** These records are handled, one after the other. */
const handled = (tenure: string, ...indices: ReadonlyArray<number>): ReadonlyArray<Line> =>
  indices.flatMap((index) => [step("Started", tenure, index), step("Done", tenure, index)])

const faultsOf = (count: number, ...lines: ReadonlyArray<Line>) =>
  Verdict.of(lines, sources(count)).faults.map((fault) => fault.split("\n")[0])

describe("the verdict on order per key", () => {
  it("allows a rewind that is repeated to the end", () => {
    const verdict = Verdict.of(
      [assigned("1-1"), ...handled("1-1", 0, 1, 2), assigned("2-1"), ...handled("2-1", 1, 2, 3)],
      sources(4)
    )
    assert.deepStrictEqual(verdict, { faults: [], repeated: 2, late: 0, tenures: 2 })
  })

  it("finds a record that is never done, and one that is overtaken", () => {
    assert.deepStrictEqual(faultsOf(2, assigned("1-1"), ...handled("1-1", 0)), ["lost: #1 of a, 0-1"])
    assert.deepStrictEqual(faultsOf(3, assigned("1-1"), ...handled("1-1", 0, 2, 1)), [
      "skip: #2 begins, and #1 was never done",
      "the last effect of a is #1 of 3"
    ])
  })

  it("finds a rewind that is not repeated to the end", () => {
    const [first, second] = [handled("1-1", 0, 1, 2), handled("2-1", 0, 2)]
    assert.deepStrictEqual(faultsOf(3, assigned("1-1"), ...first, assigned("2-1"), ...second), [
      "skip: #2 begins behind #0"
    ])
    assert.deepStrictEqual(faultsOf(3, assigned("1-1"), ...first, assigned("2-1"), ...handled("2-1", 0)), [
      "the last effect of a is #0 of 3"
    ])
  })

  it("finds two records of a key in work at once", () => {
    const both = [step("Started", "1-1", 0), step("Started", "1-1", 0), step("Done", "1-1", 0)]
    assert.deepStrictEqual(faultsOf(1, assigned("1-1"), ...both), ["overlap: #0 begins while #0 is in work"])
  })

  it("allows an owner that wakes late to end what it began, and nothing beyond", () => {
    const woken = (late: ReadonlyArray<Line>) => [
      ...[assigned("1-1"), ...handled("1-1", 0), step("Started", "1-1", 1)],
      ...[assigned("2-1"), ...handled("2-1", 1, 2), ...late, ...handled("2-1", 3)]
    ]
    assert.deepStrictEqual(faultsOf(4, ...woken([step("Done", "1-1", 1)])), [])
    assert.deepStrictEqual(faultsOf(4, ...woken([step("Done", "1-1", 1), step("Started", "1-1", 3)])), [
      "skip: #3 begins behind #1"
    ])
  })

  it("finds what is handled twice, unless a handler failed whose retry was not published", () => {
    const first = [assigned("1-1"), ...handled("1-1", 1)]
    const again = [assigned("2-1"), ...handled("2-1", 1)]
    assert.deepStrictEqual(Verdict.handledTwice([...first, ...again]), ["0-1: 1-1 tier 0, 2-1 tier 0"])
    const failed = [step("Started", "1-1", 0), step("Failed", "1-1", 0)]
    assert.deepStrictEqual(Verdict.handledTwice([...first, ...failed, ...again, ...handled("2-1", 0)]), [])
  })
})
