/** The header of a request is written into the room before its body. The bytes equal those that kafkajs would have copied. */
import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import { Transport } from "@eventbus/kafka-client"
import * as fc from "fast-check"
import type { Encoded } from "../src/internal/kafkajsInternals.ts"
import { patchKafkajs } from "../src/internal/kafkajsPatches.ts"

type CreateRequest = (request: {
  readonly correlationId: number
  readonly clientId: string
  readonly request: { readonly apiKey: number; readonly apiVersion: number; readonly encode: () => Promise<Encoded> }
}) => Promise<{ readonly buffer: Buffer }>

const createRequest: CreateRequest = createRequire(import.meta.url)("kafkajs/src/protocol/request")

describe("a request of kafkajs", () => {
  patchKafkajs()

  it("length and header come before the body, whether there is room for them or not", () =>
    fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 700 }), fc.uint8Array(), async (clientId, bytes) => {
        const whole = Buffer.concat([Buffer.alloc(Transport.headerRoom), bytes])
        const body = whole.subarray(Transport.headerRoom)
        const copied = Buffer.from(body)
        const framed = (encoded: Encoded) =>
          createRequest({
            correlationId: 9,
            clientId,
            request: { apiKey: 0, apiVersion: 7, encode: async () => encoded }
          })
        const inPlace = await framed({ buf: body, buffer: body, whole })
        const byCopy = await framed({ buf: copied, buffer: copied })
        assert.isTrue(inPlace.buffer.equals(byCopy.buffer))
        assert.strictEqual(inPlace.buffer.readInt32BE(0), inPlace.buffer.length - 4)
      })
    ))
})
