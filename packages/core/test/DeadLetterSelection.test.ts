import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as DeadLetterRecord from "../src/DeadLetterRecord.ts"
import * as DeadLetterSelection from "../src/DeadLetterSelection.ts"
import * as Names from "../src/internal/record/headerNames.ts"
import * as Arguments from "../src/internal/replay/arguments.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)

interface Sketch {
  readonly partition?: number
  readonly offset?: bigint
  readonly millis?: number
  readonly key?: string | null
  readonly fingerprint?: string
}

const letter = ({ partition = 0, offset = 0n, millis = 1_000, key = "k", fingerprint = "v1-a" }: Sketch = {}) =>
  DeadLetterRecord.read({
    ...{ topic: "orders.DLT", partition, offset, timestamp: millis, value: null },
    key: key === null ? null : utf8(key),
    headers: [
      { key: Names.dltReason, value: utf8("NON_RETRYABLE") },
      { key: Names.lastExceptionFingerprint, value: utf8(fingerprint) }
    ]
  })

const takes = (selection: DeadLetterSelection.DeadLetterSelection, sketch: Sketch) =>
  DeadLetterSelection.matches(selection)(letter(sketch))

describe("which dead letters a selection takes (OPS-03)", () => {
  it("takes those of its groups", () => {
    const selection = { fingerprints: ["v1-a", "own-cards"] }
    expect(takes(selection, { fingerprint: "v1-a" })).toBe(true)
    expect(takes(selection, { fingerprint: "own-cards" })).toBe(true)
    expect(takes(selection, { fingerprint: "v1-b" })).toBe(false)
  })

  it("takes those that were dead-lettered from the first time on, and before the second", () => {
    const selection = { fromMillis: 1_000, toMillis: 2_000 }
    expect([999, 1_000, 1_999, 2_000].map((millis) => takes(selection, { millis }))).toEqual([false, true, true, false])
    expect(takes({ fromMillis: 1_000 }, { millis: 9e12 })).toBe(true)
    expect(takes({ toMillis: 2_000 }, { millis: 0 })).toBe(true)
  })

  it("takes those with its keys, of which a missing key is none", () => {
    expect(takes({ keys: ["ä", ""] }, { key: "ä" })).toBe(true)
    expect(takes({ keys: ["ä", ""] }, { key: "" })).toBe(true)
    expect(takes({ keys: ["ä", ""] }, { key: null })).toBe(false)
    expect(takes({ keys: ["ä"] }, { key: "a" })).toBe(false)
  })

  it("takes those at its positions, and none that are excepted", () => {
    const records = [
      { partition: 1, offset: 2n ** 62n },
      { partition: 2, offset: 0n }
    ]
    expect(takes({ records }, { partition: 1, offset: 2n ** 62n })).toBe(true)
    expect(takes({ records }, { partition: 1, offset: 0n })).toBe(false)
    expect(takes({ records, except: records }, { partition: 2, offset: 0n })).toBe(false)
    expect(takes({ all: true, except: records }, { partition: 2, offset: 0n })).toBe(false)
    expect(takes({ all: true, except: records }, { partition: 2, offset: 1n })).toBe(true)
  })

  it("takes only what meets all criteria", () => {
    const one = fc.record({
      partition: fc.nat(1),
      offset: fc.bigInt(0n, 1n),
      millis: fc.integer({ min: 0, max: 3 }),
      key: fc.constantFrom("k", "l", null),
      fingerprint: fc.constantFrom("v1-a", "v1-b")
    })
    const selections = fc.record(
      {
        fingerprints: fc.constant(["v1-a"]),
        fromMillis: fc.constant(1),
        toMillis: fc.constant(3),
        keys: fc.constant(["k"]),
        records: fc.constant([{ partition: 0, offset: 1n }])
      },
      { requiredKeys: [] }
    )
    fc.assert(
      fc.property(one, selections, (sketch, selection) => {
        const each = Object.entries(selection).map(([name, value]) => takes({ [name]: value }, sketch))
        expect(takes(selection, sketch)).toBe(each.every(Boolean))
      })
    )
  })
})

describe("a selection that no command takes (OPS-03)", () => {
  const pathsOf = (selection: unknown) => DeadLetterSelection.issues(selection).map(({ path }) => path)

  it("is an empty one: everything is selected by 'all' alone", () => {
    expect(pathsOf({})).toEqual(["selection"])
    expect(pathsOf({ except: [{ partition: 0, offset: 0n }] })).toEqual(["selection"])
    expect(pathsOf({ fingerprints: undefined })).toEqual(["selection"])
    for (const name of ["fingerprints", "keys", "records"]) {
      expect(pathsOf({ [name]: [] })).toEqual([`selection.${name}`])
    }
    for (const value of [undefined, null, 1, "all", []]) expect(pathsOf(value)).toEqual(["selection"])
    expect(pathsOf({ all: true })).toEqual([])
    expect(pathsOf({ all: true, except: [] })).toEqual([])
  })

  it("names each bad value by its path, all at once", () => {
    const bad = {
      fingerprints: ["v1-a", "nonsense"],
      fromMillis: Number.NaN,
      toMillis: "tomorrow",
      keys: [1],
      records: [{ partition: -1, offset: 0n }, { partition: 0, offset: 1 }, null],
      except: { partition: 0 },
      excpet: []
    }
    expect(pathsOf(bad)).toEqual([
      "selection.excpet",
      "selection.fingerprints[1]",
      "selection.fromMillis",
      "selection.toMillis",
      "selection.keys[0]",
      "selection.records[0].partition",
      "selection.records[1].offset",
      "selection.records[2]",
      "selection.except"
    ])
  })

  it("has a window that ends before it begins, or 'all' beside other criteria", () => {
    expect(pathsOf({ fromMillis: 2, toMillis: 2 })).toEqual(["selection.toMillis"])
    expect(pathsOf({ fromMillis: Number.NEGATIVE_INFINITY, toMillis: 2 })).toEqual([])
    expect(pathsOf({ all: false })).toEqual(["selection.all"])
    expect(pathsOf({ all: true, keys: ["k"] })).toEqual(["selection.all"])
  })

  it("never throws, whatever value is given", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), (value) => {
        DeadLetterSelection.issues(value)
        DeadLetterSelection.issues({ records: value, except: [value], keys: value, fromMillis: value, all: value })
      })
    )
  })

  it.effect("is refused with what is wrong, what was given and what is allowed", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(Arguments.selection("rehearse", { records: [{ partition: 0, offset: -1n }] }))
      expect(failed.message).toBe(
        "rehearse: selection.records[0].offset is -1, expected a bigint of 0 or more. Nothing was done."
      )
      yield* Arguments.selection("rehearse", { all: true })
    })
  )
})
