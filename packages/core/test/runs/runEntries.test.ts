import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import * as Positions from "../../src/internal/runs/positions.ts"
import * as Entries from "../../src/internal/runs/runEntries.ts"

const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
const encoder = new TextEncoder()

const record = (key: string | null, value: string | null, changes: Partial<ConsumerRecord> = {}): ConsumerRecord => ({
  ...{ topic: "orders.DLT.replays", partition: 0, offset: 7n, timestamp: 1_000, headers: [] },
  key: key === null ? null : encoder.encode(key),
  value: value === null ? null : encoder.encode(value),
  ...changes
})

const told = (...records: ReadonlyArray<ConsumerRecord>) => {
  const all = new Map<string, Entries.Told>()
  for (const each of records) Entries.apply(all, "billing", each)
  return all
}

const halt = '{"v":1,"verb":"pause","reason":"full","by":"me"}'

describe("entries of runs in the journal", () => {
  it("OPS-08 an entry of a newer version is taken as far as its fields are known", () => {
    const newer = JSON.stringify({ v: 9, verb: "pause", reason: "full", by: "me", until: 7 })
    expect(told(record(`halt/${id}/billing`, newer)).get(id)?.halt?.entry).toMatchObject({ v: 9, reason: "full" })
  })

  it("OPS-08 entries of another group, or outside of a transaction, count for nothing", () => {
    expect(told(record(`halt/${id}/shipping`, halt)).size).toBe(0)
    expect(told(record(`halt/${id}/billing`, halt, { transactional: false })).size).toBe(0)
    expect(told(record(`halt/${id}/a/b`, halt)).size).toBe(0)
    for (const group of ["a/b", "2024/billing", "7/"]) {
      const slashed = new Map<string, Entries.Told>()
      Entries.apply(slashed, group, record(`halt/${id}/${group}`, halt))
      Entries.apply(slashed, group, record(`batch/${id}/3/${group}`, '{"v":1,"taken":2,"copies":[]}'))
      expect(slashed.get(id)?.halt?.entry.reason).toBe("full")
      expect([...(slashed.get(id)?.batches ?? [])].map(([number, { entry }]) => [number, entry.taken])).toEqual([
        [3, 2]
      ])
    }
  })

  it("OPS-08 a tombstone ends an entry; a malformed one changes nothing", () => {
    const key = `halt/${id}/billing`
    expect(told(record(key, halt), record(key, "{")).get(id)?.halt?.entry.reason).toBe("full")
    expect(told(record(key, halt), record(key, null)).get(id)?.halt).toBeUndefined()
  })

  it("OPS-08 whatever a journal holds, reading it never throws", () => {
    const key = fc.oneof(
      fc.string(),
      fc
        .tuple(fc.constantFrom("plan", "run", "halt", "rate", "closed", "batch"), fc.constantFrom("", "/0", "/x"))
        .map(([kind, number]) => `${kind}/${id}${number}/billing`)
    )
    const value = fc.oneof(fc.constant(null), fc.string(), fc.json(), fc.constant(halt))
    fc.assert(
      fc.property(fc.array(fc.tuple(key, value), { maxLength: 5 }), (pairs) => {
        for (const each of told(...pairs.map(([name, text]) => record(name, text))).values()) {
          expect(each.id).toBe(id)
          Entries.takenOf(each)
          Entries.pendingHalt(each)
        }
      })
    )
  })

  it("OPS-08 positions are read as they are written, topics with dashes and unknown offsets included", () => {
    const copy = { topic: "eu-orders-1", partition: 12, offset: 9_007_199_254_740_993n }
    expect(Positions.readCopy(Positions.copyTextOf(copy))).toEqual(copy)
    expect(Positions.readCopy(Positions.copyTextOf({ ...copy, offset: -1n }))).toEqual({ ...copy, offset: -1n })
    expect(Positions.read(["0@5", "x", "1@", "-1@2"])).toEqual([{ partition: 0, offset: 5n }])
  })
})
