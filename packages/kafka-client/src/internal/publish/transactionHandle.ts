/** A program's handle of one transaction. It notes every failure after which the contents of the transaction are uncertain. */
import type { Broker, BrokerError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { failure } from "../../ClientFailure.ts"
import { producerOf } from "./producer.ts"
import { type Epoch, type Epochs, noteIfFenced } from "./transactionEpoch.ts"

/** One transaction in progress. */
export interface OpenTransaction {
  readonly epoch: Epoch
  /** False once the transaction ends; sends fail from then on. */
  active: boolean
  /** The first failure after which it is unknown what is in the transaction. */
  uncertain: BrokerError.BrokerError | undefined
}

/** False for failures that say that the record is not in the transaction. */
const isUncertain = (error: BrokerError.BrokerError): boolean =>
  error._tag !== "RecordTooLarge" &&
  error._tag !== "RecordRejected" &&
  error._tag !== "InvalidTopic" &&
  error._tag !== "UnknownTopic"

export const noteFailure = (epochs: Epochs, transaction: OpenTransaction, error: BrokerError.BrokerError): void => {
  noteIfFenced(epochs, error)
  if (isUncertain(error)) transaction.uncertain ??= error
}

/** The port's handle of a transaction. */
export const transactionHandle = (epochs: Epochs, transaction: OpenTransaction): Broker.Transaction => {
  const { errors, subject } = epochs
  const { epoch } = transaction
  const invalid = (detail: string) => errors.of(failure("INVALID_TXN_STATE", detail), subject)
  const ended = invalid("the transaction has ended")
  const interrupted = invalid("a send was interrupted, and may be in the transaction or not")
  const note = (error: BrokerError.BrokerError) => noteFailure(epochs, transaction, error)
  // A program that continues after an interrupted send must not commit it by chance.
  const noteInterrupt = Effect.onInterrupt(() => Effect.sync(() => note(interrupted)))
  const within = <A, R>(effect: Effect.Effect<A, BrokerError.BrokerError, R>) =>
    Effect.suspend(() => (transaction.active ? noteInterrupt(effect) : Effect.fail(ended))).pipe(
      Effect.tapError((error) => Effect.sync(() => note(error)))
    )
  const producer = producerOf(epoch.sender)
  return {
    send: (record) => within(producer.send(record)),
    sendAll: (records) => within(producer.sendAll(records)),
    sendEach: (records, onAnswer) => {
      const noted: Broker.OnAnswer = (index, answer) => {
        if (Result.isFailure(answer)) note(answer.failure)
        onAnswer(index, answer)
      }
      return Effect.suspend(() =>
        transaction.active
          ? noteInterrupt(producer.sendEach(records, noted))
          : Effect.forEach(records, (_, index) => Effect.sync(() => noted(index, Result.fail(ended))), {
              discard: true
            })
      )
    },
    sendOffsets: (groupId, offsets) =>
      Effect.suspend(() => {
        epoch.requested = { ...epoch.requested, groupId }
        const sent = epoch.requests.sendOffsets(groupId, offsets)
        return within(errors.map(sent, { ...subject, operation: "commit offsets of", groupId }))
      })
  }
}
