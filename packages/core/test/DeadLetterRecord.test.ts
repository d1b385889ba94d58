import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ConsumerRecord, Header } from "../src/ConsumerRecord.ts"
import * as DeadLetterRecord from "../src/DeadLetterRecord.ts"
import * as Failure from "../src/internal/failure/failure.ts"
import * as CopyOwner from "../src/internal/record/copyOwner.ts"
import * as DeadLetterHeaders from "../src/internal/record/deadLetterHeaders.ts"
import * as Names from "../src/internal/record/headerNames.ts"
import * as HeaderSets from "../src/internal/record/headerSets.ts"
import * as ReplayHeaders from "../src/internal/record/replayHeaders.ts"
import * as RetryState from "../src/internal/record/retryState.ts"
import * as TrimmedHeaders from "../src/internal/record/trimmedHeaders.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const header = (key: string, value: string | Uint8Array | null): Header => ({
  key,
  value: typeof value === "string" ? utf8(value) : value
})
const record = (headers: ReadonlyArray<Header>): ConsumerRecord => ({
  ...{ topic: "orders.DLT", partition: 1, offset: 5n, timestamp: 1_000, key: null, value: null },
  headers
})
const valueOf = (headers: ReadonlyArray<Header>, key: string) => {
  const found = headers.filter((each) => each.key === key)
  return found.length === 1 ? found[0]!.value : `occurs ${found.length} times`
}
const textOf = (headers: ReadonlyArray<Header>, key: string) => {
  const value = valueOf(headers, key)
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : value
}
const bytesOf = (headers: ReadonlyArray<Header>, key: string) => {
  const value = valueOf(headers, key)
  return value instanceof Uint8Array ? Array.from(value) : value
}

const keysOf = (headers: ReadonlyArray<Header>) => headers.map(({ key }) => key)

const letter: DeadLetterHeaders.DeadLetter = {
  record: { ...record([]), topic: "orders", partition: 3 },
  origin: { topic: "orders", partition: 258, offset: 2n ** 62n + 1n, timestamp: 1_700_000_000_123 },
  reason: "NON_RETRYABLE",
  failure: Failure.fromUnknown(new RangeError("no", { cause: new TypeError("deeper") })),
  tier: 2,
  totalAttempts: 12,
  firstFailureMillis: 1_700_000_001_000,
  trail: [
    { tier: 0, exceptionClass: "Down", exhaustedAtMillis: 10, attempts: 3 },
    { tier: 2, exceptionClass: 'Quo"te', exhaustedAtMillis: 20, attempts: 9 }
  ],
  replayCount: 0,
  nowMillis: 1_700_000_200_001
}

const target = { clusterId: "cluster", topic: "orders", partition: 1, timestamp: 1_000 }
const reader = (groupId: string, clusterId = "cluster") => ({ clusterId, groupId, adopts: [] })

const hostile = fc.oneof(
  fc.constantFrom("99999999999999999999", "-1", "NaN", "1e400", "Infinity", "", " 1", "1.5", "0x10", "٣", "2147483648"),
  fc.constantFrom(
    "9223372036854775807",
    "9223372036854775808",
    "8640000000000001",
    "orders",
    "no/topic",
    "constructor"
  ),
  fc.uint8Array({ maxLength: 30 }),
  fc.constant(null)
)
const names = fc.oneof(
  fc.constantFrom(
    ...[Names.originalTopic, Names.originalPartition, Names.originalOffset, Names.originalTimestamp, Names.dltReason],
    ...[Names.dltTimestamp, Names.totalAttempts, Names.firstFailureTimestamp, Names.lastExceptionClass],
    ...[Names.lastExceptionCause, Names.lastExceptionFingerprint, Names.lastExceptionStacktrace],
    ...[Names.lastExceptionMessage, Names.replayCount, Names.replayGroup, Names.retryTier, Names.trailJson],
    ...["x-eventbus-tier99999999999-exception", "x-eventbus-tier-1-exception", Names.tierException(3)],
    ...["kafka_dlt-original-topic", "kafka_dlt-original-partition", "kafka_dlt-original-offset"],
    ...["kafka_original-topic", "kafka_original-partition", "kafka_original-offset", "kafka_original-timestamp"],
    ...["constructor", "__proto__", "toString", "retry-count", "original-topic"]
  ),
  fc.string()
)
const headers = fc
  .array(fc.record({ key: names, value: hostile }), { maxLength: 40 })
  .map((all) => all.map(({ key, value }) => header(key, value)))

describe("DeadLetterRecord", () => {
  it("DLT-22 all written fields are read again: exact offsets, attempts per tier", () => {
    const read = DeadLetterRecord.read(record([header("mine", "1"), ...DeadLetterHeaders.make(letter)]))
    expect(read).toMatchObject({
      originFrom: "eventbus",
      originalTopic: "orders",
      originalPartition: 258,
      originalOffset: 4611686018427387905n,
      originalTimestamp: 1_700_000_000_123,
      key: null,
      value: null,
      dltReason: "NON_RETRYABLE",
      dltTimestamp: 1_700_000_200_001,
      totalAttempts: 12,
      firstFailureTimestamp: 1_700_000_001_000,
      lastExceptionClass: "RangeError",
      lastExceptionMessage: "no",
      replayCount: 0
    })
    expect(read.tierHistory).toEqual([
      { tier: 0, exceptionClass: "Down", exhaustedAt: 10, attempts: 3 },
      { tier: 2, exceptionClass: 'Quo"te', exhaustedAt: 20, attempts: 9 }
    ])
    expect(read.headers[0]).toEqual(header("mine", "1"))
  })

  it("OPS-02 the causes and the group are read; what an older version made without them has the same group", () => {
    const written = DeadLetterHeaders.make(letter)
    const read = DeadLetterRecord.read(record(written))
    expect(read.cause).toEqual([{ className: "TypeError", message: "deeper" }])
    expect(read.fingerprint).toBe(textOf(written, Names.lastExceptionFingerprint))
    const isNew = ({ key }: Header) => key === Names.lastExceptionCause || key === Names.lastExceptionFingerprint
    const older = DeadLetterRecord.read(record(written.filter((each) => !isNew(each))))
    expect([older.cause, older.fingerprint]).toEqual([[], read.fingerprint])
    for (const failure of [new Error("order 17"), "order 17", { code: 17 }]) {
      const other = DeadLetterHeaders.make({ ...letter, failure: Failure.fromUnknown(failure) })
      const [own, made] = [other, other.filter((each) => !isNew(each))].map((all) => DeadLetterRecord.read(record(all)))
      expect(made?.fingerprint).toBe(own?.fingerprint)
    }
  })

  it("OPS-02 ruling 89 headers of an earlier failure that an older version carried over say nothing about this one", () => {
    const isNew = ({ key }: Header) => key === Names.lastExceptionCause || key === Names.lastExceptionFingerprint
    const earlier = DeadLetterHeaders.make({ ...letter, failure: Failure.fromUnknown(new Error("e", { cause: 1 })) })
    const older = DeadLetterHeaders.make({ ...letter, failure: Failure.fromUnknown("another reason") })
    const later = older.filter((each) => !isNew(each))
    const read = DeadLetterRecord.read(record([...earlier.filter(isNew), ...later]))
    expect(read.cause).toEqual([])
    expect(read.fingerprint).toBe(textOf(older, Names.lastExceptionFingerprint))
    const trimmed = TrimmedHeaders.trim([...earlier.filter(isNew), ...later], 3)
    expect(DeadLetterRecord.read(record(trimmed)).cause).toEqual([])
    expect(keysOf(DeadLetterHeaders.carriedOver([...earlier, header("mine", "1")]))).toEqual(["mine"])
  })

  it("OPS-03 a group that a newer release named stays, and a header that is no group is not believed", () => {
    const made = DeadLetterHeaders.make(letter)
    const usual = textOf(made, Names.lastExceptionFingerprint)
    const withGroup = (group: string | null) =>
      DeadLetterRecord.read(record([...made, header(Names.lastExceptionFingerprint, group)])).fingerprint
    for (const group of ["v2-abc", "v1-0123456789abcdef", "own-my group"]) expect(withGroup(group)).toBe(group)
    for (const group of ["", "abc", "own-", `own-${"x".repeat(129)}`, "v1-<script>", null])
      expect(withGroup(group)).toBe(usual)
  })

  it("DLT-10 OPS-02 a copy that its topic refuses as too large loses its causes first, and its group later", () => {
    const made = DeadLetterHeaders.make(letter)
    const kept = [1, 2].map((times) => keysOf(TrimmedHeaders.trim(made, times)))
    expect(kept[0]).toContain(Names.lastExceptionFingerprint)
    expect(kept[0]).not.toContain(Names.lastExceptionCause)
    expect(kept[1]).not.toContain(Names.lastExceptionFingerprint)
  })

  it("DLT-22 a record without headers has defaults and no origin", () => {
    expect(DeadLetterRecord.read(record([]))).toMatchObject({
      ...{ originFrom: "none", originalTopic: "orders.DLT", originalPartition: 1, originalOffset: 5n },
      ...{ dltReason: undefined, dltTimestamp: 1_000, totalAttempts: 0, firstFailureTimestamp: 1_000 },
      ...{ lastExceptionClass: "unknown", lastExceptionMessage: "", tierHistory: [], replayCount: 0 }
    })
  })

  it("ruling 14 SEC-03 reading any headers never throws, and every number is usable", () => {
    fc.assert(
      fc.property(headers, (given) => {
        const read = DeadLetterRecord.read(record(given))
        const times = [read.originalTimestamp, read.dltTimestamp, read.firstFailureTimestamp]
        for (const millis of times) expect(Number.isFinite(new Date(millis).getTime())).toBe(true)
        for (const count of [read.totalAttempts, read.replayCount, read.originalPartition]) {
          expect(Number.isSafeInteger(count) && count >= 0).toBe(true)
        }
        expect(read.originalOffset >= 0n && read.originalOffset < 2n ** 63n).toBe(true)
        expect(/^[a-zA-Z0-9._-]{1,249}$/.test(read.originalTopic)).toBe(true)
        expect(read.lastExceptionClass).not.toBe("")
        expect(read.headers).toEqual(given)
        const copy = ReplayHeaders.forSource(read, "billing", target)
        const ours = copy.map(({ key }) => key).filter((key) => key.startsWith(Names.prefix))
        expect(new Set(ours).size).toBe(ours.length)
        expect(textOf(copy, Names.replayCount)).toBe(String(read.replayCount + 1))
        // A replayed copy starts anew: nothing of it is taken for the account of a dead letter.
        expect(DeadLetterRecord.read(record(copy))).toMatchObject({
          dltReason: undefined,
          totalAttempts: 0,
          tierHistory: []
        })
      }),
      { numRuns: 500 }
    )
  })

  it("an incomplete origin counts as none", () => {
    const own = [header(Names.originalTopic, "orders"), header(Names.originalPartition, "0")]
    expect(DeadLetterRecord.read(record(own)).originFrom).toBe("none")
  })
})

describe("headers of other systems", () => {
  it("DLT-14 ruling 60 Spring's plain form: names, int32 and int64 big-endian, text in UTF-8", () => {
    const all = HeaderSets.make(letter, "billing", { spring: "plain" })
    expect(textOf(all, "kafka_dlt-original-topic")).toBe("orders")
    expect(bytesOf(all, "kafka_dlt-original-partition")).toEqual([0, 0, 1, 2])
    expect(bytesOf(all, "kafka_dlt-original-offset")).toEqual([0x40, 0, 0, 0, 0, 0, 0, 1])
    expect(bytesOf(all, "kafka_dlt-original-timestamp")).toEqual([0, 0, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x7b])
    expect(textOf(all, "kafka_dlt-original-timestamp-type")).toBe("CreateTime")
    expect(textOf(all, "kafka_dlt-original-consumer-group")).toBe("billing")
    expect(textOf(all, "kafka_dlt-exception-fqcn")).toBe("RangeError")
    expect(textOf(all, "kafka_dlt-exception-cause-fqcn")).toBe("TypeError")
    expect(textOf(all, "kafka_dlt-exception-message")).toBe("no")
    expect(textOf(all, "kafka_dlt-exception-stacktrace")).toContain("RangeError: no")
    expect(all.some(({ key }) => key.startsWith("retry_topic-") || key.startsWith("kafka_original"))).toBe(false)
    expect(textOf(all, Names.originalTopic)).toBe("orders")
  })

  it("DLT-14 ruling 60 Spring's form with retry topics: integers of minimal length", () => {
    const all = HeaderSets.make(letter, "billing", { spring: "retry-topic" })
    expect(textOf(all, "kafka_original-topic")).toBe("orders")
    expect(bytesOf(all, "kafka_original-partition")).toEqual([0, 0, 1, 2])
    expect(textOf(all, "kafka_dlt-original-consumer-group")).toBe("billing")
    expect(textOf(all, "kafka_exception-fqcn")).toBe("RangeError")
    expect(bytesOf(all, "retry_topic-attempts")).toEqual([0, 0, 0, 12])
    expect(bytesOf(all, "retry_topic-original-timestamp")).toEqual([0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x7b])
    const at = (timestamp: number) =>
      bytesOf(
        HeaderSets.make({ ...letter, origin: { ...letter.origin, timestamp } }, "g", {
          spring: "retry-topic"
        }),
        "retry_topic-original-timestamp"
      )
    expect([0, 127, 128, 255, 256, 32768].map(at)).toEqual([[0], [127], [0, 128], [0, 255], [1, 0], [0, 128, 0]])
    expect(at(-1)).toEqual([255])
  })

  it("DLT-14 ruling 25 dead letters of Spring are read in both forms; our headers win, and of repeats the first", () => {
    for (const spring of ["plain", "retry-topic"] as const) {
      const isOurs = ({ key }: Header) => key.startsWith(Names.prefix)
      const all = HeaderSets.make(letter, "billing", { spring })
      const theirs = all.filter((each) => !isOurs(each))
      const again = HeaderSets.make({ ...letter, origin: { ...letter.origin, topic: "later" } }, "billing", {
        spring
      })
      const read = DeadLetterRecord.read(record([...theirs, ...again.filter((each) => !isOurs(each))]))
      expect(read).toMatchObject({
        ...{ originFrom: "spring", originalTopic: "orders", originalPartition: 258 },
        ...{ originalOffset: 4611686018427387905n, originalTimestamp: 1_700_000_000_123 },
        ...{ lastExceptionClass: "TypeError", lastExceptionMessage: "no" }
      })
      expect(DeadLetterRecord.read(record(all)).originFrom).toBe("eventbus")
    }
  })

  it("DLT-22 a letter of Spring's has its deliveries: the header counts the one that would follow, and the last of repeats counts", () => {
    const origin = HeaderSets.make(letter, "billing", { spring: "retry-topic" }).filter(
      ({ key }) => !key.startsWith(Names.prefix) && key !== "retry_topic-attempts"
    )
    const attempts = (...values: ReadonlyArray<ReadonlyArray<number>>) =>
      DeadLetterRecord.read(
        record([...origin, ...values.map((bytes) => header("retry_topic-attempts", Uint8Array.from(bytes)))])
      ).totalAttempts
    expect(attempts([0, 0, 0, 2], [0, 0, 0, 3], [0, 0, 0, 5])).toBe(4)
    expect(attempts([0, 0, 0, 2])).toBe(1)
    expect([attempts(), attempts([0, 0, 0, 0]), attempts([2]), attempts([255, 0, 0, 1])]).toEqual([0, 0, 0, 0])
  })

  it("DLT-22 numbers in Spring's headers are told in decimals, and no other header is", () => {
    const number = (key: string, ...bytes: ReadonlyArray<number>) =>
      DeadLetterRecord.springNumber(header(key, Uint8Array.from(bytes)))
    expect(number("kafka_original-partition", 0, 0, 1, 2)).toBe("258")
    expect(number("kafka_dlt-original-offset", 0, 0, 0, 0, 0, 0, 1, 0)).toBe("256")
    expect(number("retry_topic-attempts", 0, 0, 0, 5)).toBe("5")
    expect(number("retry_topic-backoff-timestamp", 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x7b)).toBe("1700000000123")
    expect(number("kafka_original-partition", 0x33)).toBeUndefined()
    expect(number("kafka_original-topic", 0, 0, 0, 5)).toBeUndefined()
    expect(number("mine", 0, 0, 0, 5)).toBeUndefined()
    expect(DeadLetterRecord.springNumber(header("retry_topic-attempts", null))).toBeUndefined()
  })

  it("DLT-22 a value that Spring could not read is its bytes again, without the type of Spring's text in Base64", () => {
    const className = "kafka_exception-fqcn"
    const origin = HeaderSets.make(letter, "billing", { spring: "retry-topic" }).filter(
      ({ key }) => !key.startsWith(Names.prefix) && key !== className && key !== "kafka_exception-cause-fqcn"
    )
    const read = (value: string | null, type: string, error: string, more: ReadonlyArray<Header> = []) => {
      const headers = [header("mine", "1"), ...more, ...origin, header(className, error), header("__TypeId__", type)]
      const stored = { ...record(headers), value: value === null ? null : utf8(value) }
      const { value: bytes, headers: kept, record: raw } = DeadLetterRecord.read(stored)
      expect(raw).toBe(stored)
      return [bytes && new TextDecoder().decode(bytes), kept.some(({ key }) => key === "__TypeId__")]
    }
    const fatal = "org.springframework.kafka.support.serializer.DeserializationException"
    expect(read('"eyJuIjoxMzAxMywgYnJva2Vu"', "[B", fatal)).toEqual(['{"n":13013, broken', false])
    expect(read('"eyJuIjoxMiwgYg=="', "[B", fatal)).toEqual(['{"n":12, b', false])
    expect(read('""', "[B", fatal)).toEqual(["", false])
    expect(read('"AQID"', "[B", "pay.Declined")).toEqual(['"AQID"', true])
    expect(read('"AQID"', "pay.Payment", fatal)).toEqual(['"AQID"', true])
    for (const value of ['"AQI"', '"AQ D"', '"AQ\\nI"', "AQID", '"', "", '"AQ=="AQID"', '"A-_D"', '"  AQID  "', null])
      expect(read(value, "[B", fatal), String(value)).toEqual([value, true])
    const replayed = ReplayHeaders.forSource(
      DeadLetterRecord.read({
        ...record([header("mine", "1"), ...origin, header(className, fatal), header("__TypeId__", "[B")]),
        value: utf8('"AQID"')
      }),
      "billing",
      target
    )
    expect(keysOf(replayed).filter((key) => !key.startsWith(Names.prefix))).toEqual(["mine"])
  })

  it("ruling 14 a time of Spring's that is no Date is unreadable, and the record's own time stands in its place", () => {
    const read = (spring: "plain" | "retry-topic", millis: bigint) => {
      const bytes = new Uint8Array(8)
      new DataView(bytes.buffer).setBigInt64(0, millis)
      const isTime = ({ key }: Header) => key === "kafka_original-timestamp" || key === "kafka_dlt-original-timestamp"
      const all = HeaderSets.make(letter, "billing", { spring }).filter(({ key }) => !key.startsWith(Names.prefix))
      return DeadLetterRecord.read(record(all.map((each) => (isTime(each) ? { ...each, value: bytes } : each))))
    }
    for (const spring of ["plain", "retry-topic"] as const) {
      for (const millis of [2n ** 63n - 1n, -(2n ** 63n), -1n, 2n ** 53n, 2n ** 53n + 1n, 8_640_000_000_000_001n]) {
        const { originFrom, originalTimestamp } = read(spring, millis)
        expect([originFrom, originalTimestamp], String(millis)).toEqual(["spring", 1_000])
      }
      for (const millis of [0n, 8_640_000_000_000_000n])
        expect(read(spring, millis).originalTimestamp).toBe(Number(millis))
    }
  })

  it("ruling 60 the last time of 64 bits does not turn into the first one in Spring's headers", () => {
    const last = [0x7f, ...Array.from({ length: 7 }, () => 0xff)]
    const late = { ...letter, origin: { ...letter.origin, timestamp: Number(2n ** 63n - 1n) } }
    const all = HeaderSets.make(late, "billing", { spring: "retry-topic" })
    expect(bytesOf(all, "kafka_original-timestamp")).toEqual(last)
    expect(bytesOf(all, "retry_topic-original-timestamp")).toEqual(last)
    const plain = HeaderSets.make(late, "billing", { spring: "plain" })
    expect(bytesOf(plain, "kafka_dlt-original-timestamp")).toEqual(last)
  })

  it("DLT-15 the five headers of the brokers package", () => {
    const all = HeaderSets.make(letter, "billing", { brokers: true })
    expect(
      ["original-topic", "exception-message", "exception-class", "failure-timestamp", "retry-count"].map((name) =>
        textOf(all, name)
      )
    ).toEqual(["orders", "no", "RangeError", "2023-11-14T22:16:40.001Z", "11"])
  })

  it("DLT-08 the trail as one JSON header", () => {
    const all = HeaderSets.make(letter, "billing", { trailJson: true })
    expect(JSON.parse(String(textOf(all, "x-eventbus-trail")))).toEqual([
      { tier: 0, exceptionClass: "Down", exhaustedAt: 10, attempts: 3 },
      { tier: 2, exceptionClass: 'Quo"te', exhaustedAt: 20, attempts: 9 }
    ])
  })

  it("DLT-09 a header set that is on replaces earlier values; one that is off leaves the user's headers unchanged", () => {
    fc.assert(
      fc.property(
        headers,
        fc.record({
          spring: fc.constantFrom("plain" as const, "retry-topic" as const, undefined),
          brokers: fc.boolean(),
          trailJson: fc.boolean()
        }),
        (given, sets) => {
          const all = HeaderSets.make({ ...letter, record: record(given) }, "billing", sets)
          const written = HeaderSets.make(letter, "billing", sets).map(({ key }) => key)
          for (const key of written) expect(all.filter((each) => each.key === key)).toHaveLength(1)
          const isFree = ({ key }: Header) =>
            !(key.startsWith("x-eventbus-") || written.includes(key)) &&
            !(sets.spring !== undefined && (key.startsWith("kafka_") || key.startsWith("retry_topic-")))
          expect(all.filter(isFree)).toEqual(given.filter(isFree))
        }
      )
    )
  })

  it("DLT-10 without forensic headers every set still has what a replay needs", () => {
    const all = HeaderSets.make(letter, "billing", { spring: "plain", brokers: true, trailJson: true })
    const smaller = TrimmedHeaders.trim(all, 1).map(({ key }) => key)
    expect(smaller).not.toContain("kafka_dlt-exception-stacktrace")
    expect(smaller).not.toContain("kafka_dlt-exception-message")
    expect(smaller).not.toContain("x-eventbus-trail")
    expect(smaller).toContain("kafka_dlt-original-offset")
    expect(smaller).toContain(Names.originalOffset)
  })

  it("ruling 71 the shortest form of a copy keeps owner, tier and delivery number, in fewer bytes than tier and number alone", () => {
    const own = header("mine", "1")
    const headers = [
      ...[own, header(Names.originalTopic, "orders"), header(Names.retryTier, "2"), header(Names.retryAttempt, "3")],
      CopyOwner.mark("orders.retry-2", "billing")
    ]
    const short = TrimmedHeaders.trim(headers, 4)
    expect(short).toHaveLength(2)
    expect(short[0]).toEqual(own)
    const size = (all: ReadonlyArray<Header>) =>
      all.reduce((sum, { key, value }) => sum + key.length + value!.length, 0)
    expect(size(short.slice(1))).toBeLessThan(size([header(Names.retryTier, "2"), header(Names.retryAttempt, "3")]))
    const copy = { ...record(short), topic: "orders.retry-2" }
    const billing = { groupId: "billing", adopts: [] }
    const shipping = { groupId: "shipping", adopts: [] }
    expect(CopyOwner.foreign(copy, billing)).toBeUndefined()
    expect(CopyOwner.foreign(copy, shipping)).toMatch(/^#[0-9a-f]{8}$/)
    expect(CopyOwner.foreign(copy, { ...shipping, adopts: ["billing"] })).toBeUndefined()
    // Made for another topic, it says nothing.
    expect(CopyOwner.foreign({ ...copy, topic: "mirror" }, shipping)).toBeUndefined()
    const { tier, attempt } = RetryState.ofRetryTopic(
      copy,
      { topic: "orders.retry-2", delayMillis: 1, first: 1, last: 3 } as never,
      { topic: "orders", tiers: { deliveries: () => 9, ofTopic: () => undefined } }
    )
    expect([tier, attempt]).toEqual([2, 3])
    const letter = {
      ...record(TrimmedHeaders.trim([CopyOwner.mark("orders.DLT", "billing")], 5)),
      topic: "orders.DLT"
    }
    expect(CopyOwner.foreign(letter, shipping)).toBeDefined()
    expect(CopyOwner.foreign(letter, billing)).toBeUndefined()
  })

  it("DLT-27 a replayed copy has no failure headers; headers with similar names stay", () => {
    const all = HeaderSets.make(letter, "billing", {
      spring: "retry-topic",
      brokers: true,
      trailJson: true
    })
    const copy = ReplayHeaders.forSource(
      DeadLetterRecord.read(record([header("mine", null), ...all])),
      "billing",
      target
    )
    expect(copy.map(({ key }) => key)).toEqual([
      ...["mine", Names.originalTopic, Names.originalPartition, Names.originalOffset, Names.originalTimestamp],
      ...[Names.firstFailureTimestamp, Names.replayCount, Names.replayGroup, Names.replayBond]
    ])
    const users = [header("retry-count", "5"), ...DeadLetterHeaders.make(letter)]
    expect(ReplayHeaders.forSource(DeadLetterRecord.read(record(users)), "billing", target)[0]).toEqual(users[0])
  })
})

describe("replay headers on the main topic", () => {
  const replayed = (group: string) => ({
    ...record(ReplayHeaders.forSource(DeadLetterRecord.read(record(DeadLetterHeaders.make(letter))), group, target)),
    topic: "orders"
  })

  it("DLT-27 ruling 61 the group that it was replayed for reads origin and first failure; all other groups skip it", () => {
    expect(ReplayHeaders.read(replayed("billing"), reader("billing"))).toEqual({
      ...{ origin: letter.origin, firstFailureMillis: letter.firstFailureMillis, replayCount: 1 }
    })
    expect(ReplayHeaders.read(replayed("billing"), reader("shipping"))).toBeUndefined()
    expect(ReplayHeaders.foreign(replayed("billing"), reader("shipping"))).toBe("billing")
    expect(ReplayHeaders.foreign(replayed("billing"), reader("billing"))).toBeUndefined()
  })

  it("ruling 14 headers of a record that was not replayed are ignored, and no group skips it", () => {
    const forged = [
      [...DeadLetterHeaders.make(letter)],
      [header(Names.replayGroup, "billing")],
      [header(Names.replayGroup, "billing"), header(Names.replayCount, "NaN")],
      [header(Names.replayGroup, "billing"), header(Names.replayCount, "0")],
      [header(Names.replayGroup, null), header(Names.replayCount, "1")]
    ]
    for (const given of forged) {
      expect(ReplayHeaders.read({ ...record(given), topic: "orders" }, reader("billing"))).toBeUndefined()
      expect(ReplayHeaders.foreign(record(given), reader("shipping"))).toBeUndefined()
    }
    // An origin elsewhere would send the next replay there.
    expect(ReplayHeaders.read({ ...replayed("billing"), topic: "payments" }, reader("billing"))).toBeUndefined()
  })

  it("C33 ruling 70 a bond that is not the record's own is broken: every group handles it, and no count or origin is believed", () => {
    const bound = replayed("billing")
    const broken: ReadonlyArray<readonly [ConsumerRecord, string?]> = [
      [{ ...bound, topic: "invoices" }],
      [{ ...bound, partition: 2 }],
      [{ ...bound, timestamp: 1_001 }],
      [bound, "another-cluster"],
      [bound, ""],
      [{ ...bound, timestampType: "LogAppendTime", timestamp: 301_001 }],
      [{ ...bound, headers: bound.headers.filter(({ key }) => key !== Names.replayBond) }],
      ...["", "cluster/orders/1/", "cluster/orders/1/1e3", "cluster/orders/1/ 1000", "orders/1/1000", null].map(
        (bond): readonly [ConsumerRecord] => [{ ...bound, headers: [...bound.headers, header(Names.replayBond, bond)] }]
      )
    ]
    for (const [given, clusterId] of broken) {
      expect(ReplayHeaders.foreign(given, reader("shipping", clusterId))).toBeUndefined()
      expect(ReplayHeaders.read(given, reader("billing", clusterId))).toBeUndefined()
    }
    for (const timestamp of [1_000 - 300_000, 301_000]) {
      const appended: ConsumerRecord = { ...bound, timestampType: "LogAppendTime", timestamp }
      expect(ReplayHeaders.foreign(appended, reader("shipping"))).toBe("billing")
    }
  })

  it("ruling 71 a replay for a former name of the group is its own", () => {
    const renamed = { ...reader("invoicing"), adopts: ["billing"] }
    expect(ReplayHeaders.foreign(replayed("billing"), renamed)).toBeUndefined()
    expect(ReplayHeaders.read(replayed("billing"), renamed)?.replayCount).toBe(1)
  })
})
