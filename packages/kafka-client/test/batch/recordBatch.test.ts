import { assert, describe, it } from "@effect/vitest"
import type { ConsumerRecord } from "@eventbus/core"
import { crc32c } from "@node-rs/crc32"
import * as fc from "fast-check"
import {
  type EncodedHeaders,
  type EncodedRecord,
  encodeRecord,
  headerEncoder
} from "../../src/internal/batch/encodedRecord.ts"
import { type BatchIdentity, measureBatch, writeBatch } from "../../src/internal/batch/recordBatch.ts"
import { VarintReader, varintSize, writeVarint } from "../../src/internal/batch/varint.ts"
import type { FetchedPartition } from "../../src/internal/protocol/apis.ts"
import { visibleRecords } from "../visibleRecords.ts"

const plain: BatchIdentity = { producerId: -1n, producerEpoch: -1, baseSequence: -1, transactional: false }
const bytes = fc.uint8Array({ maxLength: 40 })
const nullable = fc.option(bytes)
const record = fc.record({
  key: nullable,
  value: nullable,
  timestamp: fc.integer({ min: 0, max: 4_102_444_800_000 }),
  headers: fc.array(
    fc.record({
      key: fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("", "constructor", "__proto__", "toString")),
      value: nullable
    })
  )
})

const encodeBatch = (records: ReadonlyArray<EncodedRecord>, identity: BatchIdentity): Buffer => {
  const measured = measureBatch(records)
  const encoded = Buffer.allocUnsafe(measured.total)
  writeBatch(encoded, measured, identity)
  return encoded
}

/** The batch with the checksum of what it holds now. */
const signed = (encoded: Buffer): Buffer => {
  encoded.writeUInt32BE(crc32c(encoded.subarray(21)), 17)
  return encoded
}

const whole = ({ own, tail }: EncodedHeaders): Buffer => Buffer.concat([own, tail])

const batch = (
  records: ReadonlyArray<Omit<ConsumerRecord.ProducerRecord, "topic">>,
  baseOffset: bigint,
  identity = plain
) => {
  const encoded = encodeBatch(
    records.map((one) => encodeRecord({ ...one, topic: "t" }, 1_000)),
    identity
  )
  encoded.writeBigInt64BE(baseOffset, 0)
  return encoded
}

const values = (...texts: ReadonlyArray<string>) => texts.map((text) => ({ key: null, value: Buffer.from(text) }))

/** The marker at the end of a transaction: type 0 aborts, type 1 commits. */
const marker = (type: 0 | 1, baseOffset: bigint, producerId: bigint) => {
  const encoded = batch([{ key: Buffer.from([0, 0, 0, type]), value: Buffer.alloc(6) }], baseOffset, {
    ...plain,
    producerId
  })
  encoded.writeInt16BE(0x30, 21)
  return signed(encoded)
}

const transactional = (producerId: bigint): BatchIdentity => ({ ...plain, producerId, transactional: true })

const fetched = (
  parts: ReadonlyArray<Buffer>,
  aborted: FetchedPartition["abortedTransactions"] = []
): FetchedPartition => ({
  topic: "t",
  partition: 3,
  errorCode: 0,
  highWatermark: 100n,
  lastStableOffset: 100n,
  abortedTransactions: aborted,
  bytes: Buffer.concat(parts)
})

const texts = (records: ReadonlyArray<ConsumerRecord.ConsumerRecord>) =>
  records.map(({ value }) => (value === null ? null : Buffer.from(value).toString()))

const plainBytes = (value: Uint8Array | null) => (value === null ? null : [...value])

describe("record batches", () => {
  it("SER-03: a record is read with the bytes, time and headers that it was written with; order, repeats, nulls and inherited names of headers are kept", () =>
    fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1 }), fc.bigInt(0n, 2n ** 62n), async (records, baseOffset) => {
        const visible = await visibleRecords(fetched([batch(records, baseOffset)]), baseOffset, "read_committed")
        assert.strictEqual(visible.nextOffset, baseOffset + BigInt(records.length))
        visible.records.forEach((got, i) => {
          const sent = records[i]!
          assert.deepStrictEqual([got.topic, got.partition, got.offset], ["t", 3, baseOffset + BigInt(i)])
          assert.strictEqual(got.timestamp, sent.timestamp)
          assert.deepStrictEqual(
            [plainBytes(got.key), plainBytes(got.value)],
            [plainBytes(sent.key), plainBytes(sent.value)]
          )
          assert.deepStrictEqual(
            got.headers.map(({ key, value }) => [key, plainBytes(value)]),
            sent.headers.map(({ key, value }) => [Buffer.from(key).toString(), plainBytes(value)])
          )
        })
        assert.strictEqual(visible.records.length, records.length)
      })
    ))

  it("numbers are read as they were written, in the counted size", () =>
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        const small = Math.trunc(value / 2)
        const target = Buffer.alloc(10)
        assert.strictEqual(writeVarint(target, 0, small), varintSize(small))
        assert.strictEqual(new VarintReader(target, 0).number(), small)
      })
    ))

  it("headers are encoded when the record is sent, so that the caller may reuse its buffers", async () => {
    const value = Buffer.from("before")
    const sent = encodeRecord({ topic: "t", key: null, value: null, headers: [{ key: "x", value }] }, 0)
    value.write("after!")
    const visible = await visibleRecords(fetched([encodeBatch([sent], plain)]), 0n, "read_committed")
    assert.deepStrictEqual(
      visible.records[0]!.headers.map((header) => [header.key, Buffer.from(header.value!).toString()]),
      [["x", "before"]]
    )
  })

  it("headers of records that are sent together are encoded as those of a single record, whatever they share", () => {
    const header = fc.record({
      key: fc.constantFrom("a", "b", "x-eventbus-dlt-reason"),
      value: fc.option(fc.uint8Array({ maxLength: 60 }))
    })
    const lists = fc.tuple(
      fc.array(header, { maxLength: 4 }),
      fc.array(fc.array(header, { maxLength: 3 }), { maxLength: 5 })
    )
    fc.assert(
      fc.property(lists, fc.array(fc.nat(4)), ([tail, heads], cuts) => {
        const encode = headerEncoder()
        for (const [index, head] of heads.entries()) {
          const headers = [...head, ...tail.slice(cuts[index] ?? 0)]
          assert.deepStrictEqual(whole(encode(headers)), whole(headerEncoder()(headers)))
        }
      })
    )
  })

  it("a record without a timestamp gets the time of sending", () => {
    assert.strictEqual(encodeRecord({ topic: "t", key: null, value: null }, 42).timestamp, 42)
  })

  it("the size of a record counts key, value and headers with their lengths", () => {
    const one = encodeRecord(
      {
        topic: "t",
        key: Buffer.from("ab"),
        value: Buffer.from("cde"),
        headers: [{ key: "x", value: Buffer.from("yz") }]
      },
      0
    )
    assert.strictEqual(one.bytes, 2 + 3 + 6)
  })

  it("NFR-06 a batch whose records are all below the position, as compaction leaves them, counts no bytes", async () => {
    const visible = await visibleRecords(fetched([batch(values("a", "b"), 10n)]), 12n, "read_committed")
    assert.deepStrictEqual([visible.records, visible.nextOffset, visible.bytes], [[], 12n, 0])
  })

  it("records below the position are left out, and a batch that the fetch limit cut off is not read", async () => {
    const whole = batch(values("a", "b", "c"), 10n)
    const cut = batch(values("d"), 13n).subarray(0, -1)
    const visible = await visibleRecords(fetched([whole, cut]), 11n, "read_committed")
    assert.deepStrictEqual(texts(visible.records), ["b", "c"])
    assert.strictEqual(visible.nextOffset, 13n)
  })

  it("OFF-17: read_committed hides aborted records, control records are always hidden, and the position moves past both", async () => {
    const parts = [
      batch(values("a"), 0n, transactional(7n)),
      batch(values("other"), 1n, transactional(8n)),
      marker(0, 2n, 7n),
      batch(values("b"), 3n, transactional(7n)),
      marker(1, 4n, 7n),
      marker(1, 5n, 8n)
    ]
    const aborted = [{ producerId: 7n, firstOffset: 0n }]
    const committed = await visibleRecords(fetched(parts, aborted), 0n, "read_committed")
    assert.deepStrictEqual(texts(committed.records), ["other", "b"])
    assert.strictEqual(committed.nextOffset, 6n)
    const uncommitted = await visibleRecords(fetched(parts, aborted), 0n, "read_uncommitted")
    assert.deepStrictEqual(texts(uncommitted.records), ["a", "other", "b"])
  })

  it("a batch whose last records were compacted away moves the position past them", async () => {
    const compacted = batch(values("a"), 0n)
    compacted.writeInt32BE(9, 23)
    const visible = await visibleRecords(fetched([signed(compacted)]), 0n, "read_committed")
    assert.deepStrictEqual([texts(visible.records), visible.nextOffset], [["a"], 10n])
  })
})
