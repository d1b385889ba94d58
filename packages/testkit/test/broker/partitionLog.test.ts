import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type NewRecord, PartitionLog, type TransactionMark } from "../../src/internal/broker/partitionLog.ts"

const record = (size: number): NewRecord => ({ key: null, value: new Uint8Array(size), headers: [], timestamp: 0 })

const step = fc.oneof(
  fc.record({ does: fc.constant("append" as const), size: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ does: fc.constant("control" as const), size: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ does: fc.constant("aborted" as const), size: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ does: fc.constant("committed" as const), size: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ does: fc.constant("compact" as const), size: fc.integer({ min: 2, max: 4 }) }),
  fc.record({ does: fc.constant("delete" as const), size: fc.integer({ min: 0, max: 9 }) })
)

/** Builds a log from steps and the offsets that a committed reader must get. */
const build = (steps: ReadonlyArray<typeof step extends fc.Arbitrary<infer A> ? A : never>) => {
  const log = new PartitionLog("t", 0, 0n)
  let readable: ReadonlyArray<bigint> = []
  for (const { does, size } of steps) {
    const batch = Array.from({ length: size }, () => record(10))
    const offsets = batch.map((_, index) => log.logEnd + BigInt(index))
    switch (does) {
      case "append":
        log.append(batch)
        readable = [...readable, ...offsets]
        break
      case "control":
        log.appendControl(size)
        break
      case "aborted":
      case "committed": {
        const mark: TransactionMark = { state: "open" }
        log.append(batch, undefined, mark)
        mark.state = does
        log.endTransaction(mark)
        if (does === "committed") readable = [...readable, ...offsets]
        break
      }
      case "compact":
        log.compact(({ offset }) => offset % BigInt(size) === 0n)
        readable = readable.filter((offset) => offset % BigInt(size) !== 0n)
        break
      case "delete": {
        const before = log.logStart + ((log.logEnd - log.logStart) * BigInt(size)) / 10n
        log.deleteBefore(before)
        readable = readable.filter((offset) => offset >= before)
      }
    }
  }
  return { log, readable }
}

describe("PartitionLog", () => {
  it("chunks of any size give every readable record once, in order, and end at the log end", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 20 }),
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 60 }),
        (steps, maxRecords, maxBytes) => {
          const { log, readable } = build(steps)
          const got: Array<bigint> = []
          let position = log.logStart
          for (let reads = 0; position < log.logEnd; reads++) {
            assert.isBelow(reads, 500)
            const read = log.read(position, { maxBytes, maxRecords, isolation: "read_committed" })
            assert.isDefined(read)
            if (!read) return
            got.push(...read.records.map((one) => one.offset))
            assert.isTrue(read.nextOffset > position)
            position = read.nextOffset
          }
          assert.deepStrictEqual(got, readable)
          assert.strictEqual(position, log.logEnd)
        }
      )
    )
  })

  it("a position outside the log does not exist; its end is a position", () => {
    const log = new PartitionLog("t", 0, 5n)
    const limits = { maxBytes: 100, maxRecords: 10, isolation: "read_committed" } as const
    log.append([record(1), record(1)])
    assert.isUndefined(log.read(4n, limits))
    assert.isUndefined(log.read(8n, limits))
    assert.deepStrictEqual(log.read(7n, limits), { records: [], nextOffset: 7n, bytes: 0 })
  })

  it("an open transaction hides the records behind it from committed readers only", () => {
    const log = new PartitionLog("t", 0, 0n)
    const mark: TransactionMark = { state: "open" }
    log.append([record(1)])
    log.append([record(1)], undefined, mark)
    log.append([record(1)])
    assert.strictEqual(log.readableEnd("read_committed"), 1n)
    assert.strictEqual(log.readableEnd("read_uncommitted"), 3n)
    mark.state = "committed"
    log.endTransaction(mark)
    assert.strictEqual(log.readableEnd("read_committed"), 4n)
  })

  it("a batch that was sent before is not written again, neither whole nor in part", () => {
    const log = new PartitionLog("t", 0, 0n)
    const batch = [record(1), record(1), record(1)]
    assert.strictEqual(log.append(batch, { producerId: 1, first: 0 }), 0n)
    assert.strictEqual(log.append(batch, { producerId: 1, first: 0 }), 0n)
    assert.strictEqual(log.append(batch.slice(1), { producerId: 1, first: 1 }), 1n)
    assert.strictEqual(log.append(batch, { producerId: 2, first: 0 }), 3n)
    assert.strictEqual(log.append(batch, { producerId: 1, first: 3 }), 6n)
    assert.strictEqual(log.logEnd, 9n)
  })
})
