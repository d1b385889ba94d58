/** Answers come whole, whatever pieces their bytes come in. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Frames } from "../../../packages/kafka/src/internal/frames.ts"
import { frame } from "./scriptedNode.ts"

const lengthOf = (bytes: number): Buffer => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(bytes)
  return length
}

const collected = () => {
  const answers: Array<{ correlationId: number; body: Buffer }> = []
  return { answers, frames: new Frames((correlationId, body) => answers.push({ correlationId, body })) }
}

/** Cuts bytes at the given positions. */
const piecesOf = (bytes: Buffer, cuts: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const positions = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return positions.slice(1).map((to, index) => bytes.subarray(positions[index], to))
}

describe("frames", () => {
  it("gives back every answer, however its bytes are cut", () => {
    const bodies = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 })
    fc.assert(
      fc.property(bodies, fc.array(fc.nat(), { maxLength: 30 }), (given, cuts) => {
        const { answers, frames } = collected()
        const bytes = Buffer.concat(given.map((body, index) => frame(index, Buffer.from(body))))
        for (const piece of piecesOf(bytes, cuts)) frames.read(piece)
        assert.deepStrictEqual(
          answers.map(({ body, correlationId }) => ({ correlationId, body: [...body] })),
          given.map((body, index) => ({ correlationId: index, body: [...body] }))
        )
      })
    )
  })

  it("gives back answers that come a byte at a time", () => {
    const { answers, frames } = collected()
    for (const byte of Buffer.concat([frame(3, Buffer.from("one")), frame(4, Buffer.from("two"))])) {
      frames.read(Buffer.of(byte))
    }
    assert.deepStrictEqual(
      answers.map(({ body }) => body.toString()),
      ["one", "two"]
    )
  })

  it("copies no answer that comes in one piece", () => {
    const { answers, frames } = collected()
    const bytes = frame(1, Buffer.alloc(10_000))
    frames.read(bytes)
    assert.strictEqual(answers[0]!.body.buffer, bytes.buffer)
  })

  it("takes 64 MB in pieces of 64 KiB within a second", () => {
    const { answers, frames } = collected()
    const bytes = frame(1, Buffer.alloc(64_000_000, 7))
    const startedAt = performance.now()
    for (let at = 0; at < bytes.length; at += 65_536) frames.read(bytes.subarray(at, at + 65_536))
    assert.isBelow(performance.now() - startedAt, 1_000)
    assert.isTrue(answers[0]!.body.equals(bytes.subarray(8)))
  })

  it.each([
    [lengthOf(-1), -1],
    [lengthOf(0), 0],
    [lengthOf(3), 3],
    [lengthOf(256 * 1024 * 1024 + 1), 268_435_457],
    [Buffer.from("HTTP"), 1_213_486_160]
  ])("CLN-17 refuses %o as a length, in one piece and in two", (bytes, announced) => {
    const error = new RegExp(`announced ${announced} bytes`)
    assert.throws(() => collected().frames.read(bytes), error)
    const { frames } = collected()
    frames.read(bytes.subarray(0, 2))
    assert.throws(() => frames.read(bytes.subarray(2)), error)
  })
})
