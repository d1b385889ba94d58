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

/** As a socket does: into the room that is there, as often as it takes. */
const readInto = (frames: Frames, piece: Buffer): void => {
  for (let at = 0; at < piece.length; ) {
    const taken = piece.copy(frames.room(), 0, at)
    frames.take(taken)
    at += taken
  }
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
        for (const piece of piecesOf(bytes, cuts)) readInto(frames, piece)
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
      readInto(frames, Buffer.of(byte))
    }
    assert.deepStrictEqual(
      answers.map(({ body }) => body.toString()),
      ["one", "two"]
    )
  })

  it("has a long answer read to where it stays, and keeps what it gave away", () => {
    const { answers, frames } = collected()
    const bytes = Buffer.concat([frame(1, Buffer.alloc(300_000, 1)), frame(2, Buffer.alloc(10, 2))])
    readInto(frames, bytes.subarray(0, 100))
    const rest = frames.room()
    assert.lengthOf(rest, 300_000 + 8 - 100)
    readInto(frames, bytes.subarray(100))
    assert.strictEqual(answers[0]!.body.buffer, rest.buffer)
    readInto(frames, frame(3, Buffer.alloc(50_000, 3)))
    assert.deepStrictEqual(
      answers.map(({ body }) => [body.length, body.every((byte) => byte === body[0])]),
      [300_000, 10, 50_000].map((length) => [length, true])
    )
  })

  it("takes 64 MB in pieces of 64 KiB within a second", () => {
    const { answers, frames } = collected()
    const bytes = frame(1, Buffer.alloc(64_000_000, 7))
    const startedAt = performance.now()
    for (let at = 0; at < bytes.length; at += 65_536) readInto(frames, bytes.subarray(at, at + 65_536))
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
    assert.throws(() => readInto(collected().frames, bytes), error)
    const { frames } = collected()
    readInto(frames, bytes.subarray(0, 2))
    assert.throws(() => readInto(frames, bytes.subarray(2)), error)
  })
})
