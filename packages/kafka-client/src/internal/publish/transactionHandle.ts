/** A program's handle of one transaction. It notes every failure after which the contents of the transaction are uncertain. */
import { type Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import { producerOf } from "./producer.ts"
import { type Epoch, type Epochs, noteIfFenced } from "./transactionEpoch.ts"
import { type OffsetsOf, offsetsOf } from "./transactionRequests.ts"

/** One transaction in progress. */
export interface OpenTransaction {
  readonly epoch: Epoch
  /** False once the transaction ends; sends fail from then on. */
  active: boolean
  /** The first failure after which it is unknown what is in the transaction. */
  uncertain: BrokerError.BrokerError | undefined
  /** Why the broker lets the transaction be aborted only, and the producer go on (`TRANSACTION_ABORTABLE`). */
  abortable: BrokerError.BrokerError | undefined
  /** Why the group has refused the last offsets; undefined where it has taken them. */
  refusal: BrokerError.BrokerError | undefined
}

/** Whether the group has refused the member of offsets. */
const isRefusal = ({ _tag }: BrokerError.BrokerError): boolean =>
  _tag === "StaleAssignment" || _tag === "RebalanceInProgress" || _tag === "InstanceFenced"

/** False for failures that say that the record, or the offsets, are not in the transaction. */
const isUncertain = (error: BrokerError.BrokerError): boolean =>
  error._tag !== "RecordTooLarge" &&
  error._tag !== "RecordRejected" &&
  error._tag !== "InvalidTopic" &&
  error._tag !== "UnknownTopic" &&
  !isRefusal(error)

const isAbortable = (error: BrokerError.BrokerError): boolean =>
  error._tag === "UnexpectedBrokerError" && error.code === "TRANSACTION_ABORTABLE"

export const noteFailure = (epochs: Epochs, transaction: OpenTransaction, error: BrokerError.BrokerError): void => {
  noteIfFenced(epochs, error)
  if (isAbortable(error)) transaction.abortable ??= error
  else if (isUncertain(error)) transaction.uncertain ??= error
}

/** The answers of a group that does not know the member any more. */
const putOut = new Set(["UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"])

/** The answers of a group that knows the member in another generation. */
const ofOtherGeneration = new Set(["ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "REBALANCE_IN_PROGRESS"])

/** The group's refusal of a member; undefined for other failures. The offsets are not in the transaction then. */
const refusalOf = (
  { type }: ClientFailure,
  { groupId, groupInstanceId }: OffsetsOf,
  offsets: ReadonlyArray<ConsumerRecord.TopicPartition>
): BrokerError.BrokerError | undefined => {
  if (putOut.has(type)) {
    const partitions = offsets.map(({ topic, partition }) => ConsumerRecord.partitionKey(topic, partition))
    return new BrokerError.StaleAssignment({ groupId, partitions })
  }
  if (ofOtherGeneration.has(type)) return new BrokerError.RebalanceInProgress({ groupId })
  return type === "FENCED_INSTANCE_ID"
    ? new BrokerError.InstanceFenced({ groupId, groupInstanceId: groupInstanceId ?? "" })
    : undefined
}

/** Commits offsets of a group in the transaction. */
const sendOffsets = (
  { errors, subject }: Epochs,
  transaction: OpenTransaction,
  member: OffsetsOf,
  offsets: Parameters<Broker.Transaction["sendOffsets"]>[1]
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    const { groupId } = member
    const { epoch } = transaction
    epoch.requested = { ...epoch.requested, groupId }
    const answered = Effect.matchEffect(epoch.requests.sendOffsets(member, offsets), {
      onSuccess: () => Effect.succeed(undefined),
      onFailure: (failed) => {
        const refusal = refusalOf(failed, member, offsets)
        return refusal === undefined ? Effect.fail(failed) : Effect.succeed(refusal)
      }
    })
    return Effect.flatMap(
      errors.map(answered, { ...subject, operation: "commit offsets of", groupId }),
      (refusal): Effect.Effect<void, BrokerError.BrokerError> => {
        transaction.refusal = refusal
        return refusal === undefined ? Effect.void : Effect.fail(refusal)
      }
    )
  })

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
    sendOffsets: (group, offsets) => within(sendOffsets(epochs, transaction, offsetsOf(group), offsets))
  }
}
