import * as zlib from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { CodecError } from "../../src/internal/codec/CodecError.ts"
import { compress, unusableCodec } from "../../src/internal/codec/compress.ts"
import { decompressPieces, decompressSmall, pieceBytes } from "../../src/internal/codec/decompress.ts"
import { xxHash32 } from "../../src/internal/codec/xxHash32.ts"
import { codecs, decompress, inPieces, readAll, text } from "./compressed.ts"

/** Bytes of which some parts repeat. */
const content = fc
  .array(fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.constant(text(40)), fc.constant(new Uint8Array(700))), {
    maxLength: 12
  })
  .map((parts) => Buffer.concat(parts))

const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(" ", ""), "hex")

const thrownBy = async (run: () => Promise<unknown>): Promise<unknown> => {
  try {
    await run()
  } catch (error) {
    return error
  }
  return undefined
}

const isBroken = (error: unknown): boolean => error instanceof CodecError && error.failure === "broken"

describe.each(codecs)("codec %s", (codec) => {
  it("reads what it wrote, at once and in pieces", () =>
    fc.assert(
      fc.asyncProperty(content, async (bytes) => {
        const body = await compress(codec, bytes)
        assert.deepStrictEqual(decompressSmall(codec, body), bytes)
        assert.deepStrictEqual(await inPieces(codec, body), bytes)
      })
    ))

  it("reads bodies of many pieces, none of which is larger than a piece may be", async () => {
    for (const bytes of [text(3_000_000), Buffer.alloc(3_000_000)]) {
      const body = await compress(codec, bytes)
      assert.strictEqual(decompressSmall(codec, body), undefined)
      const pieces = decompressPieces(codec, body, 1)
      let read = 0
      for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) {
        assert.isAtMost(piece.length, pieceBytes)
        assert.deepStrictEqual(Buffer.from(piece), bytes.subarray(read, read + piece.length))
        read += piece.length
      }
      assert.strictEqual(read, bytes.length)
    }
  })

  it("CLN-17: cut, changed and extended bytes give a typed failure or bytes, and nothing else", () =>
    fc.assert(
      fc.asyncProperty(
        content,
        fc.nat(),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }),
        fc.uint8Array({ maxLength: 30 }),
        async (bytes, cutAt, changes, tail) => {
          const whole = Buffer.from(await compress(codec, bytes))
          for (const [at, value] of changes) whole[at % whole.length] = value
          const body = Buffer.concat([whole.subarray(0, whole.length - (cutAt % (whole.length + 1))), tail])
          for (const read of [async () => decompressSmall(codec, body), () => inPieces(codec, body)]) {
            const error = await thrownBy(read)
            if (error !== undefined) assert.instanceOf(error, CodecError)
          }
        }
      ),
      { numRuns: 400 }
    ))

  it("CLN-17: a body that ends too early is broken", async () => {
    for (const bytes of [text(5_000), text(900_000)]) {
      const body = await compress(codec, bytes)
      for (const length of [body.length - 1, body.length >> 1, 12]) {
        assert.isTrue(isBroken(await thrownBy(() => decompress(codec, body.subarray(0, length)))), `${length}`)
      }
    }
  })

  it("CLN-17: a decoder that is closed before its end can be closed again, and frees its thread", async () => {
    const pieces = decompressPieces(codec, await compress(codec, text(3_000_000)), 1)
    await pieces.next()
    pieces.close()
    pieces.close()
  })
})

describe("bodies of several parts (case C65)", () => {
  const [one, two] = [text(2_000, 1), text(900_000, 2)]
  const skippable = Buffer.concat([hex("5a2a4d18 03000000"), Buffer.from("abc")])

  it.each(["gzip", "zstd", "lz4"] as const)("%s: all parts are read", async (codec) => {
    for (const parts of [
      [one, one],
      [one, two, one],
      [two, one]
    ]) {
      const body = Buffer.concat(await Promise.all(parts.map((part) => compress(codec, part))))
      assert.deepStrictEqual(await decompress(codec, body), Buffer.concat(parts))
      assert.deepStrictEqual(await inPieces(codec, body), Buffer.concat(parts))
    }
  })

  it.each(["zstd", "lz4"] as const)("%s: skippable frames are passed over", async (codec) => {
    const frame = await compress(codec, one)
    assert.deepStrictEqual(await decompress(codec, Buffer.concat([skippable, frame, skippable])), one)
    assert.isTrue(isBroken(await thrownBy(() => decompress(codec, Buffer.concat([frame, skippable.subarray(0, -1)])))))
  })

  it("snappy: streams of snappy-java are read one behind the other", async () => {
    const body = Buffer.concat([await compress("snappy", one), await compress("snappy", one)])
    assert.deepStrictEqual(await decompress("snappy", body), Buffer.concat([one, one]))
  })
})

describe("declared lengths that lie (case C66)", () => {
  const claim = hex("ffffffff03 00 61")
  const xerial = (...chunks: ReadonlyArray<Buffer>) =>
    Buffer.concat([hex("82534e415050590000000001 00000001"), ...chunks])
  const chunk = (length: number, bytes: Buffer) => {
    const head = Buffer.alloc(4)
    head.writeInt32BE(length)
    return Buffer.concat([head, bytes])
  }
  const good = hex("02 04 6162")
  const bodies = {
    "raw snappy that claims 1 GiB": claim,
    "a snappy chunk that claims 1 GiB": xerial(chunk(claim.length, claim)),
    "a chunk of -1 bytes": xerial(chunk(-1, good)),
    "a chunk of 2^31-1 bytes": xerial(chunk(0x7fffffff, good)),
    "a chunk that ends behind the body": xerial(chunk(good.length + 1, good)),
    "a chunk of 0 bytes": xerial(chunk(good.length, good), chunk(0, Buffer.alloc(0)))
  }

  it.each(Object.entries(bodies))(
    "%s: broken within milliseconds, a thousand times, in flat memory",
    async (_, body) => {
      const before = process.memoryUsage().rss
      const startMillis = performance.now()
      for (let i = 0; i < 1_000; i++) {
        assert.isTrue(isBroken(await thrownBy(async () => decompressSmall("snappy", body))))
        assert.isTrue(isBroken(await thrownBy(() => inPieces("snappy", body))))
      }
      assert.isBelow((performance.now() - startMillis) / 2_000, 5)
      assert.isBelow(process.memoryUsage().rss - before, 64 * 1024 * 1024)
      assert.strictEqual(decompressSmall("snappy", xerial(chunk(good.length, good)))?.toString(), "ab")
    }
  )

  it("zstd: a content size that the blocks cannot hold is broken", async () => {
    // Magic, a single segment with 8 bytes of content size (1 GiB), one raw block of 1 byte, the last.
    const body = hex("28b52ffd e0 0000004000000000 090000 61")
    assert.isTrue(isBroken(await thrownBy(async () => decompressSmall("zstd", body))))
  })

  it("zstd: a window larger than allowed is refused with its size", async () => {
    const level = { params: { [zlib.constants.ZSTD_c_windowLog]: 27, [zlib.constants.ZSTD_c_contentSizeFlag]: 0 } }
    const stream = zlib.createZstdCompress(level)
    for (let i = 0; i < 48; i++) stream.write(Buffer.alloc(1024 * 1024, i))
    stream.end()
    const body = Buffer.concat(await stream.toArray())
    const error = await thrownBy(() => readAll(decompressPieces("zstd", body, 16 * 1024 * 1024)))
    assert.strictEqual(error instanceof CodecError && error.failure, "tooLarge")
    assert.strictEqual((await readAll(decompressPieces("zstd", body, 128 * 1024 * 1024))).length, 48 * 1024 * 1024)
  })

  it("lz4: a block that holds more than the frame allows is broken", () => {
    const frame = Buffer.from(compress("lz4", Buffer.alloc(40_000)) as Buffer)
    // One match for as long as there are bytes: 255 times the size of the block.
    const block = Buffer.concat([hex("1f 61 0100"), Buffer.alloc(600, 0xff), hex("00 50 6161616161")])
    const size = Buffer.alloc(4)
    size.writeUInt32LE(block.length)
    const body = Buffer.concat([frame.subarray(0, 7), size, block, Buffer.alloc(4)])
    assert.throws(() => decompressSmall("lz4", body), /more than the frame allows/)
  })
})

describe("formats of other writers", () => {
  it("xxHash32 has the values of its reference", () => {
    assert.strictEqual(xxHash32(Buffer.alloc(0)), 0x02cc5d05)
    assert.strictEqual(xxHash32(Buffer.from("a")), 0x550d7456)
    assert.strictEqual(xxHash32(Buffer.from("Nobody inspects the spammish repetition")), 0xe2293b2f)
  })

  it("lz4: linked blocks, and all checksums", () => {
    const checksum = (bytes: Buffer) => {
      const target = Buffer.alloc(4)
      target.writeUInt32LE(xxHash32(bytes))
      return target
    }
    // Linked blocks of 64 KiB, with block and content checksums.
    const descriptor = hex("54 40")
    const first = hex("80 6162636465666768")
    // A match of 8 bytes from 8 bytes back, in the block before, then 5 literals.
    const second = hex("04 0800 50 696a6b6c6d")
    const whole = Buffer.from("abcdefghabcdefghijklm")
    const body = Buffer.concat([
      ...[hex("04224d18"), descriptor, checksum(descriptor).subarray(1, 2)],
      ...[hex("09000000"), first, checksum(first), hex("09000000"), second, checksum(second)],
      ...[Buffer.alloc(4), checksum(whole)]
    ])
    assert.deepStrictEqual(decompressSmall("lz4", body), whole)
    for (const at of [6, 20, body.length - 1]) {
      const changed = Buffer.from(body)
      changed[at] = changed[at]! ^ 1
      assert.throws(() => decompressSmall("lz4", changed), CodecError)
    }
  })

  it("snappy: raw data whose matches reach back further than 64 KiB, as some writers leave it", async () => {
    // A literal of 400 000 bytes, then 180 times 64 bytes from 300 000 bytes back.
    const literal = text(400_000).subarray(0, 400_000)
    const elements = [hex("f8 7f1a06"), literal, ...Array.from({ length: 180 }, () => hex("ff e0930400"))]
    const declared = 400_000 + 180 * 64
    const head: Array<number> = []
    for (let left = declared; ; left >>>= 7) {
      head.push(left < 0x80 ? left : (left & 0x7f) | 0x80)
      if (left < 0x80) break
    }
    const data = Buffer.concat([Buffer.from(head), ...elements])
    const read = await inPieces("snappy", data)
    assert.strictEqual(read.length, declared)
    assert.deepStrictEqual(read.subarray(400_000), Buffer.from(read.subarray(100_000, 100_000 + 180 * 64)))
    const error = await thrownBy(() => readAll(decompressPieces("snappy", data, 300_000)))
    assert.strictEqual(error instanceof CodecError && error.failure, "tooFar")
  })

  it("a codec that is not known, and none", () => {
    assert.strictEqual(unusableCodec("none"), undefined)
    assert.match(unusableCodec("brotli") ?? "", /not known/)
  })
})
