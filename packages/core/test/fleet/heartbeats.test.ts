import { assert, describe, it } from "@effect/vitest"
import * as Format from "../../src/internal/base/entryFormat.ts"
import * as Heartbeats from "../../src/internal/fleet/heartbeatEntries.ts"
import type { BindingSnapshot, PartitionSnapshot } from "../../src/Snapshot.ts"

const head = { host: "a", pid: 1, version: "1", configHash: "00", sentAt: 0, control: "known" }

const partition = (number: number, change: Partial<PartitionSnapshot> = {}) =>
  ({
    ...{ topic: "orders", partition: number, position: 10n, lag: 5n, inFlight: 1, pauses: [], waitingMillis: 0 },
    ...change
  }) as unknown as PartitionSnapshot

const binding = (name: string, partitions: ReadonlyArray<PartitionSnapshot>, held: BindingSnapshot["held"] = []) =>
  ({
    ...{ name, cluster: "default", groupId: "billing", state: "RUNNING", pausedBy: [] },
    partitions,
    held
  }) as unknown as BindingSnapshot

const decoded = (bytes: Uint8Array) => {
  const found = Heartbeats.decode(bytes)
  if (found._tag !== "Entry") throw new Error(found._tag)
  return found.entry
}

const six = Array.from({ length: 6 }, (_, number) => partition(number))

describe("heartbeats", () => {
  it("OPS-15 200 bindings of 6 partitions fit into 32 KiB, as totals", () => {
    const bytes = Heartbeats.encode(
      head,
      Array.from({ length: 200 }, (_, index) => binding(`orders-${index}`, six))
    )
    assert.isAtMost(bytes.length, 32 * 1_024)
    const { bindings, omitted } = decoded(bytes)
    assert.deepStrictEqual([bindings.length, omitted], [200, 0])
    assert.deepInclude(bindings[0], { partitions: 6, lag: "30", inFlight: 6, standing: [] })
  })

  it("OPS-15 bindings without room are counted, and those with standing partitions come first", () => {
    const many = Array.from({ length: 400 }, (_, index) => binding(`${"n".repeat(240)}-${index}`, six))
    const last = binding("last", [partition(3, { waitingMillis: 90_000 })])
    const bytes = Heartbeats.encode(head, [...many, last])
    assert.isAtMost(bytes.length, 32 * 1_024)
    const { bindings, omitted } = decoded(bytes)
    assert.strictEqual(bindings[0]?.name, "last")
    assert.strictEqual(bindings.length + omitted, 401)
    assert.isAbove(omitted, 0)
  })

  it("OPS-15 a heartbeat names at most 20 standing partitions, the longest first, and why", () => {
    const standing = Array.from({ length: 30 }, (_, number) => partition(number, { waitingMillis: 60_000 + number }))
    const [told] = decoded(Heartbeats.encode(head, [binding("orders", standing)])).bindings
    assert.strictEqual(told?.standing.length, 20)
    assert.deepStrictEqual(told?.standing[0], {
      ...{ topic: "orders", partition: 29, position: "10", lag: "5", forMillis: 60_029, why: "waiting" }
    })
    const whys = decoded(
      Heartbeats.encode(head, [
        binding(
          "orders",
          [
            partition(0, { waitingMillis: 9 }),
            partition(1, { unreadable: {} as never, waitingMillis: 8 }),
            partition(2, { openTransactionSinceMillis: 1, waitingMillis: 7 }),
            partition(3, { pauses: ["operator"], waitingMillis: 90_000 })
          ],
          [{ topic: "orders", partition: 0 } as never]
        )
      ])
    ).bindings[0]?.standing
    assert.deepStrictEqual(
      whys?.map(({ partition, why }) => [partition, why]),
      [
        [0, "record"],
        [1, "unreadable"],
        [2, "transaction"]
      ]
    )
  })

  it("OPS-15 an entry is malformed without versions, and newer when it needs a newer reader", () => {
    const decode = (text: string) => Heartbeats.decode(Format.bytesOf(text))._tag
    assert.strictEqual(decode("{"), "Malformed")
    assert.strictEqual(decode("[]"), "Malformed")
    assert.strictEqual(decode('{"v":1}'), "Malformed")
    assert.strictEqual(decode('{"v":1,"minV":1}'), "Malformed")
    assert.strictEqual(decode('{"v":2,"minV":2}'), "Newer")
  })
})
