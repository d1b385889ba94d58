import { describe, expect, it } from "@effect/vitest"
import { Cause } from "effect"
import * as fc from "fast-check"
import * as Failure from "../../src/internal/failure/failure.ts"
import { failureText } from "../../src/internal/failure/failureText.ts"

const textOf = (error: unknown) => failureText(Failure.fromUnknown(error))

describe("a failure in one line", () => {
  it("OPS-23 names the error and each of its causes, the outermost first", () => {
    const refused = new Error("connect ECONNREFUSED")
    expect(textOf(new TypeError("fetch failed", { cause: refused }))).toBe(
      "TypeError: fetch failed, caused by Error: connect ECONNREFUSED"
    )
    expect(textOf(new Error(""))).toBe("Error")
    expect(textOf("plain")).toBe("string: plain")
    expect(textOf(Object.assign(new AggregateError([refused], ""), { code: "ECONNREFUSED" }))).toContain("ECONNREFUSED")
  })

  it("OPS-23 is bounded in depth, in each message and as a whole, whatever the error is", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 3_000, size: "max" }), { minLength: 1, maxLength: 40 }),
        (messages) => {
          const error = messages.reduceRight<Error | undefined>(
            (cause, message) => new Error(message, { cause }),
            undefined
          )
          const text = textOf(error)
          expect(text.length).toBeLessThanOrEqual(4_096)
          expect(text.split(", caused by Error").length).toBeLessThanOrEqual(
            messages.join().includes("caused by") ? 99 : 11
          )
        }
      )
    )
    expect(textOf(new Error("x".repeat(5_000))).length).toBeLessThan(1_100)
  })

  it("OPS-23 its stack traces are a plain error that a logger can print", () => {
    const hostile = new Proxy(new Error("x"), {
      get: (target, name) => {
        if (name === "stack" || name === "message") throw new Error("no")
        return Reflect.get(target, name)
      }
    })
    const outer = new TypeError("outer\nINFO forged", { cause: hostile })
    const printed = Cause.pretty(Cause.die(Failure.printable(Failure.fromUnknown(outer))))
    expect(printed).toMatch(/^TypeError: outer INFO forged\n {4}at /)
    expect(printed).toContain("[cause]: Error")
    expect(Failure.printable(Failure.fromUnknown("no stack"))).toBeUndefined()
    expect(Failure.printable(Failure.fromUnknown(hostile))).toBeUndefined()
  })
})
