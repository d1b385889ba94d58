/** ApiVersions v3 tells the features that the cluster has agreed on (KIP-584). */
import { assert, describe, it } from "@effect/vitest"
import { apiVersions, oldestApiVersions } from "../../src/Handshake.ts"

const request = apiVersions({ name: "n", version: "1" })

const decode = (fields: string) =>
  request.decode(Buffer.from(`0000${"02"}${"000300000005"}00${"00000000"}${fields}`, "hex")).answer

const feature = `02${"0374"}78${"0002"}${"0000"}00`

describe("features", () => {
  it("CLN-14 CLN-18 are read with the versions, by name, where their epoch is known", () => {
    const { features, versions } = decode(`03${"00"}01${"01"}01${"08"}${"0000000000000005"}02${"09"}${feature}`)
    assert.deepStrictEqual([...features], [["tx", 2]])
    assert.deepStrictEqual([...versions], [[3, { min: 0, max: 5 }]])
  })

  it("CLN-18 there are none where the node does not know them, does not say them, or answers in an older version", () => {
    assert.strictEqual(decode(`02${"01"}08${"ffffffffffffffff"}02${"09"}${feature}`).features.size, 0)
    assert.strictEqual(decode(`01${"02"}09${feature}`).features.size, 0)
    assert.strictEqual(decode("00").features.size, 0)
    const old = Buffer.from(`0000${"00000001"}${"000300000005"}`, "hex")
    assert.strictEqual(oldestApiVersions.decode(old).answer.features.size, 0)
  })
})
