/** Requests as they go to the socket. */
import { assert, describe, it } from "@effect/vitest"
import { requestBytes } from "../../../packages/kafka/src/internal/requestBytes.ts"
import { Writer } from "../../../packages/kafka-client/src/internal/protocol/writer.ts"
import { echo } from "./scriptedNode.ts"

const expected = (isFlexible: boolean): Buffer => {
  const header = new Writer().int16(3).int16(1).int32(258).string("client")
  const request = (isFlexible ? header.noTags() : header).raw(Buffer.from("body")).body.bytes
  return new Writer().bytes(request).body.bytes
}

describe("the bytes of a request", () => {
  it.each([false, true])(
    "have a header in the room before the body, which is not copied (flexible: %s)",
    (isFlexible) => {
      const { body } = new Writer().raw(Buffer.from("body"))
      const bytes = requestBytes(echo("", { isFlexible, encode: () => body }), 258, Buffer.from("client"))
      assert.deepStrictEqual(bytes, expected(isFlexible))
      assert.strictEqual(bytes.buffer, body.bytes.buffer)
      assert.strictEqual(bytes.byteOffset + bytes.length, body.bytes.byteOffset + body.bytes.length)
    }
  )

  it.each([false, true])("are the same where the body has no room before it (flexible: %s)", (isFlexible) => {
    const encode = () => ({ bytes: Buffer.from("body") })
    const bytes = requestBytes(echo("", { isFlexible, encode }), 258, Buffer.from("client"))
    assert.deepStrictEqual(bytes, expected(isFlexible))
  })

  it("hold a client id that is longer than the room", () => {
    const clientId = Buffer.alloc(1_000, "x")
    const bytes = requestBytes(echo("body"), 1, clientId)
    assert.strictEqual(bytes.readInt32BE(0), bytes.length - 4)
    assert.strictEqual(bytes.subarray(-1_004).toString(), `${clientId}body`)
  })
})
