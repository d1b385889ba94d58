/** Records that wait while the cluster's view of their topic changes. The cluster is a script of answers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { brokerErrors } from "../../src/internal/connection/brokerErrors.ts"
import type { Cluster } from "../../src/internal/connection/cluster.ts"
import { securedOptions } from "../../src/internal/connection/security.ts"
import { makeSender } from "../../src/internal/publish/sender.ts"
import { noTransport } from "../noTransport.ts"
import { cluster } from "../oneNode.ts"

const errors = brokerErrors(securedOptions({ brokers: ["k:1"] }, noTransport))

const settings = {
  ...({ kind: "idempotent", acks: -1, transactionalId: undefined } as const),
  ...{ codec: "none" as const, lingerMillis: 0, maxBatchRecords: 100, maxBatchBytes: 10_000 },
  ...{ deliveryTimeoutMillis: 120_000, requestTimeoutMillis: 30_000, metadataMaxAgeMillis: 600_000 },
  newIdentity: Effect.succeed({ producerId: 1n, producerEpoch: 0 }),
  ...{ produceApi: "Produce" as const, beforeSend: () => Effect.void, onWritten: () => {} }
}

/** Sends one record to each partition, and returns the outcomes so far. */
const sendTo = Effect.fnUntraced(function* (
  on: Cluster,
  partitions: ReadonlyArray<number>,
  deliveryTimeoutMillis = 120_000
) {
  const options = { ...settings, deliveryTimeoutMillis }
  const { send } = yield* makeSender(on, options, errors, yield* Effect.scope)
  const outcomes = new Map<number, string>()
  for (const partition of partitions) {
    send({ topic: "t", partition, key: null, value: Buffer.from("x") }, (outcome) => {
      outcomes.set(partition, "_tag" in outcome ? outcome._tag : "written")
    })
  }
  return outcomes
})

describe("sender", () => {
  it.effect(
    "a record fails when its partition is gone after the topic was recreated, and waits when a node does not know the partition yet",
    () =>
      Effect.gen(function* () {
        const { self, has } = cluster()
        has(3)
        const outcomes = yield* sendTo(self, [0, 2])
        yield* TestClock.adjust("1 second")
        has(1)
        yield* TestClock.adjust("200 millis")
        has(3)
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual([...outcomes], [])
        has(1)
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual([...outcomes], [[2, "RecordRejected"]])
      })
  )

  it.effect("after the last record without a leader has timed out, no more metadata is requested", () =>
    Effect.gen(function* () {
      const { self, has, looks } = cluster()
      has(1, -1)
      // Deadlines follow the real clock, so this one has passed at the first check.
      const outcomes = yield* sendTo(self, [0], 0)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([...outcomes], [[0, "RequestTimedOut"]])
      const before = looks()
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(looks(), before)
    })
  )

  it.effect(
    "OFF-17 in a transaction, sequence numbers of a partition are not reused after a record that may have been written was cancelled",
    () =>
      Effect.gen(function* () {
        const { self, has } = cluster()
        has(1)
        const identity = { producerId: 1n, producerEpoch: 0 }
        const options = {
          ...settings,
          kind: "transactional",
          transactionalId: "x",
          newIdentity: Effect.succeed(identity)
        } as const
        const { send } = yield* makeSender(self, options, errors, yield* Effect.scope)
        const outcomes: Array<string> = []
        const one = (name: string) =>
          send({ topic: "t", partition: 0, key: null, value: Buffer.from(name) }, (outcome) => {
            outcomes.push(`${name}: ${"_tag" in outcome ? outcome._tag : "written"}`)
          })
        const first = one("first")
        yield* TestClock.adjust("50 millis")
        first.cancel()
        one("second")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(outcomes, ["second: UnexpectedBrokerError"])
      })
  )

  it.effect("ruling 86: a defect while records are sent ends no loop: they are sent again", () =>
    Effect.gen(function* () {
      let asked = 0
      const { self, has } = cluster(
        Effect.suspend(() => {
          asked++
          return Effect.die(new Error("a bug"))
        })
      )
      has(2)
      const outcomes = yield* sendTo(self, [0, 1])
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast(asked, 5)
      assert.deepStrictEqual([...outcomes], [])
    })
  )
})
