import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import * as CompactMark from "../../src/internal/record/compactMark.ts"
import * as Names from "../../src/internal/record/headerNames.ts"
import {
  attemptsInTier,
  headersFor,
  ofMainTopic,
  ofRetryTopic,
  positionOf,
  publishedMillis
} from "../../src/internal/record/retryState.ts"
import { make } from "../../src/internal/retry/tiers.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as TopicName from "../../src/TopicName.ts"

const encoder = new TextEncoder()
const tiers = make({ topic: "orders", groupId: "billing" }, TopicName.standard, RetryPolicy.tiered().tiers)
const reader = { topic: "orders", tiers }
const record = (headers: ReadonlyArray<readonly [string, string | Uint8Array | null]>): ConsumerRecord => ({
  topic: "orders.retry-1",
  partition: 3,
  offset: 41n,
  timestamp: 1_000,
  key: null,
  value: null,
  headers: headers.map(([key, value]) => ({ key, value: typeof value === "string" ? encoder.encode(value) : value }))
})
const read = (headers: Parameters<typeof record>[0], tier = 1) =>
  ofRetryTopic(record(headers), tiers.topicOf(tier), reader)

const names = [
  ...[Names.retryTier, Names.retryAttempt, Names.retryTimestamp, Names.totalAttempts, Names.firstFailureTimestamp],
  ...[
    Names.originalTopic,
    Names.originalPartition,
    Names.originalOffset,
    Names.originalTimestamp,
    Names.compactMark,
    Names.runId,
    Names.tierException(0),
    "constructor",
    "__proto__"
  ]
]
const value = fc.oneof(
  fc.constant(null),
  fc.uint8Array({ maxLength: 40 }),
  fc.oneof(fc.string(), fc.bigInt().map(String), fc.double().map(String)).map((text) => encoder.encode(text))
)
const hostileHeaders = fc.array(fc.tuple(fc.constantFrom(...names), value))

describe("retry state in a record's headers", () => {
  it("RTY-13 RTY-14 RTY-15 written state is read again", () => {
    const state = {
      origin: { topic: "orders", partition: 5, offset: 9_007_199_254_740_993n, timestamp: 77 },
      tier: 2,
      attempt: 2,
      publishedMillis: 123_456,
      totalAttempts: 10,
      firstFailureMillis: 99,
      trail: [
        { tier: 0, exceptionClass: "Boom", exhaustedAtMillis: 100, attempts: 3 },
        { tier: 1, exceptionClass: "Bäm", exhaustedAtMillis: 200, attempts: 4 }
      ],
      replayCount: 0
    }
    const copy = { ...record([]), headers: headersFor(record([["mine", "1"]]), state) }
    expect(ofRetryTopic(copy, tiers.topicOf(2), reader)).toEqual(state)
    expect(attemptsInTier(state)).toBe(3)
    const again = headersFor(copy, state)
    expect(again).toEqual(copy.headers)
  })

  it("RTY-16 ruling 14 retry headers on the main topic are ignored", () => {
    const forged = record([
      [Names.retryTier, "3"],
      [Names.totalAttempts, "1000"],
      [Names.originalTopic, "else"]
    ])
    expect(ofMainTopic(forged)).toMatchObject({
      tier: 0,
      attempt: 1,
      totalAttempts: 0,
      trail: [],
      origin: { topic: "orders.retry-1" }
    })
  })

  it("RTY-16 ruling 14 C02 malformed values fall back to the record's timestamp and attempt 1", () => {
    for (const bad of [
      "-1",
      "abc",
      "",
      "1e400",
      " 5",
      "NaN",
      "1.5",
      "99999999999999999999999",
      new Uint8Array(8),
      null
    ]) {
      expect(read([[Names.retryTimestamp, bad]]).publishedMillis).toBe(1_000)
      expect(publishedMillis(record([[Names.retryTimestamp, bad]]))).toBe(1_000)
      expect(read([[Names.retryAttempt, bad]]).attempt).toBe(1)
      expect(read([[Names.retryTier, bad]]).tier).toBe(1)
      expect(read([[Names.totalAttempts, bad]]).totalAttempts).toBe(0)
    }
    expect(read([[Names.retryAttempt, "4"]]).attempt).toBe(1)
    expect(read([[Names.retryTier, "99"]], 2).tier).toBe(2)
    const half = read([
      [Names.originalTopic, "orders"],
      [Names.originalPartition, "1"]
    ])
    expect(half.origin).toMatchObject({ topic: "orders.retry-1", partition: 3, offset: 41n })
  })

  it("the last of several values counts", () => {
    const twice = [
      [Names.retryTimestamp, "5"],
      [Names.retryTimestamp, "6"]
    ] as const
    expect(read(twice).publishedMillis).toBe(6)
    expect(publishedMillis(record(twice))).toBe(6)
  })

  it("hostile headers never throw, and their values stay within range", () => {
    fc.assert(
      fc.property(hostileHeaders, fc.integer({ min: 1, max: 3 }), (headers, tier) => {
        const state = read(headers, tier)
        expect(state.tier).toBe(tier)
        expect(state.attempt >= 1 && state.attempt <= 3).toBe(true)
        expect(Number.isSafeInteger(state.totalAttempts) && state.totalAttempts >= 0).toBe(true)
        expect(state.publishedMillis >= 0 && state.publishedMillis <= 8_640_000_000_000_000).toBe(true)
        expect(TopicName.illegal(state.origin.topic)).toBeUndefined()
        headersFor(record(headers), state)
      })
    )
  })

  it("RTY-16 ruling 14 a handler sees origin, tier and delivery of the retry state, whatever the headers are", () => {
    const compact = CompactMark.header("orders.retry-2", "billing", {
      tier: encoder.encode("3"),
      attempt: encoder.encode("2")
    })
    // Tier 3 shares the topic of tier 2.
    const topicOf = (tier: number) => ({ ...tiers.topicOf(tier), last: Math.max(tier, 3) })
    const seen = (from: ConsumerRecord, tier: number) => {
      const { origin, tier: at, attempt } = positionOf(from, topicOf(tier), reader)
      return { origin, tier: at, attempt }
    }
    const known = (from: ConsumerRecord, tier: number) => {
      const { origin, tier: at, attempt } = ofRetryTopic(from, topicOf(tier), reader)
      return { origin, tier: at, attempt }
    }
    const copied = record([
      [Names.originalTopic, "orders"],
      [Names.originalPartition, "5"],
      [Names.originalOffset, "9"]
    ])
    const marked = { ...copied, topic: "orders.retry-2", headers: [...copied.headers, compact] }
    const origin = { topic: "orders", partition: 5, offset: 9n, timestamp: 1_000 }
    expect(seen(marked, 2)).toEqual({ origin, tier: 3, attempt: 2 })
    fc.assert(
      fc.property(hostileHeaders, fc.integer({ min: 1, max: 3 }), (headers, tier) => {
        expect(seen(record(headers), tier)).toEqual(known(record(headers), tier))
      })
    )
  })

  it("headers are not read for a handler that does not ask for its position", () => {
    const unread = {
      ...record([]),
      get headers(): never {
        throw new Error("read")
      }
    }
    const position = positionOf(unread, tiers.topicOf(1), reader)
    expect(() => position.tier).toThrow("read")
  })
})
