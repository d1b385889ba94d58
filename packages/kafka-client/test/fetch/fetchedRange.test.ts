import { assert, describe, it } from "@effect/vitest"
import type { ConsumerRecord } from "@eventbus/core"
import { crc32c } from "@node-rs/crc32"
import * as fc from "fast-check"
import { encodeRecord } from "../../src/internal/batch/encodedRecord.ts"
import { headerBytes, measureBatch, writeHeader, writeRecords } from "../../src/internal/batch/recordBatch.ts"
import { type CodecName, codecId } from "../../src/internal/codec/codecNames.ts"
import { compress } from "../../src/internal/codec/compress.ts"
import { FetchedRange, type RangeBounds, type Visible } from "../../src/internal/fetch/fetchedRange.ts"
import { codecs, text } from "../codec/compressed.ts"

type Content = Pick<ConsumerRecord.ProducerRecord, "key" | "value" | "headers">

const identity = { producerId: -1n, producerEpoch: -1, baseSequence: -1, transactional: false }
const bounds: RangeBounds = { chunkBytes: 1024 * 1024, maxRecordBytes: 16 * 1024 * 1024 }

const sign = (batch: Buffer): Buffer => {
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
  return batch
}

/** The encoded records of a batch. */
const bodyOf = (contents: ReadonlyArray<Content>): Buffer => {
  const measured = measureBatch(contents.map((one) => encodeRecord({ ...one, topic: "t" }, 1_000)))
  const body = Buffer.alloc(measured.total - headerBytes)
  writeRecords(body, 0, measured)
  return body
}

/** A batch with this body, whatever it holds. */
const batchOf = (codec: CodecName, count: number, baseOffset: bigint, body: Buffer): Buffer => {
  const one = measureBatch([encodeRecord({ topic: "t", key: null, value: null }, 1_000)])
  const batch = Buffer.concat([Buffer.alloc(headerBytes), body])
  writeHeader(batch, one, identity, codec)
  batch.writeBigInt64BE(baseOffset, 0)
  batch.writeInt32BE(count - 1, 23)
  batch.writeInt32BE(count, 57)
  return sign(batch)
}

const batch = async (codec: CodecName, baseOffset: bigint, contents: ReadonlyArray<Content>): Promise<Buffer> => {
  const body = bodyOf(contents)
  return batchOf(codec, contents.length, baseOffset, codec === "none" ? body : await compress(codec, body))
}

const values = (...texts: ReadonlyArray<string>): ReadonlyArray<Content> =>
  texts.map((value) => ({ key: null, value: Buffer.from(value) }))

const range = (parts: ReadonlyArray<Buffer>, position = 0n, limits = bounds) =>
  new FetchedRange(
    {
      ...{ topic: "t", partition: 3, errorCode: 0, highWatermark: 1_000_000n, lastStableOffset: 1_000_000n },
      ...{ abortedTransactions: [], bytes: Buffer.concat(parts) }
    },
    position,
    "read_committed",
    limits
  )

const readAll = async (source: FetchedRange): Promise<ReadonlyArray<Visible>> => {
  const all = [await source.next()]
  while (!source.isDone) all.push(await source.next())
  return all
}

const textOf = ({ value }: ConsumerRecord.ConsumerRecord) => (value === null ? null : Buffer.from(value).toString())

const textsOf = (chunks: ReadonlyArray<Visible>) => chunks.flatMap(({ records }) => records.map(textOf))

const unreadableOf = (chunks: ReadonlyArray<Visible>) => {
  const unreadable = chunks.at(-1)?.unreadable
  return unreadable && { problem: unreadable.problem, ...unreadable.facts, at: chunks.at(-1)!.nextOffset }
}

const all: ReadonlyArray<CodecName> = ["none", ...codecs]

describe.each(all)("a fetched range of codec %s", (codec) => {
  it("CLN-01: records are read with key, value, headers and nulls, and say their codec", async () => {
    const contents: ReadonlyArray<Content> = Array.from({ length: 300 }, (_, i) => ({
      key: i % 3 === 0 ? null : Buffer.from(`key-${i}`),
      value: i % 5 === 0 ? null : text(i * 7),
      headers: Array.from({ length: i % 4 }, (_, h) => ({
        key: `h-${h % 2}`,
        value: h === 0 ? null : Buffer.from("v")
      }))
    }))
    const chunks = await readAll(range([await batch(codec, 40n, contents)], 40n))
    const records = chunks.flatMap((chunk) => chunk.records)
    assert.deepStrictEqual(
      records.map(({ key, value, headers }) => ({ key, value, headers })),
      contents.map(({ key, value, headers = [] }) => ({ key, value, headers }))
    )
    assert.deepStrictEqual(
      records.map(({ offset }) => offset),
      contents.map((_, i) => 40n + BigInt(i))
    )
    assert.strictEqual(records[0]!.compression ?? "none", codec)
    assert.strictEqual(chunks.at(-1)!.nextOffset, 340n)
  })

  it("CLN-04: an unreadable batch ends the range behind what is before it, with its offsets, codec and count", async () => {
    const good = await batch(codec, 0n, values("a", "b"))
    const bad = batchOf(codec, 3, 2n, Buffer.from("no such bytes"))
    const chunks = await readAll(range([good, bad, await batch(codec, 5n, values("c"))]))
    assert.deepStrictEqual(textsOf(chunks), ["a", "b"])
    assert.deepStrictEqual(unreadableOf(chunks), { problem: "broken", codec, count: 3, lastOffset: 4n, at: 2n })
  })

  it("C65: a batch that holds fewer or more records than it counts is unreadable, and none of it is delivered", async () => {
    const body = bodyOf(values("a", "b", "c"))
    const stored = codec === "none" ? body : Buffer.from(await compress(codec, body))
    for (const count of [5, 2, 0, -1]) {
      const chunks = await readAll(range([batchOf(codec, count, 0n, stored)]))
      assert.deepStrictEqual([textsOf(chunks), unreadableOf(chunks)?.problem], [[], "broken"], `count ${count}`)
    }
  })

  it("CLN-04: a checksum that is wrong makes a batch unreadable, and its count is not believed", async () => {
    const bad = await batch(codec, 7n, values("a", "b"))
    bad[bad.length - 1] = bad[bad.length - 1]! ^ 1
    const facts = unreadableOf(await readAll(range([bad], 7n)))
    assert.deepStrictEqual(facts, { problem: "broken", codec, count: undefined, lastOffset: 8n, at: 7n })
    // Where even the last offset contradicts the log, only the first one is known.
    bad.writeInt32BE(0x7fffffff, 23)
    assert.strictEqual(unreadableOf(await readAll(range([bad], 7n)))?.lastOffset, undefined)
  })

  it("CLN-17: a body of changed bytes under a right checksum gives records or an unreadable batch, and nothing else", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        fc.nat(40),
        async (changes, cut) => {
          const whole = await batch(codec, 0n, [
            ...values("alpha", "beta", text(300).toString()),
            { key: null, value: null, headers: [{ key: "h", value: null }] }
          ])
          for (const [at, value] of changes) whole[headerBytes + (at % (whole.length - headerBytes))] = value
          const bad = Buffer.from(whole.subarray(0, Math.max(headerBytes, whole.length - cut)))
          bad.writeInt32BE(bad.length - 12, 8)
          const chunks = await readAll(range([sign(bad)]))
          const read = chunks.flatMap(({ records }) => records)
          if (unreadableOf(chunks) !== undefined) assert.strictEqual(read.length, 0)
          else assert.strictEqual(read.length, 4)
          for (const record of read) assert.isArray([record.key, record.value, ...record.headers])
        }
      ),
      { numRuns: 300 }
    ))

  it("CLN-17: bytes that are no batches give a typed failure", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
        const chunks = await readAll(range([Buffer.from(bytes)]))
        assert.isDefined(unreadableOf(chunks))
      })
    ))
})

describe.each(codecs)("a large batch of codec %s", (codec) => {
  const count = 6_000
  const large = Array.from({ length: count }, (_, i) => `${i}-`.padEnd(1_000, "x"))

  it("CLN-05: is handed over in chunks near their bound, each record once; the position may go on in the middle of it", async () => {
    const stored = [await batch(codec, 0n, values("first")), await batch(codec, 1n, values(...large))]
    const chunks = await readAll(range(stored))
    assert.deepStrictEqual(textsOf(chunks), ["first", ...large])
    assert.isAbove(chunks.length, 4)
    // Beyond its bound a chunk takes the record that begins in a piece before.
    for (const { bytes } of chunks) assert.isAtMost(bytes, bounds.chunkBytes + 1_100)
    const { nextOffset } = chunks[1]!
    assert.isTrue(nextOffset > 1n && nextOffset < BigInt(count))
    assert.deepStrictEqual(textsOf(await readAll(range(stored, nextOffset))), large.slice(Number(nextOffset) - 1))
  })

  it("CLN-05: a record above the bound makes the batch unreadable from there on; what is before it is delivered", async () => {
    const stored = await batch(codec, 0n, values(...large, "x".repeat(900_000), "last"))
    const chunks = await readAll(range([stored], 0n, { ...bounds, maxRecordBytes: 800_000 }))
    assert.deepStrictEqual(textsOf(chunks), large)
    const facts = {
      problem: "tooLarge" as const,
      codec,
      count: count + 2,
      lastOffset: BigInt(count + 1),
      at: BigInt(count)
    }
    assert.deepStrictEqual(unreadableOf(chunks), facts)
    assert.lengthOf(textsOf(await readAll(range([stored]))), count + 2)
  })

  it("CLN-03 CLN-05 C48: the headers of a copy do not count in the bound; all others do, and nothing is unbounded", async () => {
    const maxRecordBytes = 900_020
    const header = (key: string, bytes: number) => ({ key, value: Buffer.alloc(bytes, "h") })
    const read = async (...headers: ReadonlyArray<ConsumerRecord.Header>) => {
      const contents = [{ key: null, value: Buffer.alloc(900_000, "v"), headers }, ...values("last")]
      const chunks = await readAll(range([await batch(codec, 0n, contents)], 0n, { ...bounds, maxRecordBytes }))
      return unreadableOf(chunks)?.problem ?? textsOf(chunks).length
    }
    const own = ["x-eventbus-last-exception-stacktrace", "x-eventbus-tier3-exception", "kafka_dlt-exception-stacktrace"]
    assert.strictEqual(await read(), 2)
    assert.strictEqual(await read(...own.map((key) => header(key, 3_000))), 2)
    assert.strictEqual(await read(header(own[0]!, 1_000_000)), 2)
    assert.strictEqual(await read(header(own[0]!, 1_100_000)), "tooLarge")
    for (const key of ["mine", "x-eventbus-mine"]) assert.strictEqual(await read(header(key, 100)), "tooLarge")
    const many = Array.from({ length: 10_000 }, (_, index) => header(`${index}`, 0))
    assert.strictEqual(await read(...many), "tooLarge")
  })

  it("CLN-05: a batch that is cut off in the middle is unreadable from there on", async () => {
    const body = bodyOf(values(...large))
    const stored = batchOf(codec, count, 0n, Buffer.from(await compress(codec, body.subarray(0, 3_000_000))))
    const chunks = await readAll(range([stored]))
    assert.deepStrictEqual(textsOf(chunks), large.slice(0, textsOf(chunks).length))
    assert.isAbove(textsOf(chunks).length, 2_900)
    assert.strictEqual(unreadableOf(chunks)?.at, BigInt(textsOf(chunks).length))
  })
})

describe("batches that no codec explains", () => {
  it("CLN-04: an unknown codec and an old format are named", async () => {
    const unknown = await batch("gzip", 0n, values("a"))
    unknown.writeInt16BE(5, 21)
    const byCodec = await readAll(range([sign(unknown)]))
    assert.deepStrictEqual(unreadableOf(byCodec), {
      problem: "codec",
      codec: undefined,
      count: 1,
      lastOffset: 0n,
      at: 0n
    })
    assert.match(byCodec[0]!.unreadable!.message, /codec 5/)
    const old = await batch("none", 0n, values("a"))
    old[16] = 1
    const byFormat = await readAll(range([old]))
    assert.strictEqual(unreadableOf(byFormat)?.problem, "format")
    assert.match(byFormat[0]!.unreadable!.message, /0\.11/)
  })

  it("the numbers of codecs are Kafka's", () => {
    assert.deepStrictEqual(all.map(codecId), [0, 1, 2, 3, 4])
  })
})
