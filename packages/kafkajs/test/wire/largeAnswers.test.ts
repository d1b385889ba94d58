/** Answers of every size, in parts of every size: each arrives whole, with its own bytes. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { connection, type KafkaConnection } from "../../src/internal/wire/kafkajsInternals.ts"
import { patchKafkajs } from "../../src/internal/wire/kafkajsPatches.ts"

patchKafkajs()

interface Answer {
  readonly correlationId: number
  readonly payload: Buffer
}

/** A connection that has sent requests, and keeps the answers to them. */
const connected = (): { readonly receive: KafkaConnection["processData"]; readonly answers: Array<Answer> } => {
  const answers: Array<Answer> = []
  const self: KafkaConnection = Object.assign(Object.create(connection.prototype), {
    chunks: [],
    bytesBuffered: 0,
    bytesNeeded: 4,
    requestQueue: {
      fulfillRequest: ({ correlationId, payload }: Answer) => answers.push({ correlationId, payload })
    }
  })
  return { receive: (bytes) => self.processData(bytes), answers }
}

const framed = (correlationId: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(8)
  head.writeInt32BE(4 + payload.length)
  head.writeInt32BE(correlationId, 4)
  return Buffer.concat([head, payload])
}

const payloadOf = (seed: number, size: number): Buffer =>
  Buffer.from({ length: size }, (_, at) => (at * 31 + seed) % 251)

const sizes = fc.array(fc.oneof(fc.nat(300), fc.nat(300_000), fc.constantFrom(65_528, 65_532, 65_536)), {
  minLength: 1,
  maxLength: 6
})
const parts = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.nat(200_000)), {
  minLength: 1,
  maxLength: 20
})

describe("large answers", () => {
  it("CLN-06 answers in parts of any size arrive whole and in order, and none keeps the bytes of its parts", () =>
    fc.assert(
      fc.property(sizes, parts, (sizesOfAnswers, sizesOfParts) => {
        const sent = sizesOfAnswers.map((size, index) => ({ correlationId: index, payload: payloadOf(index, size) }))
        const bytes = Buffer.concat(sent.map(({ correlationId, payload }) => framed(correlationId, payload)))
        const { receive, answers } = connected()
        for (let at = 0, round = 0; at < bytes.length; round++) {
          const size = Math.max(1, sizesOfParts[round % sizesOfParts.length]!)
          const part = Buffer.from(bytes.subarray(at, at + size))
          receive(part)
          at += part.length
        }
        assert.deepStrictEqual(
          answers.map(({ correlationId }) => correlationId),
          sent.map(({ correlationId }) => correlationId)
        )
        for (const [index, { payload }] of answers.entries()) {
          assert.isTrue(payload.equals(sent[index]!.payload), `answer ${index}`)
        }
      }),
      { numRuns: 60 }
    ))
})
