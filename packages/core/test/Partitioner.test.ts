import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { murmur2 } from "../src/internal/port/murmur2.ts"
import * as Partitioner from "../src/Partitioner.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)

describe("Partitioner", () => {
  it("DLT-12 murmur2 gives the values of Kafka's test", () => {
    const published: ReadonlyArray<readonly [Uint8Array, number]> = [
      [utf8("21"), -973932308],
      [utf8("foobar"), -790332482],
      [utf8("a-little-bit-long-string"), -985981536],
      [utf8("a-little-bit-longer-string"), -1486304829],
      [utf8("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"), -58897971],
      [Uint8Array.of(0x61, 0x62, 0x63), 479470107]
    ]
    for (const [key, hash] of published) expect(murmur2(key)).toBe(hash)
  })

  it("hashes any bytes (high ones, none) to a 32-bit integer, whatever their buffer", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(8), (key, shift) => {
        const hash = murmur2(key)
        expect(hash).toBe(hash | 0)
        const larger = new Uint8Array(key.length + shift + 3).fill(0xaa)
        larger.set(key, shift)
        expect(murmur2(larger.subarray(shift, shift + key.length))).toBe(hash)
      }),
      { examples: [[new Uint8Array(), 0]] }
    )
  })

  it("a key always lands on the same existing partition: the hash without its sign, modulo the count", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.integer({ min: 1, max: 10_000 }), (key, partitions) => {
        const partition = Partitioner.partitionFor(key, partitions)
        expect(partition).toBe(Number((BigInt(murmur2(key)) & 0x7fffffffn) % BigInt(partitions)))
        expect(partition).toBeLessThan(partitions)
      })
    )
    expect(Partitioner.partitionFor(utf8("foobar"), 1)).toBe(0)
  })
})
