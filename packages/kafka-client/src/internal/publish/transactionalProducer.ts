/**
 * The port's transactional producer.
 *
 * The transactional id keeps a zombie out, and so does the group where offsets are sent with the metadata of a member (KIP-447). A transaction takes in the
 * work of one task at a time, so each input partition has an id of its own.
 */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { BrokerErrors, Subject } from "../connection/brokerErrors.ts"
import { connect } from "../connection/cluster.ts"
import type { SecuredOptions } from "../connection/security.ts"
import { producerLimits, requireCodec } from "./producer.ts"
import { abort, begin, currentOrNew, type Epochs, end } from "./transactionEpoch.ts"
import { noteFailure, type OpenTransaction, transactionHandle } from "./transactionHandle.ts"
import { fenceFormer, type TransactionalOptions } from "./transactionRequests.ts"

/** Commits the transaction when `use` succeeds, and aborts it otherwise. */
const runTransaction =
  (epochs: Epochs): Broker.TransactionalProducer["transaction"] =>
  (use) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const epoch = yield* restore(currentOrNew(epochs))
        epochs.current = epoch
        const transaction: OpenTransaction = {
          ...{ epoch, active: true },
          ...{ uncertain: undefined, abortable: undefined, refusal: undefined }
        }
        const certain = Effect.suspend(() =>
          transaction.uncertain === undefined ? Effect.void : Effect.fail(transaction.uncertain)
        )
        const commit = Effect.gen(function* () {
          yield* restore(epoch.sender.drained)
          transaction.active = false
          yield* certain
          const refusal = transaction.abortable ?? transaction.refusal
          if (refusal !== undefined) return yield* Effect.fail(refusal)
          yield* Effect.tapError(end(epochs, epoch, "commit"), (error) =>
            Effect.sync(() => noteFailure(epochs, transaction, error))
          )
        })
        return yield* restore(use(transactionHandle(epochs, transaction))).pipe(
          Effect.tap(() => commit),
          Effect.onError(() => {
            transaction.active = false
            return abort(epochs, epoch, certain)
          })
        )
      })
    )

/** Fences every older producer of the same id. */
export const makeTransactionalProducer = Effect.fnUntraced(function* (
  options: SecuredOptions,
  errors: BrokerErrors,
  producer: TransactionalOptions
) {
  const subject: Subject = { operation: "use", transactionalId: producer.transactionalId }
  yield* errors.map(requireCodec(producer), subject)
  const cluster = yield* errors.map(connect(options, producer.clientId), { operation: "connect" })
  const epochs: Epochs = {
    cluster,
    errors,
    options: producer,
    limits: producerLimits(options, producer),
    parent: yield* Effect.scope,
    subject,
    current: undefined,
    fenced: undefined
  }
  yield* errors.map(fenceFormer(cluster, producer, epochs.limits.deliveryTimeoutMillis), subject)
  epochs.current = yield* errors.map(begin(epochs), subject)
  const oneAtATime = yield* Semaphore.make(1)
  const run = runTransaction(epochs)
  const self: Broker.TransactionalProducer = { transaction: (use) => oneAtATime.withPermits(1)(run(use)) }
  return self
})
