import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { isBytes } from "../../src/internal/base/bytes.ts"

describe("ruling 86: what counts as bytes", () => {
  it("takes typed arrays of bytes, whoever made them", () => {
    for (const bytes of [new Uint8Array(2), Buffer.from("x"), runInNewContext("new Uint8Array(2)")])
      assert.isTrue(isBytes(bytes))
  })

  it("takes nothing that only says that it is bytes", () => {
    const { proxy: revoked, revoke } = Proxy.revocable({}, {})
    revoke()
    const others: ReadonlyArray<unknown> = [
      { [Symbol.toStringTag]: "Uint8Array" },
      Object.create(Uint8Array.prototype),
      new Proxy(new Uint8Array(2), {}),
      revoked,
      new Uint16Array(2),
      [1],
      "text",
      null,
      undefined
    ]
    for (const other of others) assert.isFalse(isBytes(other))
  })
})
