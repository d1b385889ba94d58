/** A produce request is written once, into the bytes for the socket. */
import { assert, describe, it } from "@effect/vitest"
import { Reader } from "../../src/internal/protocol/reader.ts"
import { PartitionLog } from "../../src/internal/publish/partitionLog.ts"
import { PendingRecords } from "../../src/internal/publish/pendingRecords.ts"
import { encodeProduce, type TakenBatch } from "../../src/internal/publish/produceRequest.ts"
import { headerRoom } from "../../src/Transport.ts"

const sendingOf = (topic: string, partition: number, values: ReadonlyArray<string>): TakenBatch => {
  const log = new PartitionLog(topic, partition)
  const pendings = new PendingRecords()
  for (const value of values)
    log.add(pendings.add({ topic, key: null, value: Buffer.from(value), timestamp: 7 }, 1_000, () => {}, 0, undefined))
  return { log, batch: log.take(100, 1_000_000)! }
}

const settings = { acks: -1, timeoutMillis: 15_000, transactionalId: undefined } as const

describe("produce requests", () => {
  for (const transactionalId of [undefined, "copiers-in-0"]) {
    it(`the body names each topic once and fills its buffer exactly, transactional id ${transactionalId}`, () => {
      const sendings = [sendingOf("a", 0, ["x"]), sendingOf("b", 1, ["y"]), sendingOf("a", 2, ["z", "z"])]
      const { bytes: buffer } = encodeProduce({ ...settings, transactionalId }, 7, sendings)
      const found: Array<number> = []
      let at = transactionalId === undefined ? 2 : 2 + buffer.readInt16BE(0)
      assert.strictEqual(buffer.readInt16BE(at), -1)
      assert.strictEqual(buffer.readInt32BE(at + 2), 15_000)
      const topics = buffer.readInt32BE(at + 6)
      at += 10
      for (let topic = 0; topic < topics; topic++) {
        at += 2 + buffer.readInt16BE(at)
        const partitions = buffer.readInt32BE(at)
        at += 4
        for (let partition = 0; partition < partitions; partition++) {
          found.push(buffer.readInt32BE(at), buffer.readInt32BE(at + 8 + 57))
          at += 8 + buffer.readInt32BE(at + 4)
        }
      }
      assert.strictEqual(at, buffer.length)
      // Partition and number of records, topic by topic.
      assert.deepStrictEqual(found, [0, 1, 2, 2, 1, 1])
    })
  }

  it("CLN-14 version 12 says the same in flexible encoding", () => {
    const sendings = [sendingOf("a", 0, ["x"]), sendingOf("b", 1, ["y".repeat(200)]), sendingOf("a", 2, ["z"])]
    for (const { log } of sendings) log.adoptIdentity({ producerId: 258n, producerEpoch: 3 })
    const transactional = { ...settings, transactionalId: "t" }
    const { bytes, whole } = encodeProduce(transactional, 12, sendings)
    assert.strictEqual(whole?.length, headerRoom + bytes.length)
    const classic = new Reader(encodeProduce(transactional, 7, sendings).bytes)
    const flexible = new Reader(bytes)
    assert.strictEqual(flexible.compactString(), classic.string())
    assert.deepStrictEqual(flexible.take(6), classic.take(6))
    const topicsOf7 = classic.array(() => ({
      topic: classic.string(),
      partitions: classic.array(() => [classic.int32(), classic.bytes()])
    }))
    const topicsOf12 = flexible.compactArray(() => {
      const topic = flexible.compactString()
      const partitions = flexible.compactArray(() => {
        const partition = [flexible.int32(), flexible.compactBytes()]
        flexible.tags()
        return partition
      })
      flexible.tags()
      return { topic, partitions }
    })
    flexible.tags()
    assert.strictEqual(flexible.rest().length, 0)
    assert.deepStrictEqual(topicsOf12, topicsOf7)
    assert.deepStrictEqual(
      topicsOf12.map(({ topic, partitions }) => [topic, partitions.length]),
      [
        ["a", 2],
        ["b", 1]
      ]
    )
  })
})
