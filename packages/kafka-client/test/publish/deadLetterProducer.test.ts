/** The producer of retry and dead letter copies talks to a broker whose answers get lost. Its requests are read byte by byte. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { failure, Local } from "../../src/ClientFailure.ts"
import { brokerErrors } from "../../src/internal/connection/brokerErrors.ts"
import type { Cluster } from "../../src/internal/connection/cluster.ts"
import { securedOptions } from "../../src/internal/connection/security.ts"
import type { TopicMetadata } from "../../src/internal/protocol/apis.ts"
import { Writer } from "../../src/internal/protocol/writer.ts"
import { guaranteesOf } from "../../src/internal/publish/producer.ts"
import { makeSender } from "../../src/internal/publish/sender.ts"
import type { NodeClient, Request } from "../../src/Transport.ts"
import { noTransport } from "../noTransport.ts"
import { visibleRecords } from "../visibleRecords.ts"

/** A request gets lost, its answer gets lost, or all is well. */
type Fate = "lost" | "answer lost" | "well"

const partitions = [0, 1]

const text = (value: Uint8Array | null) => new TextDecoder().decode(value ?? new Uint8Array())

/** The batches in the body of a Produce request without a transactional id. */
const batchesIn = (body: Buffer) => {
  const batches: Array<{ readonly partition: number; readonly bytes: Buffer }> = []
  assert.strictEqual(body.readInt16BE(0), -1)
  let at = 8
  const topics = body.readInt32BE(at)
  at += 4
  for (let topic = 0; topic < topics; topic++) {
    at += 2 + body.readInt16BE(at)
    const count = body.readInt32BE(at)
    at += 4
    for (let each = 0; each < count; each++) {
      const size = body.readInt32BE(at + 4)
      batches.push({ partition: body.readInt32BE(at), bytes: body.subarray(at + 8, at + 8 + size) })
      at += 8 + size
    }
  }
  return { acks: body.readInt16BE(2), batches }
}

/** A broker that keeps a log and the next sequence number of each partition, as Kafka does for an idempotent producer. */
const broker = (fates: ReadonlyArray<Fate>) => {
  const logs = new Map<number, Array<Buffer>>(partitions.map((partition) => [partition, []]))
  const next = new Map<number, number>()
  const inFlight = new Set<number>()
  const acks = new Set<number>()
  const problems: Array<string> = []
  let requests = 0

  const append = ({ partition, bytes }: ReturnType<typeof batchesIn>["batches"][number]) => {
    const producerId = bytes.readBigInt64BE(43)
    const sequence = bytes.readInt32BE(53)
    const count = bytes.readInt32BE(57)
    const expected = next.get(partition) ?? 0
    const log = logs.get(partition)!
    if (producerId < 0n || sequence < 0) problems.push("not idempotent")
    if (sequence < expected) return { partition, errorCode: 46, baseOffset: "-1" }
    if (sequence > expected) return { partition, errorCode: 45, baseOffset: "-1" }
    next.set(partition, sequence + count)
    const baseOffset = String(expected)
    log.push(Buffer.from(bytes))
    return { partition, errorCode: 0, baseOffset }
  }

  const send = async <A>({ encode, decode }: Request<A>): Promise<A> => {
    const fate = fates[requests++] ?? "well"
    const sent = batchesIn(encode().bytes)
    acks.add(sent.acks)
    for (const { partition } of sent.batches) {
      if (inFlight.has(partition)) problems.push(`two requests in flight for partition ${partition}`)
      inFlight.add(partition)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
    for (const { partition } of sent.batches) inFlight.delete(partition)
    const lost = failure(Local.connection, "lost")
    if (fate === "lost") throw lost
    const results = sent.batches.map(append)
    if (fate === "answer lost") throw lost
    const writer = new Writer()
    const answered = writer.array(["orders.DLT"], (topic) =>
      writer
        .string(topic)
        .array(results, ({ partition, errorCode, baseOffset }) =>
          writer.int32(partition).int16(errorCode).int64(BigInt(baseOffset)).int64(-1n).int64(0n)
        )
    )
    return decode(answered.int32(0).body.bytes).answer
  }
  const node: NodeClient = {
    ...{ host: "127.0.0.1", port: 9092, send },
    versionsOf: () => ({ min: 0, max: 7 }),
    features: async () => new Map(),
    isConnected: () => true,
    isBusy: () => false,
    connect: async () => {},
    disconnect: async () => {},
    closeAtOnce: () => {}
  }
  return { node, logs, acks, problems, requests: () => requests }
}

/** The values of the batches of a log. */
const valuesIn = async (partition: number, batches: ReadonlyArray<Buffer>) => {
  const fetched = {
    ...{ topic: "orders.DLT", partition, errorCode: 0, highWatermark: 100n, lastStableOffset: 100n },
    ...{ abortedTransactions: [], bytes: Buffer.concat(batches) }
  }
  const { records } = await visibleRecords(fetched, 0n, "read_committed")
  return records.map(({ value }) => text(value))
}

const clusterOf = (node: NodeClient): Cluster => {
  const topic: TopicMetadata = {
    ...{ topic: "orders.DLT", topicErrorCode: 0, isInternal: false },
    partitionMetadata: partitions.map((partitionId) => ({
      ...{ partitionId, partitionErrorCode: 0, leader: 1, replicas: [1], isr: [1], offlineReplicas: [] }
    }))
  }
  const away = failure(Local.connection, "not here")
  return {
    id: "test",
    node: () => Effect.succeed(node),
    askAny: () => Effect.fail(away),
    anyNode: Effect.fail(away),
    metadata: () => Effect.succeed(new Map([["orders.DLT", topic]])),
    allTopics: Effect.succeed(["orders.DLT"]),
    describe: Effect.succeed({
      clusterId: "c",
      brokers: [{ id: 1, host: "localhost", port: 9092 }],
      controller: undefined
    }),
    coordinator: () => Effect.fail(away),
    whileCoordinator: () => Effect.fail(away),
    askCoordinator: () => Effect.fail(away),
    isSilent: () => false,
    watch: (_, request) => request
  }
}

/** Publishes 40 copies, a few at a time, by a producer as the connector asks for it. */
const publish = Effect.fnUntraced(function* (node: NodeClient) {
  const options = {
    ...guaranteesOf({ acks: "all", idempotent: true }),
    ...{
      transactionalId: undefined,
      codec: "none" as const,
      lingerMillis: 0,
      maxBatchRecords: 3,
      maxBatchBytes: 10_000
    },
    ...{ deliveryTimeoutMillis: 120_000, requestTimeoutMillis: 30_000, metadataMaxAgeMillis: 600_000 },
    newIdentity: Effect.succeed({ producerId: 1n, producerEpoch: 0 }),
    ...{ produceApi: "Produce" as const, beforeSend: () => Effect.void, onWritten: () => {} }
  }
  const errors = brokerErrors(securedOptions({ brokers: ["k:1"] }, noTransport))
  const sender = yield* makeSender(clusterOf(node), options, errors, yield* Effect.scope)
  const refused: Array<string> = []
  for (let index = 0; index < 40; index++) {
    const copy = { topic: "orders.DLT", partition: index % 2, key: null, value: Buffer.from(String(index)) }
    sender.send(copy, (outcome) => {
      if ("_tag" in outcome) refused.push(outcome._tag)
    })
    if (index % 7 === 0) yield* Effect.sleep(1)
  }
  yield* sender.drained
  return refused
})

const numbers = (partition: number) => Array.from({ length: 20 }, (_, index) => String(2 * index + partition))

describe("the producer of retry and dead letter copies", () => {
  it("DLT-01 acks=all and a producer id in each request, one request in flight for a partition; lost answers lead to one copy each, in order", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom<Fate>("lost", "answer lost", "well"), { minLength: 6, maxLength: 12 }),
        async (fates) => {
          const model = broker(fates)
          const refused = await Effect.runPromise(Effect.scoped(publish(model.node)))
          assert.deepStrictEqual([...refused, ...model.problems], [])
          assert.deepStrictEqual([...model.acks], [-1])
          for (const [partition, log] of model.logs) {
            assert.deepStrictEqual(await valuesIn(partition, log), numbers(partition))
          }
          assert.isAbove(model.requests(), 12)
        }
      ),
      { numRuns: 8 }
    ))
})
