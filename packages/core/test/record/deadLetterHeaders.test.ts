import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Header } from "../../src/ConsumerRecord.ts"
import type * as Failure from "../../src/Failure.ts"
import * as DeadLetterHeaders from "../../src/internal/record/deadLetterHeaders.ts"
import { Undecodable } from "../../src/internal/record/decoding.ts"
import * as Names from "../../src/internal/record/headerNames.ts"
import { DecodeFailure } from "../../src/Serde.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const read = (bytes: Uint8Array | null | undefined) =>
  new TextDecoder("utf-8", { fatal: true }).decode(bytes ?? undefined)
const valueOf = (headers: ReadonlyArray<Header>, key: string) => {
  const found = headers.filter((header) => header.key === key)
  return found.length === 1 ? read(found[0]!.value) : `occurs ${found.length} times`
}
const keys = (headers: ReadonlyArray<Header>) => headers.map((header) => header.key)

const failure: Failure.Failure = {
  className: "GatewayDown",
  message: "503 from the gateway",
  stackTrace: "GatewayDown: 503\n    at charge",
  tag: "GatewayDown",
  error: undefined,
  causes: []
}
const record = {
  topic: "orders",
  partition: 3,
  offset: 2n ** 62n + 1n,
  timestamp: 1_700_000_000_123,
  key: null,
  value: null,
  headers: [] as ReadonlyArray<Header>
}
const letter: DeadLetterHeaders.DeadLetter = {
  record,
  origin: record,
  reason: "RETRIES_EXHAUSTED",
  failure,
  tier: 2,
  totalAttempts: 12,
  firstFailureMillis: 1_700_000_001_000,
  trail: [
    { tier: 0, exceptionClass: "GatewayDown", exhaustedAtMillis: 1_700_000_001_300, attempts: 3 },
    { tier: 2, exceptionClass: "RateLimited", exhaustedAtMillis: 1_700_000_200_000, attempts: 9 }
  ],
  replayCount: 0,
  nowMillis: 1_700_000_200_001
}
const withHeaders = (headers: ReadonlyArray<Header>) =>
  DeadLetterHeaders.make({ ...letter, record: { ...record, headers } })
const withFailure = (change: Partial<Failure.Failure>) =>
  DeadLetterHeaders.make({ ...letter, failure: { ...failure, ...change } })

const headerKey = fc.oneof(
  fc.constantFrom("traceparent", "", "constructor", "__proto__", "toString", "a"),
  fc.constantFrom(Names.retryTier, Names.totalAttempts, Names.originalTopic, Names.tierException(7), Names.dltReason),
  fc.constantFrom(Names.replayCount, Names.replayGroup, "x-eventbus-of-somebody-else"),
  fc.string()
)
const header = fc.record({ key: headerKey, value: fc.option(fc.uint8Array({ maxLength: 20 })) })

describe("deadLetterHeaders", () => {
  it("DLT-04 DLT-05 DLT-06 DLT-07 DLT-08 DLT-09 writes all headers, in order, as decimal and UTF-8 text", () => {
    const headers = DeadLetterHeaders.make(letter)
    expect(headers.map(({ key, value }) => [key, read(value)])).toEqual([
      ["x-eventbus-original-topic", "orders"],
      ["x-eventbus-original-partition", "3"],
      ["x-eventbus-original-offset", "4611686018427387905"],
      ["x-eventbus-original-timestamp", "1700000000123"],
      ["x-eventbus-dlt-reason", "RETRIES_EXHAUSTED"],
      ["x-eventbus-dlt-timestamp", "1700000200001"],
      ["x-eventbus-total-attempts", "12"],
      ["x-eventbus-first-failure-timestamp", "1700000001000"],
      ["x-eventbus-last-exception-class", "GatewayDown"],
      ["x-eventbus-last-exception-message", "503 from the gateway"],
      ["x-eventbus-last-exception-stacktrace", "GatewayDown: 503\n    at charge"],
      ["x-eventbus-last-exception-fingerprint", "v1-2a2eaef4d86f8c69"],
      ["x-eventbus-retry-tier", "2"],
      ["x-eventbus-tier0-exception", "GatewayDown"],
      ["x-eventbus-tier0-exhausted-at", "1700000001300"],
      ["x-eventbus-tier0-attempts", "3"],
      ["x-eventbus-tier2-exception", "RateLimited"],
      ["x-eventbus-tier2-exhausted-at", "1700000200000"],
      ["x-eventbus-tier2-attempts", "9"]
    ])
  })

  it("DLT-03 DLT-09 DLT-16 the user's headers keep order, repeats and bytes; each x-eventbus header occurs once", () => {
    fc.assert(
      fc.property(fc.array(header, { maxLength: 30 }), (incoming) => {
        const headers = withHeaders(incoming)
        const isOurs = ({ key }: Header) => key.startsWith(Names.prefix)
        expect(headers.filter((h) => !isOurs(h))).toEqual(incoming.filter((h) => !isOurs(h)))
        const ours = keys(headers.filter(isOurs))
        expect(new Set(ours).size).toBe(ours.length)
        // Claims of incoming headers do not change the connector's headers (ruling 14).
        const account = keys(DeadLetterHeaders.make(letter))
        expect(headers.filter(({ key }) => account.includes(key))).toEqual(DeadLetterHeaders.make(letter))
      })
    )
  })

  it("C02 forged retry headers are dropped, trail of other tiers included; a claimed replay too", () => {
    const headers = withHeaders([
      { key: "x-eventbus-retry-tier", value: utf8("3") },
      { key: "x-eventbus-total-attempts", value: utf8("1000") },
      { key: "x-eventbus-tier9-exception", value: utf8("Forged") },
      { key: "x-eventbus-binding-name", value: utf8("forged") },
      { key: "x-eventbus-replay-count", value: utf8("1") },
      { key: "x-eventbus-replay-group", value: utf8("billing") },
      { key: "x-eventbus-replay-count", value: utf8("2") }
    ])
    expect(valueOf(headers, "x-eventbus-retry-tier")).toBe("2")
    expect(valueOf(headers, "x-eventbus-total-attempts")).toBe("12")
    expect(keys(headers)).not.toContain("x-eventbus-tier9-exception")
    expect(keys(headers)).not.toContain("x-eventbus-binding-name")
    expect(keys(headers)).not.toContain("x-eventbus-replay-count")
    expect(keys(headers)).not.toContain("x-eventbus-replay-group")
  })

  it("C08 null stays null and zero-length stays zero-length, whatever the name", () => {
    const incoming: ReadonlyArray<Header> = [
      { key: "a", value: null },
      { key: "traceparent", value: null },
      { key: "x-eventbus-original-topic", value: null },
      { key: "", value: utf8("empty-name") },
      { key: "b", value: new Uint8Array() }
    ]
    expect(withHeaders(incoming).slice(0, 4)).toEqual(incoming.filter(({ key }) => key !== "x-eventbus-original-topic"))
    expect(valueOf(withHeaders(incoming), "x-eventbus-original-topic")).toBe("orders")
  })

  it("DLT-10 message is cut to 1 KiB and stack trace to 2 KiB, in bytes, on a character boundary", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 4000, size: "max" }), (given) => {
        const headers = withFailure({ message: given, stackTrace: given })
        for (const [key, limit] of [
          [Names.lastExceptionMessage, 1024],
          [Names.lastExceptionStacktrace, 2048]
        ] as const) {
          const kept = valueOf(headers, key)
          expect(given.startsWith(kept)).toBe(true)
          expect(utf8(kept).length).toBeLessThanOrEqual(limit)
          // As much as fits: nothing is cut from a short text, and one more character would be too much for a long one.
          const next = String.fromCodePoint(given.codePointAt(kept.length) ?? 0)
          if (kept !== given) expect(utf8(kept + next).length).toBeGreaterThan(limit)
        }
      }),
      { examples: [["€".repeat(1000)], ["😀".repeat(1000)], [`a${"😀".repeat(1000)}`], ["x".repeat(4000)], [""]] }
    )
  })

  it("DLT-09 text that UTF-8 cannot carry is replaced, never refused", () => {
    expect(valueOf(withFailure({ message: "half \uD83D gone" }), Names.lastExceptionMessage)).toBe("half \uFFFD gone")
  })

  it("C19 names the half that could not be decoded, and the path", () => {
    const valueFailure = new DecodeFailure({ serde: "json", path: '["items"][0]["price"]', detail: "Expected number" })
    const keyFailure = new DecodeFailure({ serde: "json", path: "", detail: "bad key" })
    const of = (key?: DecodeFailure, value?: DecodeFailure) => {
      const undecodable = new Undecodable(key, value)
      const headers = DeadLetterHeaders.make({ ...letter, reason: "NON_RETRYABLE", undecodable })
      return [valueOf(headers, Names.decodeTarget), valueOf(headers, Names.decodePath)]
    }
    expect(of(keyFailure)).toEqual(["key", "occurs 0 times"])
    expect(of(undefined, valueFailure)).toEqual(["value", '["items"][0]["price"]'])
    expect(of(keyFailure, valueFailure)).toEqual(["both", '["items"][0]["price"]'])
    expect(keys(DeadLetterHeaders.make(letter))).not.toContain(Names.decodeTarget)
  })

  it("DLT-10 without forensic headers, the headers that a replay and an operator need stay", () => {
    const headers = withHeaders([{ key: "traceparent", value: utf8("00-1") }])
    const smaller = DeadLetterHeaders.withoutDiagnostics(headers)
    expect(keys(smaller)).toEqual([
      "traceparent",
      "x-eventbus-original-topic",
      "x-eventbus-original-partition",
      "x-eventbus-original-offset",
      "x-eventbus-original-timestamp",
      "x-eventbus-dlt-reason",
      "x-eventbus-dlt-timestamp",
      "x-eventbus-total-attempts",
      "x-eventbus-first-failure-timestamp",
      "x-eventbus-last-exception-class",
      "x-eventbus-last-exception-fingerprint",
      "x-eventbus-retry-tier"
    ])
    expect(smaller.length).toBeLessThan(headers.length)
  })
})
