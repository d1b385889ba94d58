import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as PauseReasons from "../../src/internal/partition/pauseReasons.ts"
import type { PauseReason } from "../../src/Snapshot.ts"

const every = ["operator", "breaker", "delay", "backpressure", "shutdown", "unreadable", "fleet"] as const
const change = fc.record({
  kind: fc.constantFrom("add" as const, "remove" as const),
  reason: fc.constantFrom(...every)
})

const holdsTheFetchOnly = (reason: PauseReason) =>
  reason === "backpressure" || reason === "delay" || reason === "unreadable"

describe("pauseReasons", () => {
  it("ruling 9: agrees with a set of names; no reason sets or clears another", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const model = new Set<PauseReason>()
        let reasons = PauseReasons.empty
        for (const { kind, reason } of changes) {
          const others = PauseReasons.list(reasons).filter((other) => other !== reason)
          if (kind === "add") model.add(reason)
          else model.delete(reason)
          reasons = kind === "add" ? PauseReasons.add(reasons, reason) : PauseReasons.remove(reasons, reason)
          expect(PauseReasons.list(reasons).filter((other) => other !== reason)).toEqual(others)
          expect(PauseReasons.list(reasons)).toEqual(every.filter((name) => model.has(name)))
          expect(PauseReasons.has(reasons, reason)).toBe(kind === "add")
          expect(PauseReasons.fetchAllowed(reasons)).toBe(model.size === 0)
          expect(PauseReasons.handlingAllowed(reasons)).toBe([...model].every(holdsTheFetchOnly))
        }
      })
    )
  })

  it("ruling 9: a partition is fetched only without a reason; backpressure, delay and unreadable still allow handling", () => {
    for (const reason of every) {
      const reasons = PauseReasons.add(PauseReasons.empty, reason)
      expect(PauseReasons.fetchAllowed(reasons)).toBe(false)
      expect(PauseReasons.handlingAllowed(reasons)).toBe(holdsTheFetchOnly(reason))
      expect(PauseReasons.handlingAllowed(PauseReasons.add(reasons, "backpressure"))).toBe(holdsTheFetchOnly(reason))
    }
    expect(PauseReasons.fetchAllowed(PauseReasons.empty)).toBe(true)
    expect(PauseReasons.handlingAllowed(PauseReasons.empty)).toBe(true)
  })

  it("ruling 28: when the breaker half-opens, the operator's pause still holds", () => {
    const both = PauseReasons.add(PauseReasons.add(PauseReasons.empty, "operator"), "breaker")
    expect(PauseReasons.list(PauseReasons.remove(both, "breaker"))).toEqual(["operator"])
  })
})
