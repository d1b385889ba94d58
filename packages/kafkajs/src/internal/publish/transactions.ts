/**
 * Transactions. Owns the producer's epoch: after anything whose outcome is not certain it takes a new one. That ends what is open on the broker's side and
 * shuts out what may still be on its way under the old epoch.
 *
 * The protocol has no group generation in these requests (KIP-447 needs newer ones than kafkajs encodes): what keeps a zombie out is
 * its transactional id, so give each input partition, or each consumer, one of its own.
 */
import { type Broker, type BrokerError, ConsumerRecord } from "@eventbus/core"
import { Clock, Duration, Effect, Exit, Result, Schedule, Scope, Semaphore } from "effect"
import { type Cluster, connect } from "../connection/cluster.ts"
import type { PortErrors } from "../connection/portErrors.ts"
import type { Secured } from "../connection/security.ts"
import { byTopic } from "../offsets/logBounds.ts"
import {
  type ClientFailure,
  check,
  failure,
  isCoordinatorFailure,
  isFenced,
  Local,
  type Subject
} from "../wire/errors.ts"
import { call } from "../wire/wire.ts"
import type { Identity } from "./partitionLog.ts"
import { limits, sending } from "./producer.ts"
import { makeSender, type Sender } from "./sender.ts"

type Transactional = Broker.ProducerOptions & {
  readonly transactionalId: string
  readonly transactionTimeout?: Duration.Input
}

/** One epoch of the producer, and what its current transaction holds. */
interface Epoch {
  readonly requests: ReturnType<typeof requests>
  readonly sender: Sender
  readonly scope: Scope.Closeable
  /** Partitions that the coordinator has taken into the current transaction. */
  readonly enlisted: Set<string>
  /** What the coordinator was asked to take in, whatever came of it: a partition, and the group of offsets. */
  asked: { readonly partition?: ConsumerRecord.TopicPartition; readonly groupId?: string }
}

const retryable = (failed: ClientFailure): boolean =>
  isCoordinatorFailure(failed.type) || failed.type === Local.timeout || failed.type === "REQUEST_TIMED_OUT"

/** Repeats what the coordinator is not ready for, for at most `millis`. */
const persistently =
  (millis: number) =>
  <A, R>(effect: Effect.Effect<A, ClientFailure, R>): Effect.Effect<A, ClientFailure, R> =>
    Effect.flatMap(Clock.currentTimeMillis, (start) =>
      Effect.retry(effect, {
        schedule: Schedule.spaced("50 millis"),
        while: (failed) => Effect.map(Clock.currentTimeMillis, (now) => retryable(failed) && now - start < millis)
      })
    )

/** A new epoch: older ones are fenced, and what they left open is aborted. */
const initialise = (cluster: Cluster, { transactionalId, transactionTimeout }: Transactional, millis: number) =>
  Effect.gen(function* () {
    const coordinator = yield* cluster.coordinator("transaction", transactionalId)
    const answer = yield* call(coordinator, "InitProducerId", {
      transactionalId,
      transactionTimeout: Duration.toMillis(transactionTimeout ?? "60 seconds")
    })
    yield* check(answer.errorCode)
    return { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch }
  }).pipe(persistently(millis))

/** The requests of a transaction, for one epoch. */
const requests = (cluster: Cluster, transactionalId: string, identity: Identity, millis: number) => {
  const producer = {
    transactionalId,
    producerId: String(identity.producerId),
    producerEpoch: identity.producerEpoch
  }
  const coordinator = cluster.coordinator("transaction", transactionalId)
  const addOffsets = Effect.fnUntraced(function* (groupId: string) {
    yield* check((yield* call(yield* coordinator, "AddOffsetsToTxn", { ...producer, groupId })).errorCode)
  })
  return {
    addPartitions: (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) =>
      Effect.gen(function* () {
        const topics = byTopic(partitions, ({ partition }) => partition)
        const answer = yield* call(yield* coordinator, "AddPartitionsToTxn", { ...producer, topics })
        const codes = answer.errors.flatMap(({ partitionErrors }) => partitionErrors.map(({ errorCode }) => errorCode))
        // OPERATION_NOT_ATTEMPTED (55) only says that another partition failed
        yield* check(...codes.filter((code) => code !== 55))
      }).pipe(persistently(millis)),
    addOffsets: (groupId: string) => addOffsets(groupId).pipe(persistently(millis)),
    sendOffsets: (
      groupId: string,
      offsets: ReadonlyArray<ConsumerRecord.TopicPartition & { readonly offset: bigint }>
    ) =>
      Effect.gen(function* () {
        yield* addOffsets(groupId)
        const group = yield* cluster.coordinator("group", groupId)
        const topics = byTopic(offsets, ({ partition, offset }) => ({
          partition,
          offset: String(offset),
          metadata: null
        }))
        const answer = yield* call(group, "TxnOffsetCommit", { ...producer, groupId, topics })
        yield* check(...answer.topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
      }).pipe(persistently(millis)),
    end: (outcome: "commit" | "abort") =>
      Effect.gen(function* () {
        const transactionResult = outcome === "commit"
        yield* check((yield* call(yield* coordinator, "EndTxn", { ...producer, transactionResult })).errorCode)
      }).pipe(persistently(millis))
  }
}

const isStarted = ({ asked: { partition, groupId } }: Epoch): boolean =>
  partition !== undefined || groupId !== undefined

/** Fails when a newer producer has the id, as far as is known: asks once more for what was asked, which is refused to everybody else. */
const confirm = ({ asked: { partition, groupId }, requests }: Epoch): Effect.Effect<void, ClientFailure> => {
  const again =
    partition !== undefined
      ? requests.addPartitions([partition])
      : groupId === undefined
        ? Effect.void
        : requests.addOffsets(groupId)
  return Effect.catchIf(
    again,
    ({ type }) => !isFenced(type),
    () => Effect.void
  )
}

/** How long ending a failed transaction may hold its caller up; what is left then is ended by the next one, or by its timeout. */
const abortTimeout = "10 seconds"

/** Failures after which it is not known what is in the transaction. */
const isUncertain = (error: BrokerError.BrokerError): boolean =>
  error._tag !== "RecordTooLarge" &&
  error._tag !== "RecordRejected" &&
  error._tag !== "InvalidTopic" &&
  error._tag !== "UnknownTopic"

export const makeTransactionalProducer = Effect.fnUntraced(function* (
  options: Secured,
  errors: PortErrors,
  producer: Transactional
) {
  const { transactionalId } = producer
  const subject: Subject = { operation: "use", transactionalId }
  const bounds = limits(options, producer)
  const cluster = yield* errors.map(connect(options, producer.clientId), { operation: "connect" })
  const parent = yield* Effect.scope
  const oneAtATime = yield* Semaphore.make(1)

  const begin = Effect.gen(function* () {
    const identity = yield* initialise(cluster, producer, bounds.deliveryTimeoutMillis)
    const scope = yield* Scope.fork(parent)
    const enlisted = new Set<string>()
    const own = requests(cluster, transactionalId, identity, bounds.deliveryTimeoutMillis)
    const enlist = Effect.fnUntraced(function* (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) {
      const fresh = partitions.filter(
        ({ topic, partition }) => !enlisted.has(ConsumerRecord.partitionKey(topic, partition))
      )
      const [partition] = fresh
      if (partition === undefined) return
      epoch.asked = { ...epoch.asked, partition }
      yield* own.addPartitions(fresh)
      for (const { topic, partition } of fresh) enlisted.add(ConsumerRecord.partitionKey(topic, partition))
    })
    const sender = yield* makeSender(
      cluster,
      { ...bounds, kind: "transactional", acks: -1, transactionalId, identify: Effect.succeed(identity), enlist },
      errors,
      scope
    )
    const epoch: Epoch = { requests: own, sender, scope, enlisted, asked: {} }
    return epoch
  })

  const invalid = (detail: string) => errors.of(failure("INVALID_TXN_STATE", detail), subject)
  const over = invalid("the transaction has ended")
  const open = invalid("a send was interrupted, and may be in the transaction or not")

  /** undefined when a new epoch is needed before the next transaction. */
  let current: Epoch | undefined = yield* errors.map(begin, subject)
  let fenced: BrokerError.ProducerFenced | undefined

  const noteIfFenced = (error: BrokerError.BrokerError) => {
    if (error._tag === "ProducerFenced") fenced = error
  }
  const noteFencing = <A, R>(effect: Effect.Effect<A, BrokerError.BrokerError, R>) =>
    Effect.tapError(effect, (error) => Effect.sync(() => noteIfFenced(error)))

  const discard = (epoch: Epoch) =>
    Effect.suspend(() => {
      if (current === epoch) current = undefined
      return Scope.close(epoch.scope, Exit.void)
    })

  const end = Effect.fnUntraced(function* (epoch: Epoch, outcome: "commit" | "abort") {
    if (epoch.enlisted.size > 0 || epoch.asked.groupId !== undefined) {
      yield* errors.map(epoch.requests.end(outcome), { ...subject, operation: `${outcome} a transaction of` })
    }
    epoch.enlisted.clear()
    epoch.asked = {}
  })

  /**
   * Ends what is open by taking a new epoch. Not when another has the id by now, which that would fence: whoever lost a partition aborts its transaction, and is
   * told nothing. A failure is met again, and reported, by the next transaction.
   */
  const renew = (epoch: Epoch) =>
    Effect.gen(function* () {
      yield* discard(epoch)
      if (fenced !== undefined || !isStarted(epoch)) return
      const next = yield* noteFencing(errors.map(Effect.andThen(confirm(epoch), begin), subject)).pipe(
        Effect.interruptible,
        Effect.timeout(abortTimeout),
        Effect.option
      )
      if (next._tag === "Some") current = next.value
    })

  /** Where everything is answered, the coordinator is told to end the transaction, which it does for the owner of the id only; the epoch stays. */
  const abort = (epoch: Epoch, certain: Effect.Effect<void, BrokerError.BrokerError>) =>
    certain.pipe(
      Effect.andThen(epoch.sender.drained),
      Effect.andThen(certain),
      Effect.andThen(noteFencing(end(epoch, "abort"))),
      Effect.interruptible,
      Effect.timeout(abortTimeout),
      Effect.catch(() => renew(epoch))
    )

  const take = Effect.suspend(() => {
    if (fenced !== undefined) return Effect.fail(fenced)
    return current === undefined ? noteFencing(errors.map(begin, subject)) : Effect.succeed(current)
  })

  const transaction: Broker.TransactionalProducer["transaction"] = (use) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const epoch = yield* restore(take)
        current = epoch
        let active = true
        let uncertain: BrokerError.BrokerError | undefined
        const note = (error: BrokerError.BrokerError) => {
          noteIfFenced(error)
          if (isUncertain(error)) uncertain ??= error
        }
        // Also who goes on without what was sent does not commit it by chance.
        const noteInterrupt = Effect.onInterrupt(() => Effect.sync(() => note(open)))
        const within = <A, R>(effect: Effect.Effect<A, BrokerError.BrokerError, R>) =>
          Effect.suspend(() => (active ? noteInterrupt(effect) : Effect.fail(over))).pipe(
            Effect.tapError((error) => Effect.sync(() => note(error)))
          )
        const records = sending(epoch.sender)
        const handle: Broker.Transaction = {
          send: (record) => within(records.send(record)),
          sendAll: (all) => within(records.sendAll(all)),
          sendEach: (each, onAnswer) => {
            const noted: Broker.OnAnswer = (index, answer) => {
              if (Result.isFailure(answer)) note(answer.failure)
              onAnswer(index, answer)
            }
            return Effect.suspend(() =>
              active
                ? noteInterrupt(records.sendEach(each, noted))
                : Effect.forEach(each, (_, index) => Effect.sync(() => noted(index, Result.fail(over))), {
                    discard: true
                  })
            )
          },
          sendOffsets: (groupId, offsets) =>
            Effect.suspend(() => {
              epoch.asked = { ...epoch.asked, groupId }
              return within(
                errors.map(epoch.requests.sendOffsets(groupId, offsets), {
                  ...subject,
                  operation: "commit offsets of",
                  groupId
                })
              )
            })
        }
        const certain = Effect.suspend(() => (uncertain === undefined ? Effect.void : Effect.fail(uncertain)))
        const finish = Effect.gen(function* () {
          yield* restore(epoch.sender.drained)
          active = false
          yield* certain
          yield* Effect.tapError(end(epoch, "commit"), (error) => Effect.sync(() => note(error)))
        })
        return yield* restore(use(handle)).pipe(
          Effect.tap(() => finish),
          Effect.onError(() => {
            active = false
            return abort(epoch, certain)
          })
        )
      })
    ).pipe(oneAtATime.withPermits(1))

  return { transaction } satisfies Broker.TransactionalProducer
})
