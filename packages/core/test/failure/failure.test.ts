import { describe, expect, it } from "@effect/vitest"
import { Cause, Data, Effect, Exit, Fiber, Schema } from "effect"
import * as fc from "fast-check"
import * as Failure from "../../src/internal/failure/failure.ts"

class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { code: Schema.String }) {}
class GatewayDown extends Data.TaggedError("GatewayDown")<{ readonly message: string }> {}
class PlainSubclass extends Error {}

const withoutMessage = () => Object.assign(new Error(), { message: undefined })
const throwingMessage = () =>
  Object.defineProperty(new Error("never read"), "message", {
    get: () => {
      throw new Error("getter")
    }
  })
const ownCause = () => {
  const error = new Error("cyclic")
  error.cause = error
  return error
}
const revokedProxy = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
const throwingProxy = () =>
  new Proxy(new Error("hidden"), {
    get: () => {
      throw new Error("get")
    },
    getPrototypeOf: () => {
      throw new Error("getPrototypeOf")
    },
    ownKeys: () => {
      throw new Error("ownKeys")
    }
  })

/** Values that a handler may throw, with the expected class name and message. */
const thrown: ReadonlyArray<readonly [string, unknown, string, string]> = [
  ["undefined", undefined, "undefined", "undefined"],
  ["null", null, "null", "null"],
  ["a string", "text", "string", "text"],
  ["an empty string", "", "string", ""],
  ["a number", 42, "number", "42"],
  ["a bigint", 1n, "bigint", "1"],
  ["a symbol", Symbol("x"), "symbol", "Symbol(x)"],
  ["an object", { code: 1, "4111111111111111": 2, "4000000000000002": 3 }, "Object", "{code, …}"],
  ["an object with a bigint in it", { code: 1n }, "Object", "{code}"],
  ["an object with null prototype", Object.create(null), "Object", ""],
  ["a function", function handler() {}, "Function", ""],
  ["an Error without message", withoutMessage(), "Error", ""],
  ["an Error whose message throws", throwingMessage(), "Error", ""],
  ["an Error that is its own cause", ownCause(), "Error", "cyclic"],
  ["an Error with a blank name", Object.assign(new Error("m"), { name: " " }), "Error", "m"],
  ["a subclass that never set its name", new PlainSubclass("m"), "PlainSubclass", "m"],
  ["a TypeError", new TypeError("m"), "TypeError", "m"],
  ["an AbortError", new DOMException("m", "AbortError"), "AbortError", "m"],
  ["a tagged error", new GatewayDown({ message: "503" }), "GatewayDown", "503"],
  ["a tagged error without message", new CardDeclined({ code: "51" }), "CardDeclined", "{code}"],
  ["a revoked Proxy", revokedProxy(), "Object", ""],
  ["a Proxy that throws at every touch", throwingProxy(), "Object", ""]
]

const failureOf = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) ? Failure.fromCause(exit.cause) : undefined

describe("failure", () => {
  for (const [name, value, className, message] of thrown) {
    it.effect(`CLS-10 C05 ${name}: failed, died and thrown all give the same class name and message`, () =>
      Effect.gen(function* () {
        const thrower = Effect.sync(() => {
          throw value
        })
        for (const handler of [Effect.fail(value), Effect.die(value), thrower]) {
          const failure = failureOf(yield* Effect.exit(handler))
          expect(failure).toMatchObject({ className, message })
          expect(Object.is(failure?.error, value)).toBe(true)
        }
      })
    )
  }

  it.effect("CLS-11 interruption alone is not a failure; an error beside it is", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Effect.never)
      yield* Fiber.interrupt(fiber)
      expect(failureOf(yield* Fiber.await(fiber))).toBeUndefined()
      expect(failureOf(yield* Effect.exit(Effect.interrupt))).toBeUndefined()
      expect(Failure.fromCause(Cause.combine(Cause.interrupt(1), Cause.die("late")))?.message).toBe("late")
      expect(Failure.fromCause(Cause.combine(Cause.die("defect"), Cause.fail("typed")))?.message).toBe("typed")
      expect(Failure.fromCause(Cause.empty)?.className).toBe("EmptyCause")
    })
  )

  it("CLS-10 only a text tag is kept for classification", () => {
    expect(Failure.fromUnknown(new CardDeclined({ code: "51" })).tag).toBe("CardDeclined")
    expect(Failure.fromUnknown({ _tag: "Structural", message: "m" })).toMatchObject({ tag: "Structural", message: "m" })
    expect(Failure.fromUnknown({ _tag: 5 }).tag).toBeUndefined()
    expect(Failure.fromUnknown(new Error("m")).stackTrace).toContain("failure.test.ts")
  })

  it("CLS-10 the chain of causes is followed up to a limit, and ends where it repeats", () => {
    const chain = new Error("outer", { cause: new TypeError("middle", { cause: "inner" }) })
    expect(Failure.fromUnknown(chain).causes).toEqual([
      { className: "TypeError", message: "middle" },
      { className: "string", message: "inner" }
    ])
    expect(Failure.fromUnknown(ownCause()).causes).toEqual([])
    const a = new Error("a")
    const b = new Error("b", { cause: a })
    a.cause = b
    expect(Failure.fromUnknown(a).causes).toEqual([{ className: "Error", message: "b" }])
    const endless: object = new Proxy({}, { get: (_, key) => (key === "cause" ? { ...endless, cause: endless } : 1) })
    const bottomless = {
      get cause(): unknown {
        return Object.create(bottomless)
      }
    }
    expect(Failure.fromUnknown(endless).causes.length).toBeLessThanOrEqual(10)
    expect(Failure.fromUnknown(bottomless).causes).toHaveLength(10)
  })

  it("OPS-02 the cause of an error that stands for several is the first of them", () => {
    const refused = new AggregateError([new RangeError("ECONNREFUSED ::1"), new Error("ECONNREFUSED 127.0.0.1")], "")
    expect(Failure.fromUnknown(new TypeError("fetch failed", { cause: refused })).causes).toEqual([
      { className: "AggregateError", message: "" },
      { className: "RangeError", message: "ECONNREFUSED ::1" }
    ])
    const errors = [{ message: "not one of several" }]
    expect(Failure.fromUnknown(Object.assign(new Error("invalid"), { errors })).causes).toEqual([])
    expect(Failure.fromUnknown(new AggregateError([], "none")).causes).toEqual([])
  })

  it("CLS-10 any value at all gives a class name and a message", () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true }),
        (value) => {
          const failure = Failure.fromUnknown(value)
          expect(failure.className.length).toBeGreaterThan(0)
          expect([typeof failure.message, typeof failure.stackTrace]).toEqual(["string", "string"])
        }
      )
    )
  })
})
