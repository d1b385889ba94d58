import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@eventbus/core"
import { encodeRecord } from "../../src/internal/batch/encodedRecord.ts"
import { type Batch, PartitionLog, type PendingRecord } from "../../src/internal/publish/partitionLog.ts"
import { outcomeOf } from "../../src/internal/publish/produceOutcome.ts"

const identity = { producerId: 1n, producerEpoch: 0 }
const timedOut = new BrokerError.RequestTimedOut({ operation: "send", millis: 1 })

const log = () => {
  const results: Array<string> = []
  const subject = new PartitionLog("t", 0)
  subject.adoptIdentity(identity)
  const add = (name: string, bytes = 1, deadline = Number.MAX_SAFE_INTEGER) => {
    const settle = (result: string) => {
      if (pending.settled) return
      pending.settled = true
      results.push(result)
    }
    const pending: PendingRecord = {
      record: encodeRecord({ topic: "t", key: null, value: Buffer.from(name) }, 0),
      bytes,
      deadline,
      settled: false,
      succeed: ({ offset }) => settle(`${name}@${offset}`),
      fail: ({ _tag }) => settle(`${name}:${_tag}`)
    }
    subject.add(pending)
    return pending
  }
  const take = () => subject.take(100, 100)!
  return { subject, results, add, take }
}

const names = (batch: Batch | undefined) => batch?.records.map(({ record }) => String(record.value))

describe("partition log", () => {
  it("one batch is in flight at a time, in the order of the calls, within the limits", () => {
    const { subject, add, results } = log()
    for (const name of ["a", "b", "c", "d"]) add(name, 2)
    const first = subject.take(3, 4)!
    assert.deepStrictEqual(names(first), ["a", "b"])
    assert.isUndefined(subject.take(3, 4))
    subject.acknowledged(first, 10n)
    assert.deepStrictEqual(names(subject.take(1, 4)), ["c"])
    assert.deepStrictEqual(results, ["a@10", "b@11"])
  })

  it("a record larger than the limit is sent alone", () => {
    const { subject, add } = log()
    add("large", 50)
    add("small", 1)
    assert.deepStrictEqual(names(subject.take(10, 4)), ["large"])
  })

  it("only an acknowledged batch uses up sequence numbers", () => {
    const { subject, add, take } = log()
    add("a")
    add("b")
    const batch = take()
    subject.requeue(batch, "unknown")
    assert.strictEqual(subject.sequence, 0)
    assert.strictEqual(take(), batch)
    subject.acknowledged(batch, 0n)
    assert.strictEqual(subject.sequence, 2)
  })

  it("a batch that may have been written is sent again unchanged, before anything newer", () => {
    const { subject, add, take } = log()
    add("a")
    const batch = take()
    subject.requeue(batch, "unknown")
    add("b")
    assert.deepStrictEqual(names(take()), ["a"])
  })

  it("after a batch whose outcome stays unknown the partition gets a new producer id", () => {
    const { subject, add, take, results } = log()
    add("a", 1, 5)
    subject.requeue(take(), "unknown")
    subject.expire(10, timedOut)
    add("b")
    assert.deepStrictEqual(names(take()), ["b"])
    assert.deepStrictEqual([subject.identity, subject.retiredIdentity, subject.sequence], [undefined, identity, 0])
    assert.deepStrictEqual(results, ["a:RequestTimedOut"])
  })

  it("a batch that was not written leaves the producer id valid", () => {
    const { subject, add, take } = log()
    add("a", 1, 5)
    subject.requeue(take(), "notWritten")
    subject.expire(10, timedOut)
    add("b")
    take()
    assert.strictEqual(subject.identity, identity)
  })

  it("a batch with one bad record is split until that record is alone; its neighbours are written in order", () => {
    const { subject, add, results } = log()
    for (const name of ["a", "b", "bad", "c"]) add(name)
    for (let batch = subject.take(100, 100), offset = 0n; batch !== undefined; batch = subject.take(100, 100)) {
      const sent = names(batch)!
      if (!sent.includes("bad")) {
        subject.acknowledged(batch, offset)
        offset += BigInt(sent.length)
      } else if (sent.length > 1) subject.split(batch)
      else subject.failed(batch, new BrokerError.RecordRejected({ topic: "t", detail: "bad" }))
    }
    assert.deepStrictEqual(results, ["a@0", "b@1", "bad:RecordRejected", "c@2"])
    assert.isTrue(subject.empty)
  })

  it("a record whose deadline has passed fails, and is not sent", () => {
    const { subject, add, results, take } = log()
    add("old", 1, 5)
    add("new", 1, 50)
    subject.expire(10, timedOut)
    assert.deepStrictEqual(results, ["old:RequestTimedOut"])
    assert.deepStrictEqual(names(take()), ["new"])
  })

  it("a record that was cancelled before it was sent is not sent", () => {
    const { subject, add } = log()
    add("a").settled = true
    assert.isUndefined(subject.take(100, 100))
    assert.isTrue(subject.empty)
  })
})

describe("outcome of a batch", () => {
  it("tells whether the batch may have been written", () => {
    assert.strictEqual(outcomeOf("NOT_LEADER_OR_FOLLOWER", 5, "idempotent"), "again")
    assert.strictEqual(outcomeOf("NOT_ENOUGH_REPLICAS_AFTER_APPEND", 5, "idempotent"), "unknown")
    assert.strictEqual(outcomeOf("CONNECTION", 5, "plain"), "unknown")
  })

  it("a single record that is too large fails; several are split", () => {
    assert.strictEqual(outcomeOf("MESSAGE_TOO_LARGE", 2, "plain"), "split")
    assert.strictEqual(outcomeOf("MESSAGE_TOO_LARGE", 1, "plain"), "fail")
  })

  it("a transactional producer never takes a new id within a transaction", () => {
    assert.strictEqual(outcomeOf("OUT_OF_ORDER_SEQUENCE_NUMBER", 2, "idempotent"), "renew")
    assert.strictEqual(outcomeOf("OUT_OF_ORDER_SEQUENCE_NUMBER", 2, "transactional"), "fail")
    assert.strictEqual(outcomeOf("PRODUCER_FENCED", 2, "transactional"), "fail")
  })
})
