import { assert, describe, it } from "@effect/vitest"
import * as CommitMetadata from "../../src/internal/partition/commitMetadata.ts"

const { format, isOfFormerTopic, parse, topicOf } = CommitMetadata

describe("the metadata of a commit", () => {
  it("ruling 85: what is written is read again, each field on its own", () => {
    const all = [
      { firstReadMillis: 1_700_000_000_000, topic: "c1/Ab_-9" },
      { firstReadMillis: 5, topic: undefined },
      { firstReadMillis: undefined, topic: "c1/Ab_-9" }
    ]
    for (const fields of all) assert.deepStrictEqual(parse(format(fields) ?? ""), fields)
    assert.strictEqual(format({ firstReadMillis: undefined, topic: undefined }), undefined)
  })

  it("the time stands first, where the version before looks for it", () => {
    assert.match(format({ firstReadMillis: 5.7, topic: "c/x" })!, /^eventbus:first-read=5;topic=c\/x$/)
  })

  it("unknown fields, text of others and broken times say nothing", () => {
    const nothing = { firstReadMillis: undefined, topic: undefined }
    for (const text of ["", "topic=x", "eventbus:", "eventbus:first-read=", "eventbus:first-read=-1;later=x", "{}"]) {
      assert.deepStrictEqual(parse(text), nothing, text)
    }
    assert.deepStrictEqual(parse("eventbus:later=1;topic=x"), { ...nothing, topic: "x" })
  })

  it("CLN-13: an offset is of a former topic only if both topics are known, differ, and are of one cluster", () => {
    const metadata = "eventbus:topic=c/x"
    assert.isTrue(isOfFormerTopic({ metadata }, "c/y"))
    assert.isFalse(isOfFormerTopic({ metadata }, "c/x"))
    assert.isFalse(isOfFormerTopic({ metadata }, "d/y"))
    assert.isFalse(isOfFormerTopic({ metadata }, undefined))
    assert.isFalse(isOfFormerTopic({ metadata: "" }, "c/y"))
  })

  it("a cluster without an id, and a topic without one, name no topic", () => {
    assert.deepStrictEqual(
      [topicOf("c", "x"), topicOf("", "x"), topicOf("c", undefined)],
      ["c/x", undefined, undefined]
    )
  })
})
