/** A write of a transaction that reaches its broker after the transaction has ended, on a real Kafka. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { errorName } from "../../packages/kafka-client/src/internal/protocol/errorNames.ts"
import { type Identity, PartitionLog } from "../../packages/kafka-client/src/internal/publish/partitionLog.ts"
import { PendingRecords } from "../../packages/kafka-client/src/internal/publish/pendingRecords.ts"
import { encodeProduce } from "../../packages/kafka-client/src/internal/publish/produceRequest.ts"
import {
  implicitTransactions,
  initProducerId
} from "../../packages/kafka-client/src/internal/publish/transactionRequests.ts"
import { call } from "../../packages/kafka-client/src/internal/wire/requests.ts"
import * as Bus from "../integration/bus.ts"
import { transports } from "./transports.ts"

const patienceMillis = 30_000

/** The client without the order and the sequence numbers that its sender keeps. */
const writerOf = Effect.fnUntraced(function* (
  brokers: ReadonlyArray<string>,
  open: (typeof transports)[number]["open"]
) {
  const cluster = yield* connect(securedOptions({ brokers }, open))
  const transactionalId = Bus.fresh("late")
  const begun = yield* initProducerId(cluster, { transactionalId }, patienceMillis)
  const settings = { acks: -1, timeoutMillis: 15_000, transactionalId } as const
  const write = Effect.fnUntraced(function* (topic: string, value: string, identity: Identity) {
    const log = new PartitionLog(topic, 0)
    log.add(new PendingRecords().add({ topic, key: null, value: Bus.bytes(value) }, 1_000, () => {}, 0, undefined))
    log.adoptIdentity(identity)
    const taken = [{ log, batch: log.take(1, 1_000_000)! }]
    const leader = (yield* cluster.metadata([topic])).get(topic)?.partitionMetadata[0]?.leader ?? -1
    const { topics } = yield* call(yield* cluster.node(leader), "ProduceAdding", (version) =>
      encodeProduce(settings, version, taken)
    )
    return errorName(topics[0]!.partitions[0]!.errorCode)
  })
  const end = (outcome: "commit" | "abort", identity: Identity) =>
    implicitTransactions({ cluster, transactionalId, identity: () => identity, millis: patienceMillis }).end(outcome)
  return { begun, write, end }
})

KafkaSuite.shared("late writes", (brokers) => {
  if (!KafkaSuite.hasEpochsOfTransactions) return
  for (const { name, open } of transports)
    for (const outcome of ["commit", "abort"] as const)
      Bus.story(brokers, `CLN-14 a write after the ${outcome} of its transaction is refused (${name})`, () =>
        Effect.gen(function* () {
          const [topic, other] = [Bus.fresh("written"), Bus.fresh("never-written")]
          yield* Bus.createTopic(topic)
          yield* Bus.createTopic(other)
          const { begun, write, end } = yield* writerOf(brokers, open)
          assert.isTrue(begun.isImplicit)
          assert.strictEqual(yield* write(topic, "in time", begun.identity), "NONE")
          const next = yield* end(outcome, begun.identity)
          assert.notDeepEqual(next, begun.identity)
          // The answer to EndTxn comes before the leader has the marker behind the record.
          const ends = Bus.logEnds(topic)
          yield* Bus.until(
            "the leader has the marker",
            Effect.map(ends, (byPartition) => byPartition.get(0) === 2n)
          )
          // Neither where the transaction has left its marker, nor in a partition that has never heard of the producer.
          for (const each of [topic, other]) {
            assert.strictEqual(yield* write(each, "late", begun.identity), "INVALID_PRODUCER_EPOCH")
          }
          // Nor into the next transaction.
          const writing = Effect.repeat(write(topic, "next", next), {
            while: (name) => name === "CONCURRENT_TRANSACTIONS"
          })
          assert.strictEqual(yield* writing, "NONE")
          for (const each of [topic, other]) {
            assert.strictEqual(yield* write(each, "late", begun.identity), "INVALID_PRODUCER_EPOCH")
          }
          yield* end("commit", next)
          const values = (yield* Bus.readAll(topic)).map(({ value }) => Bus.text(value))
          assert.deepStrictEqual(values, outcome === "commit" ? ["in time", "next"] : ["next"])
          assert.deepStrictEqual(yield* Bus.readAll(other), [])
        })
      )
})
