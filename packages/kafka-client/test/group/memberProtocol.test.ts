import { assert, describe, it } from "@effect/vitest"
import { ConsumerRecord } from "@eventbus/core"
import * as fc from "fast-check"
import {
  decodeGivenPartitions,
  decodeSubscription,
  encodeGivenPartitions,
  encodeSubscription
} from "../../src/internal/group/consumerProtocol.ts"
import {
  decodeAssignment,
  decodeMember,
  encodeAssignment,
  encodeMember
} from "../../src/internal/group/memberProtocol.ts"

const key = ({ topic, partition }: ConsumerRecord.TopicPartition) => ConsumerRecord.partitionKey(topic, partition)

const topicName = fc.oneof(fc.constant("__proto__"), fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }))
const partitions = fc.uniqueArray(fc.record({ topic: topicName, partition: fc.nat(2 ** 31 - 1) }), { selector: key })
const member = fc.record({
  topics: fc.uniqueArray(topicName),
  owned: partitions,
  generation: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
  copartitionedTopics: fc.array(fc.uniqueArray(topicName), { maxLength: 3 })
})
const userData = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes))

/** Big-endian numbers, texts with their length, and lists with their count, as Kafka's documentation of the consumer protocol has them. */
const int16 = (value: number) => Buffer.from([value >> 8, value & 0xff])
const int32 = (value: number) => Buffer.from([value >>> 24, (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff])
const text = (value: string) => Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)])
const list = (...elements: ReadonlyArray<Buffer>) => Buffer.concat([int32(elements.length), ...elements])
const ofTopic = (topic: string, ...numbers: ReadonlyArray<number>) =>
  Buffer.concat([text(topic), list(...numbers.map(int32))])

/** The bytes as they are, cut off somewhere, with one bit turned over, and followed by others. */
const damaged = (valid: fc.Arbitrary<Buffer>) =>
  fc.tuple(valid, fc.nat(), fc.nat(7), fc.constantFrom("cut", "flip", "append")).map(([bytes, at, bit, damage]) => {
    if (damage === "cut") return bytes.subarray(0, at % (bytes.length + 1))
    if (damage === "append") return Buffer.concat([bytes, Buffer.from("more")])
    const copy = Buffer.from(bytes)
    copy[at % copy.length]! ^= 1 << bit
    return copy
  })

describe("the consumer protocol", () => {
  it("CLN-07 claims and assignments are decoded as they were encoded", () =>
    fc.assert(
      fc.property(member, fc.boolean(), (one, eager) => {
        const decoded = decodeMember("m", encodeMember(one, eager))
        assert.sameMembers(decoded?.owned.map(key) ?? [], one.owned.map(key))
        assert.deepStrictEqual([decoded?.topics, decoded?.generation], [one.topics, one.generation])
        assert.deepStrictEqual(decoded?.copartitionedTopics, one.copartitionedTopics)
        assert.deepStrictEqual([decoded?.readsUserData, decoded?.isEager], [false, eager])
        for (const readsUserData of [true, false]) {
          for (const incomplete of [true, false]) {
            const hasEager = eager && !readsUserData
            const byUnits = one.copartitionedTopics.length > 0 && !readsUserData
            const given = { partitions: one.owned, incomplete, hasEager, byUnits }
            const bytes = encodeAssignment(given, { readsUserData })
            const assignment = decodeAssignment(bytes)
            assert.sameMembers(assignment?.partitions.map(key) ?? [], one.owned.map(key))
            assert.deepStrictEqual([assignment?.incomplete, assignment?.hasEager], [incomplete, hasEager])
            assert.strictEqual(assignment?.byUnits, byUnits)
            // A broker refuses to move a group to KIP-848 over it.
            assert.strictEqual(decodeGivenPartitions(bytes)?.userData.length === 0, !readsUserData)
          }
        }
      })
    ))

  it("CLN-07 without our userData a claim and an assignment are read where other clients write them", () =>
    fc.assert(
      fc.property(member, userData, ({ topics, owned, generation }, bytes) => {
        const one = { topics, owned, generation }
        const subscription = decodeSubscription(encodeSubscription({ ...one, userData: bytes }))
        assert.sameMembers(subscription?.owned.map(key) ?? [], one.owned.map(key))
        assert.deepStrictEqual({ ...subscription, owned: one.owned }, { ...one, version: 2, userData: bytes })
        const behind = Buffer.from("more")
        const given = decodeGivenPartitions(encodeGivenPartitions({ partitions: one.owned, userData: bytes, behind }))
        assert.sameMembers(given?.partitions.map(key) ?? [], one.owned.map(key))
        assert.deepStrictEqual(given?.userData, bytes)
      })
    ))

  it("CLN-07 a subscription of Java's client in versions 0 to 3, and in a newer one", () => {
    const topics = list(text("orders"), text("payments"))
    const owned = list(ofTopic("orders", 0, 2))
    const none = int32(-1)
    const of = (...parts: ReadonlyArray<Buffer>) => {
      const { topics, owned, generation } = decodeSubscription(Buffer.concat(parts))!
      return [topics.join(), owned.map(key).join(), generation]
    }
    assert.deepStrictEqual(of(int16(0), topics, none), ["orders,payments", "", -1])
    assert.deepStrictEqual(of(int16(1), topics, none, owned), ["orders,payments", "orders/0,orders/2", -1])
    const withGeneration = Buffer.concat([int32(4), int32(7)])
    assert.deepStrictEqual(of(int16(1), topics, withGeneration, owned), ["orders,payments", "orders/0,orders/2", 7])
    assert.deepStrictEqual(of(int16(2), topics, none, owned, int32(9)), ["orders,payments", "orders/0,orders/2", 9])
    const rack = text("rack-a")
    for (const version of [3, 9]) {
      const newer = [int16(version), topics, none, owned, int32(9), rack, Buffer.from("added later")]
      assert.deepStrictEqual(of(...newer), ["orders,payments", "orders/0,orders/2", 9])
    }
    assert.deepStrictEqual(of(int16(0), none, none), ["", "", -1])
  })

  it("CLN-07 ruling 80 an assignment by kafkajs, by Java and by the broker is used", () => {
    const partitions = list(ofTopic("orders", 0, 2), ofTopic("payments", 1))
    const byKafkajs = Buffer.concat([int16(0), partitions, int32(0)])
    for (const bytes of [byKafkajs, Buffer.concat([int16(3), partitions, int32(-1)])]) {
      const assignment = decodeAssignment(bytes)
      assert.deepStrictEqual(assignment?.partitions.map(key), ["orders/0", "orders/2", "payments/1"])
      assert.isFalse(assignment?.incomplete)
    }
    assert.deepStrictEqual(decodeAssignment(Buffer.alloc(0)), {
      ...{ partitions: [], incomplete: false },
      ...{ hasEager: false, byUnits: false }
    })
  })

  it("CLN-07 our subscription and our assignment begin with the fields that kafkajs reads", () => {
    const owned = [
      { topic: "orders", partition: 3 },
      { topic: "payments", partition: 0 }
    ]
    const metadata = encodeMember(
      { topics: ["orders", "payments"], owned, generation: 4, copartitionedTopics: [["orders", "payments"]] },
      true
    )
    const readOfMetadata = Buffer.concat([int16(2), list(text("orders"), text("payments"))])
    assert.isTrue(metadata.subarray(0, readOfMetadata.length).equals(readOfMetadata))
    const given = encodeAssignment(
      { partitions: owned, incomplete: true, hasEager: true, byUnits: true },
      { readsUserData: false }
    )
    const readOfGiven = Buffer.concat([int16(0), list(ofTopic("orders", 3), ofTopic("payments", 0)), int32(0)])
    assert.isTrue(given.subarray(0, readOfGiven.length).equals(readOfGiven))
  })

  it("CLN-07 bytes of another protocol are none, and of damaged ones nothing is made up", () => {
    assert.isUndefined(decodeAssignment(Buffer.from("no assignment at all")))
    assert.isUndefined(decodeAssignment(Buffer.from([7])))
    assert.isUndefined(decodeAssignment(Buffer.concat([int16(-1), list(), int32(-1)])))
    assert.isUndefined(decodeAssignment(Buffer.concat([int16(0), int32(-2), int32(-1)])))
    const both = member.map((one) => [
      encodeMember(one, true),
      encodeAssignment(
        { partitions: one.owned, incomplete: false, hasEager: true, byUnits: true },
        { readsUserData: true }
      )
    ])
    for (const which of [0, 1]) {
      fc.assert(
        fc.property(damaged(both.map((pair) => pair[which]!)), (bytes) => {
          // Neither throws, and everything that is read fits into the bytes.
          const read = which === 0 ? decodeMember("m", bytes)?.owned : decodeAssignment(bytes)?.partitions
          assert.isAtMost(read?.length ?? 0, bytes.length)
        }),
        { numRuns: 1_000 }
      )
    }
  })

  it("CLN-07 of valid bytes that are cut off, nothing is read in part", () =>
    fc.assert(
      fc.property(member, userData, fc.nat(), (one, bytes, at) => {
        const cut = (whole: Buffer) => whole.subarray(0, at % whole.length)
        assert.isUndefined(decodeSubscription(cut(encodeSubscription({ ...one, userData: bytes }))))
        const given = cut(encodeGivenPartitions({ partitions: one.owned, userData: bytes, behind: Buffer.alloc(0) }))
        if (given.length > 0) assert.isUndefined(decodeGivenPartitions(given))
      })
    ))

  it("a claim that cannot be read counts as none of ours; the standard one stays", () => {
    const metadata = encodeMember(
      { topics: ["orders"], owned: [{ topic: "orders", partition: 1 }], generation: 5, copartitionedTopics: [] },
      false
    )
    const broken = Buffer.from(metadata.toString("latin1").replace("{", "!"), "latin1")
    assert.deepStrictEqual(decodeMember("m", broken), {
      memberId: "m",
      topics: ["orders"],
      owned: [{ topic: "orders", partition: 1 }],
      generation: 5,
      copartitionedTopics: [],
      readsUserData: false,
      isEager: false,
      isConnector: false
    })
  })

  it("a member of the first version claims in userData, and gets its assignment there", () => {
    const claim = Buffer.from(JSON.stringify({ generation: 3, owned: [["orders", [1]]] }))
    const metadata = Buffer.concat([int16(0), list(text("orders")), int32(claim.length), claim])
    assert.deepStrictEqual(decodeMember("m", metadata), {
      ...{ memberId: "m", topics: ["orders"], owned: [{ topic: "orders", partition: 1 }], generation: 3 },
      copartitionedTopics: [],
      readsUserData: true,
      isEager: false,
      isConnector: true
    })
    const partitions = [{ topic: "orders", partition: 1 }]
    const given = encodeAssignment(
      { partitions, incomplete: true, hasEager: false, byUnits: false },
      { readsUserData: true }
    )
    const before = Buffer.concat([int16(0), list(ofTopic("orders", 1))])
    assert.isTrue(given.subarray(0, before.length).equals(before))
    const body = given.subarray(before.length + 4, before.length + 4 + given.readInt32BE(before.length))
    assert.deepStrictEqual(JSON.parse(body.toString()), {
      incomplete: true,
      partitions: [["orders", [1]]]
    })
  })
})
