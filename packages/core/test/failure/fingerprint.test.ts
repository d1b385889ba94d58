import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { FailureToGroup } from "../../src/Failure.ts"
import { firstApplicationFrame, masked } from "../../src/internal/failure/applicationFrame.ts"
import * as CauseChain from "../../src/internal/failure/causeChain.ts"
import * as Failure from "../../src/internal/failure/failure.ts"
import * as Fingerprint from "../../src/internal/failure/fingerprint.ts"

const frameOf = (...lines: ReadonlyArray<string>) =>
  firstApplicationFrame(["GatewayDown: 503", ...lines.map((line) => `    at ${line}`)].join("\n"), "503")

/** The fingerprint of a failure as a process that dead-letters it makes it. */
const of = (failure: ReturnType<typeof Failure.fromUnknown>, own?: Fingerprint.OwnFingerprint, decodePath?: string) =>
  Fingerprint.of(
    {
      ...{ reason: "RETRIES_EXHAUSTED", exceptionClass: failure.className, message: failure.message },
      ...{ causes: failure.causes, originalTopic: "orders", decodePath, subject: Failure.subjectOf(failure) }
    },
    own
  )

const traced = (message: string, stackTrace: string, className = "GatewayDown") =>
  Failure.fromUnknown({ _tag: className, message, stack: `${className}: ${message}\n${stackTrace}` })

const fetching = (message: string) =>
  Object.assign(new TypeError(message), { stack: `TypeError: ${message}\n    at charge (/app/pay/charge.ts:7:46)` })

describe("the first frame of the application", () => {
  it("OPS-02 passes over dependencies, Node and the connector, and names function, folder and file", () => {
    const own = new URL("../../src/internal/delivery/processing.ts", import.meta.url)
    expect(
      frameOf(
        "JSON.parse (<anonymous>)",
        "fetch (node:internal/deps/undici/undici:13075:20)",
        "catcher (file:///app/node_modules/.pnpm/effect@4.1.0/node_modules/effect/dist/internal/effect.js:802:60)",
        `run (${own}:7:1)`,
        `run (${own.pathname}:7:1)`,
        "async Gateway.charge [as send] (file:///app/src/payments/charge.ts:12:7)",
        "handler (/app/src/main.ts:3:1)"
      )
    ).toBe("Gateway.charge payments/charge.ts")
    expect(frameOf("fetch (node:internal/deps/undici/undici:13075:20)")).toBeUndefined()
  })

  it("OPS-02 is the same in each release: line, column, folder of the release and hash of a chunk do not count", () => {
    const frame = "charge #/main.js"
    expect(frameOf("charge (file:///srv/20261130/main.js:1:2)")).toBe(frame)
    expect(frameOf("charge (/home/app/releases/v1207/main.js:99:1)")).toBe(frame)
    expect(frameOf("charge (C:\\apps\\r77\\main.js:99:1)")).toBe(frame)
    expect(frameOf("charge (file:///srv/20261130/main.js?v=17:1:2)")).toBe(frame)
    expect(frameOf("async file:///srv/pay/chunk-9AB12CD7.js:4:18")).toBe("pay/chunk-#.js")
    expect(frameOf("step1 (/app/pay/step1.ts:4:18)")).not.toBe(frameOf("step1 (/app/pay/step2.ts:4:18)"))
  })

  it("OPS-02 a message that looks like frames is none, and half a line of a stack trace that was cut is none", () => {
    const message = "down\n    at 4111111111111111 (/card/number.ts:1:1)"
    const stack = `Error: ${message}\n    at charge (/app/pay/charge.ts:1:1)`
    expect(firstApplicationFrame(stack, message)).toBe("charge pay/charge.ts")
    const long = `Error: m\n${"    at x (node:internal/x:1:1)\n".repeat(68)}`
    const cut = `${long}    at charge (/app/pay/${"c".repeat(400)}.ts:1:1)`.slice(0, 2_048)
    expect(firstApplicationFrame(cut, "m")).toBeUndefined()
    expect(firstApplicationFrame(`${cut}${"d".repeat(9)}\n`, "m")).toBeUndefined()
  })
})

describe("fingerprints", () => {
  it("OPS-02 pins the algorithm: what older releases wrote stays the same", () => {
    expect(of(traced("503", "    at charge (/app/payments/charge.ts:12:7)"))).toMatchInlineSnapshot(
      `"v1-5bad7ef5a51b8c88"`
    )
    expect(of(traced("order 17", ""))).toMatchInlineSnapshot(`"v1-a072f20d754d36aa"`)
    expect(of(traced("no", "", "DecodeFailure"), undefined, "items[0].price")).toMatchInlineSnapshot(
      `"v1-cec70ebf8aa9c664"`
    )
  })

  it("OPS-02 the same class at the same place is one group, whatever the message and the line; another class, place or topic is another", () => {
    const at = (line: number) => `    at charge (/app/payments/charge.ts:${line}:7)`
    const group = of(traced("order 17", at(12)))
    expect(of(traced("nothing alike", at(99)))).toBe(group)
    expect(of(traced("order 17", at(12), "CardDeclined"))).not.toBe(group)
    expect(of(traced("order 17", "    at refund (/app/payments/charge.ts:12:7)"))).not.toBe(group)
    expect(
      Fingerprint.of({
        ...{ reason: undefined, exceptionClass: "GatewayDown", message: "order 17", causes: [], decodePath: undefined },
        ...{ originalTopic: "refunds", subject: { className: "GatewayDown", message: "", stackTrace: at(12) } }
      })
    ).not.toBe(group)
  })

  it("OPS-02 without a frame the path that could not be decoded decides, else the message without numbers and ids", () => {
    const decoding = traced('expected a number, got "x"', "", "DecodeFailure")
    expect(of(decoding, undefined, "price")).toBe(of(traced("another text", "", "DecodeFailure"), undefined, "price"))
    expect(of(decoding, undefined, "price")).not.toBe(of(decoding, undefined, "total"))
    const order = (id: string) => of(traced(`order ${id} was not found at 10.0.0.7:443`, ""))
    expect(order("17")).toBe(order("2f8a1c3e-7f4e-4a53-9d30-0c9c5a2f1b11"))
    expect(order("17")).toBe(order("deadbeefcafe"))
    expect(order("17")).not.toBe(of(traced("order 17 was cancelled at 10.0.0.7:443", "")))
    expect(masked("deadbeef add 7f4e-4a53 order-A17 café", 1, 1)).toBe("# add # order-# café")
  })

  it.effect("OPS-02 a failed `Effect.tryPromise` is grouped by what it wraps", () =>
    Effect.gen(function* () {
      const failing = (error: unknown) =>
        Effect.map(Effect.flip(Effect.tryPromise(() => Promise.reject(error))), Failure.fromUnknown)
      const failed = yield* failing(fetching("fetch failed"))
      expect(failed.className).toBe("UnknownError")
      expect(of(failed)).toBe(of(yield* failing(fetching("something else"))))
      expect(of(failed)).toBe(of(Failure.fromUnknown(fetching("fetch failed"))))
      expect(of(failed)).not.toBe(of(yield* failing(new RangeError("fetch failed"))))
    })
  )

  it("OPS-03 a function of the user's may group; one that throws or answers with no short text has no say", () => {
    const failure = traced("503", "    at charge (/app/payments/charge.ts:12:7)")
    const seen: Array<FailureToGroup> = []
    const own = (given: FailureToGroup) => {
      seen.push(given)
      return `gateway ${given.frame}`
    }
    expect(of(failure, own)).toBe("own-gateway charge payments/charge.ts")
    expect(seen[0]).toMatchObject({
      exceptionClass: "GatewayDown",
      message: "503",
      originalTopic: "orders",
      causes: []
    })
    const usual = of(failure)
    const answers: ReadonlyArray<unknown> = [undefined, null, 7, "", " ", "x".repeat(129), {}, Promise.resolve("x")]
    for (const answer of answers) expect(of(failure, () => answer as string)).toBe(usual)
    expect(
      of(failure, () => {
        throw new Error("no")
      })
    ).toBe(usual)
  })

  it("OPS-02 any value that is thrown has a fingerprint, and a chain of causes within 1 KiB that can be read", () => {
    const endless = {
      get cause(): unknown {
        return Object.assign(Object.create(endless), { message: "x".repeat(200) })
      },
      get stack(): string {
        throw new Error("getter")
      }
    }
    const check = (value: unknown) => {
      const failure = Failure.fromUnknown(value)
      expect(Fingerprint.isFingerprint(of(failure))).toBe(true)
      const bytes = CauseChain.write(failure.causes)
      expect(bytes.length).toBeLessThanOrEqual(1_024)
      const read = CauseChain.read(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
      expect(read.length).toBeLessThanOrEqual(10)
      return read
    }
    expect(check(endless)).toHaveLength(10)
    const cyclic = new Error("a")
    cyclic.cause = new Error("b", { cause: cyclic })
    expect(check(cyclic)).toEqual([{ className: "Error", message: "b" }])
    fc.assert(fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (cause) => void check({ cause })))
    const named = fc.record({
      _tag: fc.string({ unit: "binary", maxLength: 400, size: "max" }),
      message: fc.string({ maxLength: 3_000, size: "max" })
    })
    fc.assert(
      fc.property(fc.array(named, { maxLength: 12 }), (links) => {
        const chain = links.reduce<object>((cause, link) => ({ ...link, cause }), {})
        check({ cause: chain })
      })
    )
  })
})

describe("the chain of causes", () => {
  it("OPS-02 cuts long messages, and keeps the class and the message of the last cause as long as it can", () => {
    const links = ["Outer", "Middle", "Root"].map((className) => ({ className, message: "é".repeat(2_000) }))
    const read = CauseChain.read(new TextDecoder().decode(CauseChain.write(links)))
    expect(read.map(({ className }) => className)).toEqual(["Outer", "Middle", "Root"])
    for (const { message } of read) expect(message).toBe("é".repeat(128))
    const short = [{ className: "Error", message: "connect ECONNREFUSED 10.0.0.7:443" }]
    expect(new TextDecoder().decode(CauseChain.write(short))).toBe(
      '[{"className":"Error","message":"connect ECONNREFUSED 10.0.0.7:443"}]'
    )
  })

  it("OPS-02 what is malformed in the header is left out", () => {
    for (const text of ["", "{", "null", "7", '{"className":"A","message":"m"}'])
      expect(CauseChain.read(text)).toEqual([])
    const mixed =
      '[null, 7, {"className":"A"}, {"className":"A","message":7}, {"className":"B","message":"m","more":1}]'
    expect(CauseChain.read(mixed)).toEqual([{ className: "B", message: "m" }])
  })
})
