import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as BreakerState from "../../src/internal/breaker/breakerState.ts"
import { ofCalls } from "../../src/internal/breaker/callWindow.ts"

const settings: BreakerState.BreakerSettings = {
  minimumNumberOfCalls: 3,
  failureRateThreshold: 50,
  slowCallRateThreshold: 75,
  permittedNumberOfCallsInHalfOpenState: 2,
  waitMillis: 100,
  waitMultiplier: 2,
  maxWaitMillis: 350
}
const windowSize = 5

interface Call {
  readonly failed: boolean
  readonly slow: boolean
}
type Tag = Exclude<BreakerState.BreakerEvent["_tag"], "Outcome">

const step: fc.Arbitrary<({ readonly _tag: "Call" } & Call) | { readonly _tag: Tag }> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ _tag: fc.constant("Call" as const), failed: fc.boolean(), slow: fc.boolean() })
  },
  { weight: 6, arbitrary: fc.constant({ _tag: "Acquired" as const }) },
  { weight: 2, arbitrary: fc.constant({ _tag: "Released" as const }) },
  { weight: 3, arbitrary: fc.constant({ _tag: "TrialsOver" as const }) },
  { weight: 4, arbitrary: fc.record({ _tag: fc.constantFrom("WaitOver" as const, "ProbeFailed" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ _tag: fc.constantFrom("ForceOpen" as const, "Disable" as const, "Close" as const) })
  }
)

/** The breaker as one would explain it: lists instead of sums, no generations. */
const model = () => {
  let state: BreakerState.BreakerState["_tag"] = "CLOSED"
  let seen: ReadonlyArray<Call> = []
  let out = 0
  let reopenings = 0
  let wait: number | undefined

  const go = (to: typeof state) => {
    state = to
    seen = []
    out = 0
    wait = to === "OPEN" ? Math.min(350, 100 * 2 ** reopenings) : undefined
  }
  const bad = () => {
    const share = (kind: (call: Call) => boolean) => seen.filter(kind).length / seen.length
    return share(({ failed }) => failed) >= 0.5 || share(({ slow }) => slow) >= 0.75
  }
  const outcome = (call: Call) => {
    if (state === "CLOSED") {
      seen = [...seen, call].slice(-windowSize)
      if (seen.length < 3 || !bad()) return
      reopenings = 0
      go("OPEN")
    } else if (state === "HALF_OPEN" && out > 0) {
      out--
      seen = [...seen, call]
      if (seen.length === 2) judge()
    }
  }
  const judge = () => {
    const failed = bad()
    if (failed) reopenings++
    go(failed ? "OPEN" : "CLOSED")
  }
  return {
    outcome,
    look: () => ({
      state,
      wait,
      mayCall: ["CLOSED", "DISABLED"].includes(state) || (state === "HALF_OPEN" && out + seen.length < 2)
    }),
    event: (tag: Tag) => {
      if (tag === "ForceOpen") go("FORCED_OPEN")
      else if (tag === "Disable") go("DISABLED")
      else if (tag === "Close") go("CLOSED")
      else if (tag === "Acquired" && state === "HALF_OPEN" && out + seen.length < 2) out++
      else if (tag === "Released" && state === "HALF_OPEN") out = Math.max(0, out - 1)
      else if (tag === "TrialsOver" && state === "HALF_OPEN" && out === 0 && seen.length > 0) judge()
      else if (tag === "WaitOver" && state === "OPEN") go("HALF_OPEN")
      else if (tag === "ProbeFailed" && state === "OPEN") {
        reopenings++
        go("OPEN")
      }
    }
  }
}

/** The breaker itself, with its window, as `CircuitBreaker` drives it. */
const subject = () => {
  const window = ofCalls(windowSize)
  let state = BreakerState.initial(0)
  const apply = (event: BreakerState.BreakerEvent, now: number) => {
    const from = state
    state = BreakerState.transition(settings, state, event, now)
    if (state.generation !== from.generation) window.clear()
  }
  return {
    outcome: (call: Call, now: number) => {
      if (state._tag === "CLOSED") window.add(call.failed, call.slow, now)
      apply({ ...call, _tag: "Outcome", window: window.counts(now) }, now)
    },
    event: (tag: Tag, now: number) => {
      if (tag === "Acquired" && BreakerState.freePermits(settings, state) <= 0) return
      apply({ _tag: tag }, now)
    },
    generation: () => state.generation,
    look: (sinceMillis: number) => ({
      state: state._tag,
      wait: state._tag === "OPEN" ? state.untilMillis - sinceMillis : undefined,
      mayCall: BreakerState.freePermits(settings, state) > 0
    })
  }
}

describe("breakerState", () => {
  it("CARD-06 CB-04 CB-05 CB-09 CB-10 rulings 26 and 27 agrees with a plain model for any sequence of events", () => {
    const visited = new Set<string>()
    fc.assert(
      fc.property(fc.array(step, { minLength: 60, maxLength: 120, size: "max" }), (steps) => {
        const expected = model()
        const actual = subject()
        let waitsSince = 0
        for (const [now, event] of steps.entries()) {
          const before = { ...actual.look(waitsSince), generation: actual.generation() }
          if (event._tag === "Call") {
            expected.outcome(event)
            actual.outcome(event, now)
          } else {
            expected.event(event._tag)
            actual.event(event._tag, now)
          }
          if (actual.generation() !== before.generation || event._tag === "ProbeFailed") waitsSince = now
          const seen = actual.look(waitsSince)
          expect(seen).toEqual(expected.look())
          if (seen.state !== before.state) expect(actual.generation()).toBe(before.generation + 1)
          visited.add(`${before.state} ${seen.state}`)
        }
      }),
      { numRuns: 500 }
    )
    // The walk has been everywhere.
    for (const change of ["CLOSED OPEN", "OPEN HALF_OPEN", "HALF_OPEN OPEN", "HALF_OPEN CLOSED", "FORCED_OPEN CLOSED"])
      expect(visited.has(change), change).toBe(true)
  })
})
