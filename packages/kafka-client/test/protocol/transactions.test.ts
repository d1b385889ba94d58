/** The requests of transactions as bytes: with the member (KIP-447, Kafka 2.5), and those by which brokers add partitions and groups themselves (KIP-890, Kafka 4.0). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reader } from "../../src/internal/protocol/reader.ts"
import { ProduceAdding } from "../../src/internal/protocol/records.ts"
import { EndTxnBumping, TxnOffsetCommit, TxnOffsetCommitAdding } from "../../src/internal/protocol/transactions.ts"
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
        features: async () => new Map(),
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

describe("CLN-14 transactions of version 2", () => {
  it("CLN-14 TxnOffsetCommit 5 has the body of version 3", () => {
    const { versions, isFlexible, encode } = TxnOffsetCommitAdding
    assert.deepStrictEqual(versions, { min: 5, max: 5 })
    assert.strictEqual(encode(payload, 5).bytes.toString("hex"), hex(3))
    assert.isTrue(typeof isFlexible === "function" && isFlexible(5))
  })

  it("CLN-14 EndTxn 5 is flexible, and its answer names the identity of the next transaction", () => {
    const { transactionalId, producerId, producerEpoch } = payload
    const identity = { transactionalId, producerId, producerEpoch }
    for (const [transactionResult, byte] of [
      [true, "01"],
      [false, "00"]
    ] as const) {
      const { bytes } = EndTxnBumping.encode({ ...identity, transactionResult }, 5)
      assert.strictEqual(bytes.toString("hex"), `0274${producer}${byte}00`)
    }
    const answer = Buffer.from(`00000005${"0000"}${"0000000000000103"}${"0000"}00`, "hex")
    const next = { errorCode: 0, producerId: "259", producerEpoch: 0 }
    assert.deepStrictEqual(EndTxnBumping.decode(new Reader(answer), 5), next)
  })

  it("CLN-14 an answer to Produce 12 is read behind its errors of records and its leader", () => {
    const recordError = `02${"00000003"}${"0362"}6100`
    const leader = `01${"00"}09${"0000000100000002"}00`
    const result = `00000001${"0057"}0000000000000009${"ff".repeat(8)}0000000000000002`
    const body = `02${"046f7574"}02${result}${recordError}${"036e6f"}${leader}00${"00000007"}00`
    const reader = new Reader(Buffer.from(body, "hex"))
    assert.deepStrictEqual(ProduceAdding.decode(reader, 12), {
      topics: [{ topicName: "out", partitions: [{ partition: 1, errorCode: 87, baseOffset: "9" }] }]
    })
    assert.strictEqual(reader.throttleMillis, 7)
    assert.strictEqual(reader.rest().length, 0)
  })
})
