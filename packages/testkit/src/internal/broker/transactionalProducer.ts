/**
 * Runs transactions one at a time. A transaction commits when the program succeeds and aborts otherwise.
 */
import { type Broker, BrokerError } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Cluster } from "./cluster.ts"
import type { Connection } from "./network.ts"
import * as Producer from "./producer.ts"
import type { ProducerEpoch } from "./transactionCoordinator.ts"

export const make = Effect.fnUntraced(function* (
  cluster: Cluster,
  connection: Connection,
  options: Broker.TransactionalProducerOptions
): Effect.fn.Return<Broker.TransactionalProducer, BrokerError.BrokerError, Scope.Scope> {
  const { transactionalId } = options
  const timeoutMillis = Duration.toMillis(options.transactionTimeout ?? "60 seconds")
  const call = { operation: "endTransaction", clientId: connection.clientId } as const
  const epoch = yield* cluster.network.request(connection, call, () =>
    Effect.sync(() => {
      for (const former of options.fences ?? []) cluster.transactions.initProducerId(former, timeoutMillis)
      return cluster.transactions.initProducerId(transactionalId, timeoutMillis)
    })
  )
  const producer = yield* Producer.make(cluster, connection, Producer.settings(options), epoch)
  const oneAtATime = yield* Semaphore.make(1)

  /** An end was refused, or its answer got lost: the open transaction must end before the next one begins. */
  let mayBeOpen = false

  const end = (outcome: "committed" | "aborted"): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      mayBeOpen = true
      return cluster.network.request(connection, call, () => {
        const problem = cluster.transactions.end(epoch, outcome)
        return problem ? Effect.fail(problem) : Effect.void
      })
    }).pipe(Effect.tap(() => Effect.sync(() => (mayBeOpen = false))))

  const transaction = <A, E, R>(use: (transaction: Broker.Transaction) => Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        if (mayBeOpen) yield* end("aborted")
        const { port, intact, close } = open(cluster, connection, epoch, producer)
        const exit = yield* Effect.exit(Effect.tap(restore(use(port)), intact))
        close()
        yield* producer.flush
        if (Exit.isSuccess(exit)) yield* end("committed")
        else yield* Effect.ignore(end("aborted"))
        return yield* exit
      })
    )
  return { transaction: (use) => Semaphore.withPermits(oneAtATime, 1, transaction(use)) }
})

interface Opened {
  readonly port: Broker.Transaction
  /** Fails when the transaction must not be committed. */
  readonly intact: Effect.Effect<void, BrokerError.BrokerError>
  readonly close: () => void
}

/** A transaction as its program sees it. Every call fails once it is closed. */
const open = (cluster: Cluster, connection: Connection, epoch: ProducerEpoch, producer: Broker.Producer): Opened => {
  let closed = false
  let problem: BrokerError.BrokerError | undefined
  let refusal: BrokerError.BrokerError | undefined
  const over = invalidState(`this transaction of '${epoch.transactionalId}' is over`)
  const noteInterrupt = Effect.onInterrupt(() =>
    Effect.sync(() => {
      problem = invalidState(
        `a send was interrupted, and may be in this transaction of '${epoch.transactionalId}' or not`
      )
    })
  )
  const whileOpen = <A>(effect: Effect.Effect<A, BrokerError.BrokerError>): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.suspend(() => (closed ? Effect.fail(over) : noteInterrupt(effect)))
  const sendOffsets: Broker.Transaction["sendOffsets"] = (group, offsets) => {
    const groupId = typeof group === "string" ? group : group.groupId
    const call = { operation: "sendOffsets", clientId: connection.clientId, groupId } as const
    return cluster.network.request(connection, call, () => {
      const current = cluster.transactions.current(epoch)
      if (current instanceof BrokerError.ProducerFenced) return Effect.fail(current)
      refusal = typeof group === "string" ? undefined : cluster.group(groupId).refusalOfMember(group, offsets)
      if (refusal !== undefined) return Effect.fail(refusal)
      for (const { topic, partition, offset, metadata = "" } of offsets) {
        current.offsets.push({ groupId, topic, partition, offset, metadata })
      }
      return Effect.void
    })
  }
  return {
    port: {
      send: (record) => whileOpen(producer.send(record)),
      sendAll: (records) => whileOpen(producer.sendAll(records)),
      sendEach: (records, onAnswer) =>
        Effect.suspend(() => {
          if (!closed) return noteInterrupt(producer.sendEach(records, onAnswer))
          const refused = Result.fail(over)
          return Effect.forEach(records, (_, index) => Effect.sync(() => onAnswer(index, refused)), { discard: true })
        }),
      sendOffsets: (group, offsets) => whileOpen(sendOffsets(group, offsets))
    },
    intact: Effect.suspend(() => {
      const reason = problem ?? refusal
      return reason === undefined ? Effect.void : Effect.fail(reason)
    }),
    close: () => {
      closed = true
    }
  }
}

const invalidState = (detail: string): BrokerError.UnexpectedBrokerError =>
  new BrokerError.UnexpectedBrokerError({
    operation: "transaction",
    code: "INVALID_TXN_STATE",
    detail,
    retryable: false
  })
