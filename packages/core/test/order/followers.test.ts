/** Followers in memory: as they were read, and in no more memory than they count. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { ConsumerRecord, Header } from "../../src/ConsumerRecord.ts"
import { Entry } from "../../src/internal/order/entry.ts"
import { Followers } from "../../src/internal/order/followers.ts"
import { KeyTable } from "../../src/internal/order/keyTable.ts"
import { ParkedRoom } from "../../src/internal/order/parkedRoom.ts"
import type { Partition } from "../../src/internal/partition/partition.ts"

const key = new TextEncoder().encode("customer-1")
const everything = Number.POSITIVE_INFINITY

const recordOf = (offset: bigint, value: Uint8Array | null, headers: ReadonlyArray<Header> = []): ConsumerRecord => ({
  ...{ topic: "orders", partition: 3, offset, timestamp: 1_700_000_000_000, timestampType: "CreateTime" },
  ...{ transactional: false, compression: undefined, key, value, headers }
})

const bytes = fc.uint8Array({ maxLength: 300 }).map((each) => Uint8Array.from(each))
const nullable = fc.option(bytes, { nil: null })
const anyRecord: fc.Arbitrary<ConsumerRecord> = fc
  .record({
    offset: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    timestamp: fc.oneof(fc.integer(), fc.constant(-1)),
    timestampType: fc.constantFrom(undefined, "CreateTime" as const, "LogAppendTime" as const),
    transactional: fc.constantFrom(undefined, false, true),
    compression: fc.constantFrom(undefined, "none" as const, "zstd" as const),
    value: nullable,
    headers: fc.array(fc.record({ key: fc.constantFrom("", "a", "ß€", "trace"), value: nullable }), { maxLength: 4 })
  })
  .map((each) => ({ topic: "orders", partition: 3, key, ...each }))

describe("followers in memory", () => {
  it("PKO-01 come back one after the other as they were read, those that were put in front first, and leave nothing", () => {
    const steps = fc.array(fc.tuple(fc.constantFrom("add", "add", "first", "drop"), anyRecord), { maxLength: 60 })
    fc.assert(
      fc.property(steps, (given) => {
        const followers = new Followers(key)
        let expected: Array<ConsumerRecord> = []
        let held = 0
        const drop = () => {
          assert.deepStrictEqual(followers.first, expected[0])
          assert.strictEqual(followers.first, followers.first)
          held -= followers.drop()
          expected = expected.slice(1)
        }
        for (const [step, record] of given) {
          if (step === "add") held += followers.add(record, everything) ?? Number.NaN
          else if (step === "first") held += followers.addFirst(record)
          if (step === "add") expected.push(record)
          else if (step === "first") expected.unshift(record)
          else drop()
          assert.strictEqual(followers.length, expected.length)
          assert.strictEqual(followers.firstAt?.offset, expected[0]?.offset)
          assert.strictEqual(followers.firstAt?.timestamp, expected[0]?.timestamp)
          assert.strictEqual(followers.bytes, held)
        }
        while (expected.length > 0) drop()
        assert.deepStrictEqual([followers.bytes, followers.length, followers.first], [0, 0, undefined])
      })
    )
  })

  it("PKO-01 share no memory with what they were fetched with, and stay as they were when others are added", () => {
    const followers = new Followers(key)
    const value = new Uint8Array([1, 2, 3])
    followers.add(recordOf(1n, value), everything)
    value.fill(9)
    const { first } = followers
    followers.drop()
    for (let offset = 2n; offset < 100n; offset++) followers.add(recordOf(offset, value), everything)
    assert.deepStrictEqual(first?.value, new Uint8Array([1, 2, 3]))
  })

  it("are not added where they take more memory than there is room", () => {
    const followers = new Followers(key)
    const record = recordOf(1n, new Uint8Array(100))
    const cost = followers.add(record, everything)!
    assert.isAtLeast(cost, 100)
    assert.isUndefined(new Followers(key).add(record, cost - 1))
    assert.strictEqual(new Followers(key).add(record, cost), cost)
  })
})

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** Bytes outside of the heap are free some time behind the collection that finds them. */
const memory = async (): Promise<number> => {
  for (let times = 0; times < 4; times++) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const most = 2 * 1024 * 1024
const header = (name: string): Header => ({ key: name, value: new Uint8Array(24) })

interface Case {
  readonly keys: number
  /** How many for each key. */
  readonly perKey?: number
  readonly size: number
  readonly headers?: Array<Header>
}

describe("the memory of followers (maxParkedBytes)", () => {
  it.each<[string, Case]>([
    ["small ones, many for each key", { keys: 50, size: 100 }],
    ["one for each key", { keys: 10_000, perKey: 1, size: 100 }],
    ["two for each key", { keys: 10_000, perKey: 2, size: 20 }],
    ["large ones", { keys: 12, size: 40_000 }],
    ["with headers", { keys: 100, size: 60, headers: ["traceparent", "content-type", "source"].map(header) }]
  ])(
    "PKO-06 is what they count, within half as much again: %s",
    async (_, { keys, perKey = 1_000_000, size, headers }) => {
      const main = { position: () => 0n } as unknown as Partition
      const bodies = { bytes: 0, most }
      const table = new KeyTable({ main, bodies, parkedRoom: new ParkedRoom(1_000_000) })
      const entries = Array.from({ length: keys }, (__, index) => new Entry(`${index}`, key, 0n, 1, 2, 0))
      const value = new Uint8Array(size)
      const before = await memory()
      let offset = 0n
      for (let round = 0, hasRoom = true; hasRoom && round < perKey; round++)
        hasRoom = entries.every((entry) => table.remember(entry, recordOf(++offset, value, headers)))
      const taken = (await memory()) - before
      assert.isAtMost(taken, 1.5 * most)
      assert.isAtMost(taken, 1.5 * bodies.bytes)
      assert.isAtLeast(taken, bodies.bytes / 1.5)
      assert.strictEqual(
        entries.reduce((sum, { followers }) => sum + followers.bytes, 0),
        bodies.bytes
      )
    }
  )
})
