import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import * as Classification from "../src/internal/failure/classification.ts"
import * as Failure from "../src/internal/failure/failure.ts"
import * as Results from "../src/internal/failure/results.ts"
import * as Outcome from "../src/Outcome.ts"

/** The route of a record whose handler succeeds with this value. */
const decisionOf = (answer: unknown, rules: Classification.Rules<never> = {}) => {
  const exit = Effect.runSyncExit(Results.toEffect(answer))
  return Exit.isSuccess(exit) ? "done" : Classification.make(rules)(exit.cause, 1)
}

const again = { inPlace: true, destination: { _tag: "NextTier" }, permanent: false }
const atOnce = { inPlace: false, destination: { _tag: "DeadLetter", reason: undefined }, permanent: true }

class Down extends Error {
  override readonly name = "Down"
}

describe("Outcome", () => {
  it("RES-01 RES-02 RES-03 RES-04 success is done, retry is tried again, failure is dead-lettered at once", () => {
    expect(decisionOf(Outcome.success)).toBe("done")
    expect(decisionOf(Outcome.retry())).toEqual(again)
    expect(decisionOf(Outcome.retry(new Down("x")))).toEqual(again)
    expect(decisionOf(Outcome.failure())).toEqual(atOnce)
    expect(decisionOf(Outcome.failure("no such customer"))).toEqual(atOnce)
  })

  it("DLT-05 ruling 60 a dead letter by the handler's own decision is told from a failure that stays, raised or returned", () => {
    const decided = { ...atOnce, destination: { _tag: "DeadLetter", reason: "above the limit", isDecision: true } }
    expect(decisionOf(Outcome.deadLetter("above the limit"))).toStrictEqual(decided)
    expect(Classification.make({})(Cause.fail(Outcome.deadLetter("above the limit")), 1)).toStrictEqual(decided)
    expect(decisionOf(Outcome.failure("above the limit"))).toStrictEqual(atOnce)
    expect(Failure.fromUnknown(Outcome.deadLetter("above the limit"))).toMatchObject({
      className: "DeadLetterResult",
      message: "above the limit"
    })
  })

  it("RES-01 ruling 68 a result decides where the record goes: no rule and no list changes that", () => {
    const rules: Classification.Rules<never> = {
      onError: () => {
        throw new Error("asked about a result")
      },
      classifier: () => ({ routing: "PAUSE_CONTAINER", targetTier: -1 }),
      exceptions: { nonRetryableExceptions: ["Down", "RetryableResult"], skipToTierMapping: { ErrorResult: 2 } }
    }
    expect(decisionOf(Outcome.retry(new Down("x")), rules)).toEqual(again)
    expect(decisionOf(Outcome.failure(new Down("x")), rules)).toEqual(atOnce)
  })

  it("RES-01 ruling 68 an error that is raised instead of a result is tried again, unless it is classified", () => {
    const cause = Cause.fail(new Down("x"))
    expect(Classification.make({})(cause, 1)).toEqual(again)
    expect(Classification.make({ exceptions: { nonRetryableExceptions: ["Down"] } })(cause, 1)).toEqual(atOnce)
  })

  it("RES-01 failing with a result means the same as succeeding with it", () => {
    const thrown = Cause.die(Outcome.failure())
    expect(Classification.make({})(thrown, 1)).toEqual(atOnce)
    expect(Classification.make({})(Cause.fail(Outcome.retry()), 1)).toEqual(again)
  })

  it("RES-02 every other value is a success, however hostile", () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    for (const answer of [undefined, null, 0, "retry", { _tag: "ErrorResult" }, new Down("as a value"), proxy]) {
      expect(decisionOf(answer)).toBe("done")
    }
  })

  it("CLS-10 the error of a result is kept: its message, and itself as the cause", () => {
    expect(Failure.fromUnknown(Outcome.retry(new Down("gateway")))).toMatchObject({
      className: "RetryableResult",
      message: "gateway",
      causes: [{ className: "Down", message: "gateway" }]
    })
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(Failure.fromUnknown(Outcome.failure(proxy))).toMatchObject({ className: "ErrorResult", message: "" })
    expect(Failure.fromUnknown(Outcome.failure()).message).toBe("the handler gave the record up")
  })
})
