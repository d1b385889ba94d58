import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import * as Format from "../../src/internal/base/entryFormat.ts"
import * as Acks from "../../src/internal/fleet/ackEntries.ts"
import * as Commands from "../../src/internal/fleet/commandEntries.ts"
import * as Holds from "../../src/internal/fleet/holdEntries.ts"

const record = (value: Uint8Array | null) =>
  ({ value, timestamp: 5, timestampType: "LogAppendTime" }) as unknown as ConsumerRecord

const anyName = fc.string({ minLength: 1 }).filter((text) => text.isWellFormed())

describe("entries of a fleet", () => {
  it("OPS-13 a hold is of the binding, group, cluster and tier that its key names, whatever their characters", () =>
    fc.assert(
      fc.property(
        fc.record({
          ...{ cluster: anyName, groupId: anyName, binding: anyName },
          tier: fc.option(fc.integer({ min: 1, max: 99 }), { nil: undefined })
        }),
        (address) => {
          const holds = new Map<string, Holds.ReadHold>()
          const key = Holds.keyOf(address)
          assert.isTrue(Holds.apply(holds, key, record(Format.encode({ by: "ann", reason: "r" }))))
          assert.deepStrictEqual(holds.get(key)?.hold, {
            ...{ ...address, by: "ann", reason: "r", sinceMillis: 5, untilMillis: undefined }
          })
          assert.isTrue(Holds.apply(holds, key, record(null)))
          assert.strictEqual(holds.size, 0)
        }
      )
    ))

  it("OPS-13 any bytes under the key of a hold hold", () =>
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(Format.bytesOf)), (bytes) => {
        const holds = new Map<string, Holds.ReadHold>()
        Holds.apply(holds, "hold/default/billing/orders", record(bytes))
        assert.strictEqual(holds.size, 1)
      })
    ))

  it("OPS-14 any bytes under the key of a command are a command", () =>
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(Format.bytesOf)), (bytes) => {
        assert.strictEqual(Commands.read("command/1", record(bytes))?.decoded._tag, "Malformed")
      })
    ))

  it("OPS-14 the newest answer of a process counts; one in a newer format is none", () => {
    const acks = new Map<string, Map<string, Acks.AckEntry>>()
    const bytesOf = (state: Acks.AckEntry["state"]) =>
      Acks.record("t", "c", "p", { state, host: "h", bindings: 1 }).value!
    Acks.apply(acks, "ack/c/p", bytesOf("accepted"))
    Acks.apply(acks, "ack/c/p", bytesOf("done"))
    Acks.apply(acks, "ack/c/p", Format.bytesOf('{"v":2,"minV":2,"state":"undone"}'))
    assert.strictEqual(acks.get("c")?.get("p")?.state, "done")
  })

  it("OPS-14 an entry of a newer writer is taken as far as it is known, and keeps its other fields", () => {
    const decoded = Commands.read(
      "command/1",
      record(
        Format.bytesOf(
          JSON.stringify({
            ...{ v: 4, minV: 1, verb: "rewind", target: {}, by: "a", reason: "r", expiresAfter: 1, later: [1] }
          })
        )
      )
    )?.decoded
    if (decoded?._tag !== "Entry") return assert.fail(decoded?._tag)
    assert.deepStrictEqual([decoded.v, decoded.entry.verb, decoded.fields["later"]], [4, "rewind", [1]])
  })
})
