/** TxnOffsetCommit in the versions that brokers speak: from version 3 on it names the member (KIP-447, Kafka 2.5). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reader } from "../../src/internal/protocol/reader.ts"
import { TxnOffsetCommit } from "../../src/internal/protocol/transactions.ts"
import { call } from "../../src/internal/wire/requests.ts"
import type { NodeClient, Request } from "../../src/Transport.ts"

const payload = {
  ...{ transactionalId: "t", producerId: "258", producerEpoch: 3 },
  ...{ groupId: "g", generationId: 7, memberId: "m", groupInstanceId: null },
  topics: [{ topic: "in", partitions: [{ partition: 1, offset: "9", metadata: null }] }]
}

const hex = (version: number) => TxnOffsetCommit.encode(payload, version).bytes.toString("hex")

const producer = "0000000000000102" + "0003"

describe("CLN-14 TxnOffsetCommit", () => {
  it("CLN-14 before version 3 says nothing of a member, and before version 2 nothing of a leader", () => {
    const head = `000174000167${producer}00000001` + "0002696e" + "00000001" + "00000001" + "0000000000000009"
    assert.strictEqual(hex(0), `${head}ffff`)
    assert.strictEqual(hex(1), `${head}ffff`)
    assert.strictEqual(hex(2), `${head}ffffffffffff`)
  })

  it("CLN-14 version 3 has the generation, the member and its instance, in flexible encoding", () => {
    const member = "00000007" + "026d" + "00"
    const partition = "00000001" + "0000000000000009" + "ffffffff" + "00" + "00"
    assert.strictEqual(hex(3), `02740267${producer}${member}02` + `03696e02${partition}00` + "00")
    const answer = Buffer.from("00000005" + "02" + "03696e" + "02" + "00000001" + "0019" + "00" + "00" + "00", "hex")
    assert.deepStrictEqual(TxnOffsetCommit.decode(new Reader(answer), 3), {
      topics: [{ topic: "in", partitions: [{ partition: 1, errorCode: 25 }] }]
    })
  })

  it.effect("CLN-18 a broker that speaks no version 3 gets an older one, which is not flexible", () =>
    Effect.gen(function* () {
      const sent: Array<readonly [number, boolean]> = []
      const node = (max: number): NodeClient => ({
        ...{ host: "localhost", port: 9092, connect: async () => {}, disconnect: async () => {} },
        ...{ isConnected: () => true, isBusy: () => false, closeAtOnce: () => {}, versionsOf: () => ({ min: 0, max }) },
        send: async <A>({ apiVersion, isFlexible }: Request<A>) => {
          sent.push([apiVersion, isFlexible])
          return { topics: [] } as A
        }
      })
      for (const max of [1, 2, 3, 5]) yield* call(node(max), "TxnOffsetCommit", payload)
      assert.deepStrictEqual(sent, [
        [1, false],
        [2, false],
        [3, true],
        [3, true]
      ])
    })
  )
})
