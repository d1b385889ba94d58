/** Transactions in the way that the cluster's feature `transaction.version` says: each producer asks for it when it begins (KIP-890). */
import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { Effect } from "effect"
import { makeTransactionNode, type TransactionNode } from "./transactionNode.ts"
import { transports } from "./transports.ts"

const record = { topic: "out", key: null, value: Buffer.from("x") }
const offsets = [{ topic: "in", partition: 0, offset: 5n }]

const send = (tx: Broker.Transaction) => tx.send(record)
const copy = (tx: Broker.Transaction) => Effect.andThen(send(tx), tx.sendOffsets("g", offsets))

describe.each(transports)("transactions ($name)", ({ layer }) => {
  const producerOn = ({ broker }: TransactionNode) =>
    Effect.flatMap(Broker.Broker, ({ transactionalProducer }) => transactionalProducer({ transactionalId: "t" })).pipe(
      Effect.provide(layer({ brokers: [broker.address] }))
    )

  it.live("CLN-14 brokers that can add partitions and offsets themselves, and give each transaction an epoch", () =>
    Effect.gen(function* () {
      const node = yield* makeTransactionNode(2)
      const producer = yield* producerOn(node)
      yield* producer.transaction(copy)
      yield* Effect.exit(producer.transaction((tx) => Effect.andThen(copy(tx), Effect.fail("no"))))
      yield* producer.transaction(copy)
      const one = (epoch: number, end: string) => [
        `Produce 12 epoch ${epoch} sequence 0`,
        `TxnOffsetCommit 5 epoch ${epoch}`,
        `EndTxn 5 epoch ${epoch} ${end}`
      ]
      assert.deepStrictEqual(node.journal, [
        "InitProducerId 1",
        ...one(0, "commit"),
        ...one(1, "abort"),
        ...one(2, "commit")
      ])
    })
  )

  for (const version of [undefined, 0, 1])
    it.live(`CLN-14 CLN-18 with version ${version} of the feature, partitions and groups are added as before 4.0`, () =>
      Effect.gen(function* () {
        const node = yield* makeTransactionNode(version)
        const producer = yield* producerOn(node)
        yield* producer.transaction(copy)
        yield* producer.transaction(copy)
        const one = (sequence: number) => [
          "AddPartitionsToTxn 1 epoch 0",
          `Produce 7 epoch 0 sequence ${sequence}`,
          "AddOffsetsToTxn 1 epoch 0",
          "TxnOffsetCommit 3 epoch 0",
          "EndTxn 1 epoch 0 commit"
        ]
        assert.deepStrictEqual(node.journal, ["InitProducerId 1", ...one(0), ...one(1)])
      })
    )

  for (const request of ["Produce", "TxnOffsetCommit", "EndTxn"])
    it.live(
      `CLN-14 TRANSACTION_ABORTABLE in the answer to ${request}: the transaction is aborted, the producer goes on`,
      () =>
        Effect.gen(function* () {
          const node = yield* makeTransactionNode(2)
          const producer = yield* producerOn(node)
          node.errors.set(request, [120])
          // A program that passes over the failure does not commit either.
          const error = yield* Effect.flip(producer.transaction((tx) => Effect.ignore(copy(tx))))
          assert.deepInclude(error, { _tag: "UnexpectedBrokerError", code: "TRANSACTION_ABORTABLE", retryable: true })
          assert.strictEqual(node.journal.at(-1), "EndTxn 5 epoch 0 abort")
          yield* producer.transaction(send)
          assert.deepStrictEqual(node.journal.slice(-2), ["Produce 12 epoch 1 sequence 0", "EndTxn 5 epoch 1 commit"])
          assert.strictEqual(node.journal.filter((entry) => entry.startsWith("InitProducerId")).length, 1)
        })
    )

  it.live(
    "CLN-14 a transaction of refused records only, which the coordinator may not know, is ended all the same",
    () =>
      Effect.gen(function* () {
        const node = yield* makeTransactionNode(2)
        const producer = yield* producerOn(node)
        node.errors.set("Produce", [10])
        yield* producer.transaction((tx) => Effect.flip(send(tx)))
        yield* producer.transaction(send)
        assert.deepStrictEqual(node.journal.slice(1), [
          "Produce 12 epoch 0 sequence 0",
          "EndTxn 5 epoch 0 abort",
          "Produce 12 epoch 1 sequence 0",
          "EndTxn 5 epoch 1 commit"
        ])
      })
  )

  it.live("CLN-14 a commit whose answer is lost is asked for again, and the next transaction has the next epoch", () =>
    Effect.gen(function* () {
      const node = yield* makeTransactionNode(2)
      const producer = yield* producerOn(node)
      node.cutAfter = "EndTxn"
      yield* producer.transaction(send)
      yield* producer.transaction(send)
      assert.deepStrictEqual(node.journal.slice(2), [
        "EndTxn 5 epoch 0 commit",
        "EndTxn 5 epoch 0 commit",
        "Produce 12 epoch 1 sequence 0",
        "EndTxn 5 epoch 1 commit"
      ])
    })
  )

  it.live("CLN-14 OFF-17 after a write that may have been taken, the transaction ends before a new epoch begins", () =>
    Effect.gen(function* () {
      const node = yield* makeTransactionNode(2)
      const producer = yield* producerOn(node)
      yield* Effect.exit(
        producer.transaction((tx) =>
          Effect.andThen(
            send(tx),
            Effect.timeout(
              Effect.andThen(
                Effect.sync(() => hold(node)),
                send(tx)
              ),
              "300 millis"
            )
          )
        )
      )
      yield* producer.transaction(send)
      assert.deepStrictEqual(node.journal.slice(-5), [
        "Produce 12 epoch 0 sequence 1",
        "EndTxn 5 epoch 0 abort",
        "InitProducerId 1",
        "Produce 12 epoch 2 sequence 0",
        "EndTxn 5 epoch 2 commit"
      ])
    })
  )
})

/** The next answer to Produce does not come. */
const hold = (node: TransactionNode): void => {
  const { behave } = node.broker
  node.broker.behave = (request) => {
    if (request.apiKey !== 0) return behave(request)
    node.broker.behave = behave
    behave({ ...request, answer: () => {} })
  }
}
