import { Cause } from "effect"
import { describe, expect, it } from "vitest"
import { failureOf, failureOfValue, logText } from "../src/internal/base/failureText.ts"

describe("the text of a failure", () => {
  it("OPS-23 names the causes, in the table and in the log: Effect.tryPromise says nothing by itself", () => {
    const refused = new Error("connect ECONNREFUSED 10.0.0.7:443")
    const error = new TypeError("fetch failed", { cause: refused })
    const text = "TypeError: fetch failed, caused by Error: connect ECONNREFUSED 10.0.0.7:443"
    expect(failureOfValue(error).summary).toBe(text)
    expect(failureOf(Cause.fail(error)).summary).toBe(text)
    expect(logText(Cause.die(error)).startsWith(text)).toBe(true)
  })

  it("names the fields of an error without a message, and shows no value of theirs: the text goes to the table and to logs", () => {
    class Refused extends Error {
      readonly _tag = "Refused"
      readonly card = "4111111111111111"
      override readonly message = ""
    }
    const tagged = { _tag: "Refused", card: "4111111111111111", "4111111111111111": true }
    for (const [error, text] of [
      [tagged, "Refused: {card, …}"],
      [{ ...tagged, _tag: undefined }, "{card, …}"],
      [new Error("sent", { cause: tagged }), "Error: sent, caused by Refused: {card, …}"],
      [{ _tag: "Refused" }, "Refused"],
      [{}, "an object without a name"]
    ] as const)
      expect(failureOfValue(error).summary).toBe(text)
    expect(failureOfValue(new Refused()).summary).toBe("Error: {card}")
    expect(logText(Cause.fail(tagged))).not.toContain("4111")
  })

  it("OPS-23 ends where a chain repeats itself, after ten causes, and at a cause that cannot be read", () => {
    const round: { cause?: unknown; message: string } = { message: "round" }
    round.cause = round
    expect(failureOfValue(round).summary).toBe("Object: round")
    let deep = new Error("level 0")
    for (let level = 1; level < 50; level++) deep = new Error(`level ${level}`, { cause: deep })
    expect(failureOfValue(deep).summary.split(", caused by ")).toHaveLength(11)
    const throwing = Object.defineProperty(new Error("x"), "cause", {
      get: () => {
        throw new Error("no")
      }
    })
    expect(failureOfValue(throwing).summary).toBe("Error: x")
  })
})
