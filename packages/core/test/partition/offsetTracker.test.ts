import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import * as OffsetTracker from "../../src/internal/partition/offsetTracker.ts"

const record = (offset: bigint): ConsumerRecord => ({
  topic: "orders",
  partition: 0,
  offset,
  timestamp: 0,
  key: null,
  value: null,
  headers: []
})

/** A naive model of the rulings: a list of every record that was ever begun. */
const makeModel = (start: bigint) => {
  const begun: Array<{ readonly offset: bigint; finished: boolean }> = []
  let end = start
  return {
    begin: (offset: bigint) => begun.push({ offset, finished: false }) - 1,
    finish: (slot: number) => {
      const entry = begun[slot]
      if (entry !== undefined) entry.finished = true
    },
    endOfChunk: (nextOffset: bigint) => {
      end = nextOffset
    },
    position: () => {
      const unfinished = begun.find((entry) => !entry.finished)
      if (unfinished !== undefined) return unfinished.offset
      const last = begun.at(-1)
      return last !== undefined && last.offset >= end ? last.offset + 1n : end
    },
    inFlight: () => begun.filter((entry) => !entry.finished).length,
    span: () => {
      const unfinished = begun.findIndex((entry) => !entry.finished)
      return unfinished === -1 ? 0 : begun.length - unfinished
    }
  }
}

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("begin" as const), gap: fc.integer({ min: 0, max: 3 }) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("finish" as const), pick: fc.nat(400) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("endOfChunk" as const), gap: fc.integer({ min: 0, max: 5 }) })
  }
)

const runBoth = (start: bigint, steps: ReadonlyArray<typeof step extends fc.Arbitrary<infer A> ? A : never>) => {
  const tracker = OffsetTracker.make(start)
  const model = makeModel(start)
  let at = start
  let begun = 0
  let position = start
  for (const action of steps) {
    if (action.kind === "begin") {
      at += BigInt(action.gap)
      expect(tracker.begin(record(at))).toBe(model.begin(at))
      at += 1n
      begun++
    } else if (action.kind === "finish") {
      // Some picks are slots that are finished already, or that do not exist (yet).
      const slot = action.pick % (begun + 2)
      tracker.finish(slot)
      model.finish(slot < begun ? slot : -1)
    } else {
      at += BigInt(action.gap)
      tracker.endOfChunk(at)
      model.endOfChunk(at)
    }
    expect(tracker.position()).toBe(model.position())
    expect(tracker.inFlight()).toBe(model.inFlight())
    expect(tracker.span()).toBe(model.span())
    expect(tracker.position() >= position).toBe(true)
    position = tracker.position()
  }
}

describe("offsetTracker", () => {
  it("OFF-02 OFF-06 OFF-08 agrees with the naive model and never moves back", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 63n - 10_000n }),
        fc.array(step, { maxLength: 400, size: "max" }),
        (start, steps) => runBoth(start, steps)
      ),
      { numRuns: 150, examples: [[2n ** 53n - 2n, [{ kind: "begin", gap: 0 }]]] }
    )
  })

  it("OFF-15 in whatever order records finish, the position ends after the last one", () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray(
          Array.from({ length: 300 }, (_, i) => i),
          { minLength: 300 }
        ),
        (order) => {
          const tracker = OffsetTracker.make(2n ** 60n)
          for (let i = 0; i < 300; i++) tracker.begin(record(2n ** 60n + BigInt(i)))
          for (const slot of order) {
            expect(tracker.position()).toBeLessThan(2n ** 60n + 300n)
            tracker.finish(slot)
          }
          expect(tracker.position()).toBe(2n ** 60n + 300n)
          expect([tracker.inFlight(), tracker.span()]).toEqual([0, 0])
        }
      ),
      { numRuns: 30 }
    )
  })

  it("OFF-12 offset 6 of 0 to 9 fails: the position is 6, and stays there while 7 to 9 finish", () => {
    const tracker = OffsetTracker.make(0n)
    for (let i = 0n; i < 10n; i++) tracker.begin(record(i))
    tracker.endOfChunk(10n)
    for (const slot of [0, 1, 2, 3, 4, 5, 7, 8, 9]) tracker.finish(slot)
    expect(tracker.position()).toBe(6n)
    tracker.finish(6)
    expect(tracker.position()).toBe(10n)
  })

  it("an empty chunk (control records, compacted range) moves an idle position and waits for records in flight", () => {
    const tracker = OffsetTracker.make(100n)
    tracker.endOfChunk(120n)
    expect(tracker.position()).toBe(120n)
    const slot = tracker.begin(record(125n))
    tracker.endOfChunk(126n)
    tracker.endOfChunk(130n)
    expect(tracker.position()).toBe(125n)
    tracker.finish(slot)
    expect(tracker.position()).toBe(130n)
  })

  it("OFF-08 a chunk end behind the position moves nothing", () => {
    const tracker = OffsetTracker.make(100n)
    tracker.endOfChunk(120n)
    tracker.endOfChunk(110n)
    expect(tracker.position()).toBe(120n)
  })

  it("is full when the span, not the number in flight, reaches the limit, and has room again when the first record finishes", () => {
    const tracker = OffsetTracker.make(0n, { maxSpan: 100 })
    for (let i = 0; i < 100; i++) {
      expect(tracker.isFull()).toBe(false)
      tracker.begin(record(BigInt(i)))
    }
    for (let slot = 1; slot < 100; slot++) tracker.finish(slot)
    expect([tracker.isFull(), tracker.inFlight(), tracker.span()]).toEqual([true, 1, 100])
    tracker.begin(record(100n))
    expect(tracker.position()).toBe(0n)
    tracker.finish(0)
    expect([tracker.isFull(), tracker.span(), tracker.position()]).toEqual([false, 1, 100n])
  })

  it("reads a record's offset only when the position is read", () => {
    let reads = 0
    const lazy = {
      ...record(0n),
      get offset() {
        reads++
        return 5n
      }
    }
    const tracker = OffsetTracker.make(5n)
    const slot = tracker.begin(lazy)
    tracker.finish(slot)
    tracker.endOfChunk(6n)
    expect(reads).toBe(0)
    expect(tracker.position()).toBe(6n)
  })
})
