import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ConsumerRecord, Header } from "../../src/ConsumerRecord.ts"
import * as DeadLetterRecord from "../../src/DeadLetterRecord.ts"
import * as CopyOwner from "../../src/internal/record/copyOwner.ts"
import * as Names from "../../src/internal/record/headerNames.ts"
import * as HeaderValues from "../../src/internal/record/headerValues.ts"
import * as ReplayHeaders from "../../src/internal/record/replayHeaders.ts"
import * as RetryState from "../../src/internal/record/retryState.ts"
import * as RunMark from "../../src/internal/record/runMark.ts"
import { trim } from "../../src/internal/record/trimmedHeaders.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as TopicName from "../../src/TopicName.ts"

const runId = "0f8fad5b-d9cb-469f-a165-70867728950e"
const mark: RunMark.RunMark = { runId, partition: 3, offset: 9_007_199_254_740_993n }
const encoder = new TextEncoder()
const reader = { groupId: "billing", adopts: [], clusterId: "cluster-1" }

const record = (headers: ReadonlyArray<Header>, changes: Partial<ConsumerRecord> = {}): ConsumerRecord => ({
  ...{ topic: "orders", partition: 0, offset: 5n, timestamp: 1_000, key: null, value: null, headers },
  ...changes
})

const letter = DeadLetterRecord.read(record([], { topic: "orders.DLT", partition: 3, offset: mark.offset }))
const target = { clusterId: "cluster-1", topic: "orders", partition: 0, timestamp: 1_000 }
const copyOf = (id?: string) => record(ReplayHeaders.forSource(letter, "billing", target, id))

const tiers = Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, RetryPolicy.tiered().tiers)
const inTier = (headers: ReadonlyArray<Header>) =>
  RetryState.ofRetryTopic(record(headers, { topic: "orders.retry-1" }), tiers.topicOf(1), { topic: "orders", tiers })

const read = (headers: ReadonlyArray<Header>) => RunMark.read(HeaderValues.last(headers, Names.runId))

describe("the mark of a run", () => {
  it("OPS-08 names the run and the letter, with exact offsets", () => {
    expect(RunMark.read(RunMark.header(mark).value)).toEqual(mark)
    expect(ReplayHeaders.runOf(copyOf(runId), reader)).toEqual(mark)
    expect(ReplayHeaders.runOf(copyOf(), reader)).toBeUndefined()
  })

  it("OPS-09 ruling 70: on the main topic it is believed with the bond of the record itself only", () => {
    const copy = copyOf(runId)
    for (const [stranger, reading] of [
      [{ ...copy, timestamp: 1_001 }, reader],
      [{ ...copy, partition: 1 }, reader],
      [{ ...copy, topic: "returns" }, reader],
      [copy, { ...reader, clusterId: "cluster-2" }],
      [copy, { ...reader, groupId: "shipping" }],
      [record([RunMark.header(mark)]), reader]
    ] as const)
      expect(ReplayHeaders.runOf(stranger, reading)).toBeUndefined()
  })

  it("OPS-09 in a tier it is believed beside an intact owner mark only, and goes on to the next copy", () => {
    const owner = CopyOwner.mark("orders.retry-1", "billing")
    const state = inTier([RunMark.header(mark), owner])
    expect(state.run).toEqual(mark)
    expect(read(RetryState.headersFor(record([]), state))).toEqual(mark)
    expect(inTier([RunMark.header(mark)]).run).toBeUndefined()
    expect(inTier([RunMark.header(mark), CopyOwner.mark("returns.retry-1", "billing")]).run).toBeUndefined()
    // A header of the incoming record goes no further by itself.
    expect(
      read(RetryState.headersFor(record([RunMark.header(mark)]), RetryState.ofMainTopic(record([]))))
    ).toBeUndefined()
  })

  it("OPS-09 a dead letter shows its run where an owner is named, and keeps it when it loses other headers", () => {
    const headers = [RunMark.header(mark), CopyOwner.mark("orders.DLT", "billing")]
    expect(DeadLetterRecord.read(record(headers, { topic: "orders.DLT" })).runId).toBe(runId)
    expect(DeadLetterRecord.read(record(headers.slice(0, 1), { topic: "orders.DLT" })).runId).toBeUndefined()
    expect(read(trim(headers, 2))).toEqual(mark)
  })

  it("OPS-08 whatever a header holds, reading never throws, and answers a whole mark or none", () => {
    const value = fc.oneof(
      fc.constant(null),
      fc.uint8Array({ maxLength: 80 }),
      fc
        .tuple(fc.constantFrom(runId, runId.toUpperCase(), "", `${runId}x`), fc.string(), fc.string())
        .map(([id, partition, offset]) => encoder.encode(`${id}/${partition}@${offset}`))
    )
    fc.assert(
      fc.property(value, (bytes) => {
        const found = RunMark.read(bytes)
        if (found === undefined) return
        expect(RunMark.isRunId(found.runId)).toBe(true)
        expect(Number.isSafeInteger(found.partition)).toBe(true)
      })
    )
  })
})
